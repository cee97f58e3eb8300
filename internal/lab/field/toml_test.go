package field

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/edge/keyfile"
	"aldis/internal/lab/replay"
	"aldis/internal/link/compact"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

// TestRulesTOML: a gateway reads the same rules that its replay has.
func TestRulesTOML(t *testing.T) {
	pattern, err := mark.ParsePattern("TRK;{key};*;x")
	if err != nil {
		t.Fatal(err)
	}
	pipe := "uuid-59616261646162614E50472050325033BB04"
	g := replay.Gateway{
		Rules: []compact.Rule{{Type: "image/*", Effort: compact.None}, {Name: "trk", Octets: 900, Effort: compact.Light}, {Effort: compact.Full}},
		Filters: []filter.Rule{
			{Label: "a \"label\"", Direction: site.Out, Site: 2, Type: filter.Message, Pipe: pipe, Least: 5, Most: 90, Action: filter.Allow, Rate: filter.Rate{Count: 3, Per: time.Minute}},
			{Direction: site.In, Type: filter.Spec, Name: "x*", Action: filter.Deny}, {Action: filter.Local, Group: "jxta-NetGroup"},
		},
		Messages: []mark.Rule{{Element: "trk*", Least: 3, Precedence: precedence(t, "flash"), Expires: 90 * time.Second, LastValue: "trk:body", Pattern: pattern}, {Pipe: pipe, Precedence: precedence(t, "routine")}},
	}
	dir := t.TempDir()
	key := filepath.Join(dir, "net.key")
	if err := keyfile.NewKey(key); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("[node]\nid = 1\nname = \"hq\"\ndata_dir = %q\n[lan]\ntcp = \"10.20.0.1:9701\"\n[link]\nprofile = \"hf-300\"\nlisten = \"0.0.0.0:7142\"\nkey_file = %q\n"+
		"[[link.peer]]\nid = 2\nname = \"ship\"\n", dir, key) + rulesTOML(g, []*lanSite{{name: "hq"}, {name: "ship", index: 1}})
	file := filepath.Join(dir, "hq.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for i := range c.Filters {
		c.Filters[i].Line = 0
	}
	for i := range c.Messages {
		c.Messages[i].Line = 0
	}
	got := replay.Gateway{Rules: c.Rules, Filters: c.Filters, Messages: c.Messages}
	if !reflect.DeepEqual(got, g) {
		t.Errorf("%+v\nwant %+v\n%s", got, g, text)
	}
}

func precedence(t *testing.T, name string) site.Precedence {
	t.Helper()
	p, ok := site.ParsePrecedence(name)
	if !ok {
		t.Fatal(name)
	}
	return p
}
