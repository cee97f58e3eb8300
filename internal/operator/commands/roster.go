package operator

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"aldis/internal/edge/keyfile"
	"aldis/internal/ground/when"
	"aldis/internal/link/roster"
)

func newRoster(o *keysOrder) error {
	nodes, err := nodesOf(nil, o.nodes)
	if err != nil {
		return err
	}
	r, err := o.issue(nil, nodes)
	if err != nil {
		return err
	}
	if err := keyfile.WriteNew(o.out, r.Text(), 0o644); err != nil {
		return err
	}
	return o.printRoster(o.out, r, nil)
}

// changeRoster carries out add, remove and roll.
func changeRoster(o *keysOrder) error {
	old, err := keyfile.LoadRoster(o.file)
	if err != nil {
		return err
	}
	nodes, err := nodesOf(old.Nodes, o.nodes)
	for _, text := range o.ids {
		id, bad := strconv.ParseUint(text, 10, 16)
		i := slices.IndexFunc(nodes, func(n roster.Node) bool { return uint64(n.ID) == id })
		switch {
		case bad != nil:
			err = errors.Join(err, fmt.Errorf("--id %s is no id of a node", text))
		case i < 0:
			err = errors.Join(err, fmt.Errorf("the roster names no node %d", id))
		default:
			nodes = slices.Delete(nodes, i, i+1)
		}
	}
	if err != nil {
		return err
	}
	r, err := o.issue(old, nodes)
	if err != nil {
		return err
	}
	if err := keyfile.Replace(o.file, r.Text(), 0o644); err != nil {
		return err
	}
	return o.printRoster(o.file, r, old)
}

// nodesOf applies --node to nodes: it adds a node, or changes the name and key of one that is there.
func nodesOf(nodes []roster.Node, given []string) ([]roster.Node, error) {
	nodes = slices.Clone(nodes)
	seen := map[uint16]bool{}
	for _, text := range given {
		f := strings.Split(text, ",")
		if len(f) < 3 {
			return nil, fmt.Errorf("--node %q: say ID,NAME,PUBLIC", text)
		}
		id, err := strconv.ParseUint(f[0], 10, 16)
		if err != nil || id == 0 {
			return nil, fmt.Errorf("--node %q: %s is no id from 1 to 65535", text, f[0])
		}
		public, err := roster.ParseNodePublic(f[2])
		if err != nil {
			return nil, fmt.Errorf("--node %q: %w: gateway keys node show prints it", text, err)
		}
		n := roster.Node{ID: uint16(id), Name: f[1], Public: public}
		if err := n.Read(f[3:]); err != nil {
			return nil, fmt.Errorf("--node %q: %w", text, err)
		}
		if seen[n.ID] {
			return nil, fmt.Errorf("--node %q: node %d is there twice", text, id)
		}
		seen[n.ID] = true
		if i := slices.IndexFunc(nodes, func(is roster.Node) bool { return is.ID == n.ID }); i >= 0 {
			if len(f) == 3 { // without a third field the bearers stay as they are
				n.Relay, n.Ways = nodes[i].Relay, nodes[i].Ways
			}
			nodes[i] = n
			continue
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// issue makes and signs the next roster.
func (o *keysOrder) issue(old *roster.Roster, nodes []roster.Node) (*roster.Roster, error) {
	var at time.Time
	if o.at != "" {
		var err error
		if at, err = when.Ahead(o.at, time.Now()); err != nil {
			return nil, fmt.Errorf("--at: %w", err)
		}
	}
	a, err := keyfile.LoadAuthority(o.authority)
	if err != nil {
		return nil, err
	}
	if old != nil {
		if err := old.Verify(a.Public); err != nil {
			return nil, fmt.Errorf("%s: %w", o.file, err)
		}
	}
	passphrase, err := askPassphrase(o.passphrase, false, o.stderr)
	if err != nil {
		return nil, err
	}
	key, err := a.Unlock(passphrase)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.authority, err)
	}
	var random [roster.RandomForIssue]byte
	rand.Read(random[:])
	return roster.Issue(o.network, old, nodes, time.Now(), at, random, key)
}

// printRoster prints the changes in the new roster.
func (o *keysOrder) printRoster(file string, r, old *roster.Roster) error {
	fmt.Fprintf(o.stdout, "%s is roster %d of the network %s, %d nodes, %d octets on a link, digest %s\n", file, r.Serial, r.Network, len(r.Nodes), len(r.Append(nil)), r.Fingerprint())
	c := r.ChangeFrom(old)
	for _, part := range []struct {
		what string
		ids  []uint16
	}{{"new", c.Added}, {"gone", c.Gone}, {"with another key", c.Rekeyed}} {
		if old == nil || len(part.ids) == 0 {
			continue
		}
		fmt.Fprintf(o.stdout, "%s:", part.what)
		for _, id := range part.ids {
			n, ok := r.Node(id)
			if !ok {
				n, _ = old.Node(id)
			}
			fmt.Fprintf(o.stdout, " %d %s", id, n.Name)
		}
		fmt.Fprintln(o.stdout)
	}
	return nil
}

func showRoster(o *keysOrder) error {
	r, err := keyfile.LoadRoster(o.file)
	if err != nil {
		return err
	}
	at := "as soon as all have it"
	if !r.At.IsZero() {
		at = "from " + r.At.Format(time.RFC3339)
	}
	fmt.Fprintf(o.stdout, "net %s, roster %d of %s, digest %s, its secret is used %s; gateway keys roster verify says who signed it\n", r.Network, r.Serial, r.Made.Format(time.RFC3339), r.Fingerprint(), at)
	w := tabwriter.NewWriter(o.stdout, 0, 0, 2, ' ', 0)
	for _, n := range r.Nodes {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", n.ID, n.Name, n.Public.Fingerprint(), n.Words())
	}
	return w.Flush()
}

func verifyRoster(o *keysOrder) error {
	by, err := roster.ParseAuthorityPublic(o.by)
	if err != nil {
		return err
	}
	r, err := keyfile.LoadRoster(o.file)
	if err == nil {
		err = r.Verify(by)
	}
	if errors.Is(err, roster.ErrSignature) {
		return fmt.Errorf("%s: %w: it is not signed by %s", o.file, err, by.Fingerprint())
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(o.stdout, "%s is signed by %s\n", o.file, by.Fingerprint())
	return nil
}
