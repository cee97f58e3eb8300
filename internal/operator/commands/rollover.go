package operator

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"aldis/internal/edge/keyfile"
	"aldis/internal/gateway/api"
	"aldis/internal/link/roster"
	"aldis/internal/operator/control"
)

// rollOver gives a newer roster to the gateway that runs on this machine.
func rollOver(o *keysOrder) error {
	r, err := keyfile.LoadRoster(o.file)
	if err != nil {
		return err
	}
	d, err := DeskOf(o.config, "")
	if err != nil {
		return err
	}
	var is control.Report
	if _, err := d.TalkOf(&is, "GET", "/status", nil); err != nil {
		return err
	}
	switch {
	case is.Roster == nil:
		return fmt.Errorf("all gateways of this network share a key (link.key_file): there is no roster to roll over")
	case is.Roster.Network != r.Network:
		return fmt.Errorf("%s belongs to the network %s, and the gateway to %s", o.file, r.Network, is.Roster.Network)
	}
	by, err := roster.ParseAuthorityPublic(is.Roster.AuthorityKey)
	if err == nil {
		err = r.Verify(by)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", o.file, err)
	case is.Roster.Serial == r.Serial && !slices.Contains(is.Roster.Digests, r.Fingerprint()):
		return fmt.Errorf("%s has the serial %d (digest %s), and the gateway goes by another roster with that serial (digest %s): find out which is meant, and make the next of that one (gateway keys roster roll)",
			o.file, r.Serial, r.Fingerprint(), strings.Join(is.Roster.Digests, " and "))
	case is.Roster.Serial >= r.Serial:
		return fmt.Errorf("%s has the serial %d; the gateway already uses %d", o.file, r.Serial, is.Roster.Serial)
	}
	if o.dryRun {
		fmt.Fprintf(o.stdout, "roster %d would take the place of %d; nothing is changed\n", r.Serial, is.Roster.Serial)
	} else {
		body, _ := json.Marshal(control.RosterOrder{Roster: r.Append(nil)})
		if _, err := d.TalkOf(&api.RosterStatus{}, "POST", "/roster", body); err != nil {
			return err
		}
		fmt.Fprintf(o.stdout, "roster %d is in force here, in the place of %d, and goes to all peers\n", r.Serial, is.Roster.Serial)
	}
	return left(o.stdout, r, is.Peers, time.Now())
}

// left says how a roster affects each peer.
func left(out io.Writer, r *roster.Roster, peers []api.PeerStatus, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	behind := 0
	for _, p := range peers {
		_, named := r.Node(p.ID)
		heard := "was not heard since the start of this gateway"
		if at, err := time.Parse(time.RFC3339, p.LastHeard); err == nil {
			heard = "was heard " + now.Sub(at).Round(time.Second).String() + " ago"
		}
		text := "is told now"
		switch {
		case !named:
			text = "is named no more: it is not heard, and what waits for it is refused"
		case p.Link == "listening":
			behind++
			text = "is silent: it may hear the roster, and says so when its silence ends; " + heard
		case p.Link != "up" && p.Link != "unmet":
			behind++
			text = "does not answer: it is told when it is heard again; " + heard
		}
		fmt.Fprintf(w, "%d\t%s\t%s\n", p.ID, p.Name, text)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	when := "when all have it"
	if !r.At.IsZero() {
		when = "from " + r.At.Format(time.RFC3339) + " on"
	}
	_, err := fmt.Fprintf(out, "left behind for now: %d; what is for all on a shared channel is sealed by it %s, and whoever has an older one is told between two nodes\n", behind, when)
	return err
}
