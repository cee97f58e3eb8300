package node

import (
	"log/slog"
	"runtime"

	"aldis/internal/edge/config"
	"aldis/internal/edge/rights"
	"aldis/internal/operator/cli"
)

// confine executes the program again, without the rights that a gateway with this configuration does not need. It returns only
// in the second stage.
func confine(c *config.Config) ([]rights.Protection, error) {
	read := c.Files()
	if path, err := c.Node.Secret.Path(); err == nil && path != "" {
		read = append(read, path)
	}
	var run []string
	if lab, err := cli.Lab(); err == nil {
		run = append(run, lab)
	}
	list, err := rights.Enter(rights.Needs{Own: []string{c.Node.DataDir}, Read: read, Sockets: append(c.Modems(), c.Control.Socket), Run: run})
	runtime.UnlockOSThread() // main locked it for Enter
	return list, err
}

// lock drops rights that the process needed only for its start, and reports protections that the machine does not offer.
func (n *node) lock() {
	n.protections = append(n.protections, rights.Lock(), hold(n.cfg))
	tellMissing(n.log, n.protections)
}

func tellMissing(log *slog.Logger, list []rights.Protection) {
	if missing := rights.Missing(list); len(missing) > 0 {
		log.Warn("this machine does not give the gateway all protections; docs/install.md says what to change", "missing", missing)
	}
}

// hold keeps the keys of the link out of swap.
func hold(c *config.Config) rights.Protection {
	if own := c.Link.Trust.Own; own != nil {
		return rights.Hold(rights.Octets(own))
	}
	return rights.Hold(rights.Octets(&c.Link.Key))
}
