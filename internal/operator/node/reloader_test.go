package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
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
