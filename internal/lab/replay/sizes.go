package replay

import (
	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
)

// output passes on the output of a Step, and counts its datagrams: carriers that bill each message need their sizes.
func (p *player) output(n *sim.Node, out api.Output) {
	for _, d := range out.Datagrams {
		sizes := &p.res.Datagrams.Down
		if n.ID != 1 {
			sizes = &p.res.Datagrams.Up
		}
		if *sizes == nil {
			*sizes = map[int]int64{}
		}
		(*sizes)[len(d.Data)]++
	}
	p.lan.output(n, out)
}
