package borders

import (
	"strings"
	"testing"
)

// sample is a small house.
var sample = table{
	{"jxta", Pure, "JXTA", false, "", nil},
	{"link/frame", Pure, "link", false, "", nil},
	{"jxtabridge", Pure, "adapters", true, "", []string{"jxta"}},
	{"jxtabridge/reliable", Pure, "adapters", false, "", nil},
	{"xmpp", Pure, "adapters", true, "", nil},
	{"gateway", Pure, "core", false, "", []string{"jxtabridge"}},
	{"edge/lan", Edge, "edges", false, "", []string{"jxta"}},
	{"lab/sim", Pure, "lab", false, "", []string{"gateway"}},
	{"lab/field", Edge, "lab", false, "", nil},
	{"cmd/gateway", Edge, "programs", false, "", nil},
}

func TestWall(t *testing.T) {
	for _, tt := range []struct{ file, imports, want string }{
		{"internal/jxtabridge/a.go", "jxta", ""},
		{"internal/edge/lan/a.go", "gateway", "the table of rooms does not let edge/lan import gateway"},
		{"internal/edge/lan/a.go", "attic", "imports attic, which the table of rooms does not have"},
		{"internal/jxtabridge/a.go", "xmpp", "the adapter jxtabridge imports the adapter xmpp"},
		{"internal/jxtabridge/a_test.go", "xmpp", "the adapter jxtabridge imports the adapter xmpp"},
		{"internal/xmpp/a.go", "jxtabridge/reliable", "the adapter xmpp imports the adapter jxtabridge"},
		{"internal/jxtabridge/reliable/a.go", "xmpp", "the adapter jxtabridge imports the adapter xmpp"},
		{"internal/jxtabridge/a_test.go", "jxtabridge/reliable", ""},
		{"internal/jxtabridge/a_test.go", "jxtabridge", ""},
		{"internal/gateway/a_test.go", "lab/sim", ""},
		{"internal/gateway/a_test.go", "lab/field", ""},
		{"internal/gateway/a_test.go", "edge/lan", "a test of a pure room imports the edge room edge/lan"},
		{"internal/edge/lan/a_test.go", "gateway", ""},
		{"cmd/gateway/a.go", "lab/sim", "the table of rooms does not let cmd/gateway import lab/sim"},
	} {
		f := tree(t, map[string]string{tt.file: "package a\nimport (\n\"fmt\"\n\"aldis/internal/" + tt.imports + "\"\n)"})[0]
		var want []string
		if tt.want != "" {
			want = []string{tt.file + ":4: " + tt.want}
		}
		same(t, tt.file+" imports "+tt.imports, spell(f.wall(sample)), want)
	}
}

func TestWalls(t *testing.T) {
	good := func() map[string]string {
		files := map[string]string{}
		for _, r := range sample {
			text := "package a\n"
			for _, p := range r.May {
				text += "import \"aldis/internal/" + p + "\"\n"
			}
			files[r.dir()+"/a.go"] = text
		}
		return files
	}
	with := func(r Room) table { return append(sample[:len(sample):len(sample)], r) }
	for _, tt := range []struct {
		name   string
		change func(files map[string]string)
		rooms  table
		upward map[string][]string
		want   string
	}{
		{"as it should be", nil, sample, nil, ""},
		{"a room without an entry", func(f map[string]string) { f["internal/attic/a.go"] = "package attic" }, sample, nil,
			"internal/attic: a room that the table does not have"},
		{"a room with nothing but tests", func(f map[string]string) { f["internal/attic/a_test.go"] = "package attic" }, sample, nil,
			"internal/attic: a room that the table does not have"},
		{"a file at the top", func(f map[string]string) { f["a.go"] = "package a" }, sample, nil, "a.go: a Go file outside the rooms"},
		{"an entry without a room", nil, with(Room{Path: "attic", District: "lab"}), nil, "internal/attic: the table has this room, the tree does not"},
		{"an entry twice", nil, with(Room{Path: "xmpp", District: "adapters"}), nil, "internal/xmpp: the table has this room twice"},
		{"an import that is gone", func(f map[string]string) { f["internal/edge/lan/a.go"] = "package lan" }, sample, nil,
			"internal/edge/lan: the table permits jxta, which no file imports any more"},
		{"an import that only a test has", func(f map[string]string) {
			f["internal/edge/lan/a_test.go"], f["internal/edge/lan/a.go"] = f["internal/edge/lan/a.go"], "package lan"
		}, sample, nil, "internal/edge/lan: the table permits jxta, which no file imports any more"},
		{"no such district", func(f map[string]string) { f["internal/attic/a.go"] = "package attic" }, with(Room{Path: "attic", District: "roof"}), nil,
			`internal/attic: no district is called "roof"`},
		{"link imports the gateway", func(f map[string]string) {
			f["internal/link/seal/a.go"] = "package seal\nimport \"aldis/internal/gateway\""
		}, with(Room{Path: "link/seal", District: "link", May: []string{"gateway"}}), nil,
			"internal/link/seal: a room of the district link may not import gateway of the district core above it"},
		{"what sails imports the lab", func(f map[string]string) {
			f["internal/edge/radio/a.go"] = "package radio\nimport \"aldis/internal/lab/sim\""
		}, with(Room{Path: "edge/radio", District: "edges", May: []string{"lab/sim"}}), nil,
			"internal/edge/radio: a room of the district edges may not import lab/sim of the district lab above it"},
		{"an excuse", func(f map[string]string) {
			f["internal/link/seal/a.go"] = "package seal\nimport \"aldis/internal/gateway\""
		}, with(Room{Path: "link/seal", District: "link", May: []string{"gateway"}}), map[string][]string{"link/seal": {"gateway"}}, ""},
		{"an excuse for nothing", nil, sample, map[string][]string{"link/frame": {"gateway"}},
			"internal/link/frame: Upward excuses an import of gateway that is gone"},
		{"an excuse that needs none", nil, sample, map[string][]string{"gateway": {"jxtabridge"}},
			"internal/gateway: Upward excuses an import of jxtabridge that is gone"},
	} {
		files := good()
		if tt.change != nil {
			tt.change(files)
		}
		if got := strings.Join(spell(walls(tree(t, files), tt.rooms, tt.upward)), "\n"); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A room is in the folder of its district, except rooms with fixed paths.
func TestAstray(t *testing.T) {
	same(t, "rooms", spell(astray(table{
		{Path: "lan", District: "edges"}, {Path: "edge/radio", District: "edges"}, {Path: "jxtabridge/reliable", District: "adapters"},
		{Path: "gateway", District: "core"}, {Path: "cmd/gateway", District: "programs"},
	})), []string{"internal/lan: lies outside of internal/edge, the folder of the district edges"})
}
