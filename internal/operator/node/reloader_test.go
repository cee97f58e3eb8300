package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/edge/audit"
	"aldis/internal/edge/config"
	"aldis/internal/edge/keyfile"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/operator/control"
)

const reloaded = `[node]
id = 2
name = "ship"
data_dir = "data"
[lan]
tcp = "10.20.0.1:9701"
[link]
profile = "iridium-directip"
listen = "0.0.0.0:7142"
key_file = "net.key"
[[link.peer]]
id = 1
name = "hq"
address = "10.77.0.1:7142"
[[link.peer]]
id = 3
name = "ship2"
address = "10.77.0.3:7142"
`

// reloading is a reloader whose file has other text than is in force. s is the status of its gateway, which obeys each NewLink.
func reloading(t *testing.T, is string, s *control.Snapshot) *reloader {
	c, dir := check.Fatal(t), t.TempDir()
	file := filepath.Join(dir, "gateway.toml")
	check.NoError(c, keyfile.NewKey(filepath.Join(dir, "net.key")))
	check.NoError(c, os.WriteFile(file, []byte(reloaded), 0o644))
	cfg, err := config.Load(file)
	check.NoError(c, err)
	check.NoError(c, os.WriteFile(file, []byte(is), 0o644))
	r := &reloader{level: new(slog.LevelVar), log: slog.New(slog.DiscardHandler), keep: func(audit.Entry) {},
		order: func(ev api.Event) {
			if _, is := ev.(gateway.NewLink); is {
				s.Gateway.Relinked++
			}
		},
		status: func(context.Context) (control.Snapshot, error) { return *s, nil }}
	r.force.Store(cfg)
	return r
}

// A reload that fails after a part of it is in force says so; before that it says that nothing was changed.
func TestReloadThatFailsHalfWay(t *testing.T) {
	next := strings.Replace(reloaded, "[[link.peer]]\nid = 3", "[[silence]]\nfrom = \"02:00\"\nto = \"03:00\"\n[[filter]]\ndirection = \"out\"\naction = \"deny\"\n[[link.peer]]\nid = 3", 1)
	for _, c := range []struct {
		fails uint64 // from that many NewLinks on
		says  string
		not   string
	}{{1, "a part of the new configuration is in force already, reload again: ", "nothing was changed"}, {0, "nothing was changed", "in force already"}} {
		s := &control.Snapshot{}
		r := reloading(t, next, s)
		asked := uint64(0)
		r.status = func(context.Context) (control.Snapshot, error) {
			if asked++; s.Gateway.Relinked >= c.fails && (c.fails == 0 || asked > 2) {
				return *s, errors.New("the loop does not answer")
			}
			return *s, nil
		}
		_, err := r.reload(t.Context(), false)
		if check.True(t, "an error", err != nil) {
			check.Contains(t, "the error", err.Error(), c.says)
			check.Contains(t, "the error", err.Error(), "the loop does not answer")
			check.Lacks(t, "the error", err.Error(), c.not)
		}
	}
}

// A dry run says that a peer's messages are cancelled with its section, unless the roster names the peer.
func TestReloadWithoutAPeer(t *testing.T) {
	next, _, _ := strings.Cut(reloaded, "[[link.peer]]\nid = 3")
	s := &control.Snapshot{Gateway: api.Status{Peers: []api.PeerStatus{{ID: 1}, {ID: 3, Waiting: 4}}}}
	r := reloading(t, next, s)
	for _, says := range []string{"4 messages that wait for it", "the roster names it, so it stays a peer"} {
		answer, err := r.reload(t.Context(), true)
		check.NoError(check.Fatal(t), err)
		check.Contains(t, "the change", InLines(answer.(Reloaded).Changes), says)
		s.Gateway.Peers[1].Enrolled = true
	}
}

// A reload that was not confirmed comes into force nevertheless when the loop gets to it. Whoever takes the file back gives all orders
// again, though nothing is different from the last configuration that was confirmed.
func TestReloadTakenBack(t *testing.T) {
	dir := t.TempDir()
	check.NoError(t, keyfile.NewKey(filepath.Join(dir, "net.key")))
	file := filepath.Join(dir, "gateway.toml")
	write := func(more string) {
		check.NoError(t, os.WriteFile(file, []byte("[node]\nid = 2\nname = \"ship\"\ndata_dir = \"data\"\n[lan]\ntcp = \"10.20.0.1:9701\"\n[link]\nprofile = \"iridium-directip\"\nlisten = \"0.0.0.0:7142\"\nkey_file = \"net.key\"\n[[link.peer]]\nid = 1\nname = \"hq\"\naddress = \"10.77.0.1:7142\"\n"+more), 0o600))
	}
	write("")
	first, err := config.Load(file)
	check.NoError(t, err)
	var ordered []api.Event // the loop obeys all but the first before it is asked again
	r := &reloader{level: new(slog.LevelVar), log: slog.New(slog.DiscardHandler), keep: func(audit.Entry) {}, order: func(ev api.Event) { ordered = append(ordered, ev) },
		status: func(context.Context) (control.Snapshot, error) {
			if len(ordered) == 1 {
				return control.Snapshot{}, errors.New("the loop does not answer")
			}
			n := uint64(len(ordered))
			return control.Snapshot{Gateway: api.Status{Relinked: n, Reloads: n}, LAN: jxtabridge.Status{View: jxtabridge.View(first.LAN.View)}}, nil
		}}
	r.force.Store(first)
	write("[[filter]]\naction = \"deny\"\n")
	_, err = r.reload(t.Context(), false)
	check.True(t, "not confirmed", err != nil && !errors.As(err, new(control.Refusal)), err)
	write("")
	ordered = append(ordered, nil) // the loop answers again
	_, err = r.reload(t.Context(), false)
	check.NoError(t, err)
	again := ordered[2:]
	check.Equal(check.Fatal(t), "orders that were given again", len(again), 3)
	_, link := again[0].(gateway.NewLink)
	rules, is := again[1].(gateway.NewRules)
	check.True(t, "the link and the rules of the file", link && is && len(rules.Filter) == 0, again)
	_, err = r.reload(t.Context(), false)
	check.NoError(t, err)
	check.Equal(t, "orders once all is confirmed", len(ordered), 5)
}
