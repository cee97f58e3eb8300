package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/rules/filter"
)

// Warnings names what is allowed but seldom meant, one sentence each.
func (c *Config) Warnings() []string {
	var w []string
	warn := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	if len(c.Link.Peers)+len(c.Link.Enrolled()) == 0 {
		warn("no [[link.peer]]: this gateway serves its own LAN and talks to nobody")
	} else if len(c.Link.Enrolled()) == 0 && !c.Link.Shore && !slices.ContainsFunc(c.Link.Peers, func(p Peer) bool { return p.Address.IsValid() }) {
		warn("no peer has an address: nothing is sent before a peer calls; a terminal usually calls first")
	}
	if a := c.HTTP.Listen; a.IsValid() && !a.Addr().IsLoopback() {
		warn("http.listen %s: whoever reaches it reads the status; nothing there asks for a password (orders ask for http.token_file)", a)
	}
	if c.Control.Group != "" && filepath.Dir(c.Control.Socket) == filepath.Clean(c.Node.DataDir) {
		warn("control.group %s: its members cannot come to control.socket in node.data_dir, which is for one user alone; set control.socket to a path outside, like /run/aldis/control.sock", c.Control.Group)
	}
	if c.Node.Silent {
		warn("node.silent: nothing is transmitted on the link, and no order ends that")
	}
	if k := c.Link.Keepalive; k > 0 {
		const datagram = 28 + seal.OverheadShort + 1 // IP, UDP, seal, one frame octet
		warn("link.keepalive %v: about %d octets of air a day and peer", k, int64(24*time.Hour/k)*datagram)
	}
	for _, r := range c.Filters {
		wide := r.Root == "" && r.Group == "" && r.Name == "" && r.Peer == "" && r.Pipe == "" && r.Least == 0 && r.Most == 0
		if wide && r.Action != filter.Allow && (r.Type == "" || r.Type == filter.Peer || r.Type == filter.Listener) {
			warn("the filter rule in line %d keeps all peers or open pipes to their own site: no message can be sent to them", r.Line)
		}
	}
	c.warnGroups(warn)
	for _, m := range c.Routes {
		fastest := time.Duration(-1)
		for _, l := range c.Bearers() {
			if d := l.Profile.Sending(l.Shore).Delay; m.Takes(l.Name) && (fastest < 0 || d < fastest) {
				fastest = d
			}
		}
		if m.Within > 0 && fastest >= m.Within {
			warn("the [[route]] rule in line %d asks for %v, and the fastest link that it names takes %v at least: its messages take the one where they arrive first", m.Line, m.Within, fastest)
		}
	}
	if c.Link.Profile.Transport == profile.PMul && !c.Link.Group.IsValid() && len(c.Link.Peers) > 1 {
		warn("no link.group: each peer gets its own copy of a message that is for several")
	}
	if c.Link.Profile.Transport == profile.PMul {
		warn("gateway pmul on this link is interoperability mode, ACP 142 as it is: nothing of it is sealed or authenticated. " +
			"A forged Discard_Message_PDU makes one receiver forget what it has of the one message named, which then goes again; " +
			"a forged Ack_PDU makes one message count as delivered to one recipient; forged Source_IDs fill what [p_mul] of the profile lets them. " +
			"This gateway's own messages are sealed and not touched by any of it")
	}
	if info, err := os.Stat(c.Node.DataDir); err == nil && info.Mode().Perm()&0o077 != 0 {
		warn("node.data_dir %s has mode %04o: others can look at what it holds; 0700 is usual", c.Node.DataDir, info.Mode().Perm())
	}
	for _, file := range []string{c.Link.KeyFile, c.Link.Trust.NodeKeyFile, c.HTTP.TokenFile, c.XMPP.SecretFile} {
		dir := filepath.Dir(file)
		if info, err := os.Stat(dir); file != "" && err == nil && info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0 {
			warn("%s has mode %04o: others can put another file in the place of %s; close it with: chmod go-w %s", dir, info.Mode().Perm(), filepath.Base(file), dir)
		}
	}
	return w
}
