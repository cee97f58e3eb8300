package operator

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
)

const peerAbout = `usage: gateway peer list [-c FILE] [--json]
       gateway peer forget ID|NAME [--any-start] [-c FILE] [--json]

list shows the far gateways of the gateway on this machine: whether each answers, at which address, and its newest start
that counts. From FILE it reads only where the gateway answers (control.socket).

forget makes the gateway know nothing of a peer's starts and learned addresses any more. The configured address is used
again, and what the peer sends counts when it has answered. Messages are not touched: none is lost, none arrives twice.
Use it when a peer has lost its store and its clock is behind, when another node ran with its id, or when its clock was
ahead once ("two nodes with one id" in the log here, "has heard a later start" in the log there).

With --any-start the peer's next start is taken whatever its number is. Without it, one that lies more than a day ahead of
this machine's clock stays refused. Use it only when you know that it is the true peer: its clock is ahead and cannot be set.

Exit: 0 the order is in force, 1 not so, 2 wrong usage.
`

func peerCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("peer", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	anyStart := fs.Bool("any-start", false, "with forget: take the peer's next start whatever its number is")
	asJSON := fs.Bool("json", false, "print the answer as JSON")
	rest, code, done := cli.Parse(fs, args, 2, peerAbout, stdout, stderr)
	if done {
		return code
	}
	forget := len(rest) == 2 && rest[0] == "forget"
	if !forget && (len(rest) != 1 || rest[0] != "list" || *anyStart) {
		fmt.Fprintf(stderr, "gateway peer: say list, or forget and one peer\n\n%s", peerAbout)
		return cli.ExitUsage
	}
	desk, err := DeskOf(*file, "")
	if err != nil {
		return cli.Fail(stderr, "peer", err)
	}
	peers, err := peersAt(desk)
	if err == nil && forget {
		peers, err = forgetPeer(desk, peers, rest[1], *anyStart)
	}
	if err != nil {
		return cli.Fail(stderr, "peer", err)
	}
	switch {
	case *asJSON:
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		e.Encode(peers) // an error means that the reader has gone
	case forget:
		fmt.Fprintf(stdout, "peer %d %s is forgotten: what it sends counts again when it has answered\n", peers[0].ID, peers[0].Name)
	default:
		printPeers(stdout, peers, time.Now())
	}
	return cli.ExitGood
}

// peersAt asks the gateway at a desk for its peers.
func peersAt(d desk) ([]api.PeerStatus, error) {
	var r control.Report
	_, err := d.TalkOf(&r, "GET", "/status", nil)
	return r.Peers, err
}

// forgetPeer makes the gateway forget the peer with this id or name, and returns its status of that peer afterwards.
func forgetPeer(d desk, peers []api.PeerStatus, who string, anyStart bool) ([]api.PeerStatus, error) {
	p, err := peerCalled(peers, who)
	if err != nil {
		return nil, fmt.Errorf("the gateway at %s %w", d.at, err)
	}
	body, _ := json.Marshal(control.ForgetOrder{Peer: p.ID, AnyStart: anyStart})
	_, err = d.TalkOf(&p, "POST", "/peers/forget", body)
	return []api.PeerStatus{p}, err
}

func printPeers(out io.Writer, peers []api.PeerStatus, now time.Time) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PEER\tLINK\tHEARD\tADDRESS\tCONFIGURED\tSTARTED")
	for _, p := range peers {
		heard, address, configured, started := "never", p.Address, p.Configured, "not known"
		if t, err := time.Parse(time.RFC3339, p.LastHeard); err == nil {
			heard = now.Sub(t).Round(time.Second).String() + " ago"
		}
		if address == "" {
			address = "not known"
		}
		if configured == "" {
			configured = "-"
		}
		if p.Start != 0 {
			started = time.Unix(int64(p.Start), 0).UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%d %s\t%s\t%s\t%s\t%s\t%s\n", p.ID, p.Name, p.Link, heard, address, configured, started)
	}
	w.Flush()
}
