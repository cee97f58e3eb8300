package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"aldis/internal/edge/keyfile"
	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
)

const good = `[node]
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
id = 0x0103
[http]
listen = "127.0.0.1:9142"
`

// write puts a configuration and a key into a new directory.
func write(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := keyfile.NewKey(filepath.Join(dir, "net.key")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "gateway.toml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// faults loads text and returns its mistakes as "line: key: problem".
func faults(t *testing.T, text string) []string {
	t.Helper()
	file := write(t, text)
	cfg, err := Load(file)
	if err == nil {
		return nil
	}
	if cfg != nil {
		t.Error("a configuration with mistakes was returned")
	}
	var lines []string
	for line := range strings.Lines(err.Error() + "\n") {
		line = strings.TrimSpace(line)
		line, _ = strings.CutPrefix(line, file+":")
		lines = append(lines, strings.ReplaceAll(line, filepath.Dir(file), "DIR"))
	}
	return lines
}

func TestLoad(t *testing.T) {
	file := write(t, good)
	dir := filepath.Dir(file)
	got, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	directip, err := profile.Load("iridium-directip", nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyfile.LoadKey(filepath.Join(dir, "net.key"))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		File: file,
		Node: Node{2, "ship", filepath.Join(dir, "data"), false, false, Secret{}},
		LAN:  LAN{TCP: netip.MustParseAddrPort("10.20.0.1:9701"), MaxConnections: 4096, MaxAway: 64, View: "complete"},
		Link: Link{
			ProfileName: "iridium-directip", Profile: directip, Listen: netip.MustParseAddrPort("0.0.0.0:7142"),
			KeyFile: filepath.Join(dir, "net.key"), Key: key, Direct: 4,
			Peers: []Peer{{1, "hq", netip.MustParseAddrPort("10.77.0.1:7142"), false, ""}, {0x0103, "node-259", netip.AddrPort{}, false, ""}},
		},
		HTTP:    HTTP{Listen: netip.MustParseAddrPort("127.0.0.1:9142")},
		Control: Control{Socket: filepath.Join(dir, "data", "control.sock"), GID: -1},
		Log:     Log{slog.LevelInfo, "auto"},

		Delivery: Delivery{24 * time.Hour, 64 << 20, 16 << 20},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Load =\n%+v\nwant\n%+v", got, want)
	}
	if w := got.Warnings(); len(w) != 0 {
		t.Errorf("warnings: %q", w)
	}
}

func TestLoadOptional(t *testing.T) {
	text := strings.NewReplacer(
		"key_file = \"net.key\"", "key_file = \"net.key\"\nend = \"shore\"\nkeepalive = \"2m\"",
		"[lan]", "[log]\nlevel = \"debug\"\nformat = \"json\"\n[lan]\nmulticast = true\nmax_connections = 1_0",
		"127.0.0.1:9142", "[::]:9142",
		"profile = \"iridium-directip\"", "profile = \"own.toml\"",
	).Replace(good)
	file := write(t, text)
	source, err := profile.Source("hf-2400")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "own.toml"), source, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(filepath.Dir(file), "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	check.True(t, "c.Link.Shore", c.Link.Shore)
	check.Equal(t, "c.Link.Keepalive", c.Link.Keepalive, 2*time.Minute)
	check.Equal(t, "c.LAN.MaxConnections", c.LAN.MaxConnections, 10)
	check.Equal(t, "c.LAN.Multicast", c.LAN.Multicast, JXTAGroup)
	check.Equal(t, "c.Log.Level", c.Log.Level, slog.LevelDebug)
	check.Equal(t, "c.Log.Format", c.Log.Format, "json")
	check.Equal(t, "c.Link.Profile.Name", c.Link.Profile.Name, "hf-2400")
	w := strings.Join(c.Warnings(), "\n")
	for _, want := range []string{"http.listen [::]:9142", "link.keepalive 2m0s: about 34560 octets", "mode 0755",
		"gateway pmul on this link is interoperability mode", "A forged Discard_Message_PDU makes one receiver forget"} {
		if !strings.Contains(w, want) {
			t.Errorf("warnings %q lack %q", w, want)
		}
	}
}

// Sections may also be written inline: the meaning is the same.
func TestLoadInline(t *testing.T) {
	c, err := Load(write(t, `node = { id = 2, name = "ship", data_dir = "/var/lib/aldis" }
lan.tcp = "10.20.0.1:9701"
[link]
profile = "iridium-directip"
listen = "0.0.0.0:7142"
key_file = "net.key"
peer = [ { id = 1, name = "hq" }, { id = 3 } ]
`))
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "c.Node.DataDir", c.Node.DataDir, "/var/lib/aldis")
	check.Equal(t, "c.LAN.TCP.Port()", c.LAN.TCP.Port(), 9701)
	check.Equal(t, "len(c.Link.Peers)", len(c.Link.Peers), 2)
	check.True(t, "not c.HTTP.Listen.IsValid()", !c.HTTP.Listen.IsValid())
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "no peer has an address") {
		t.Errorf("warnings: %q", w)
	}
}

func TestTenMistakes(t *testing.T) {
	got := faults(t, `[node]
id = 70000
name = ship
datadir = "data"
[lan]
tcp = "localhost:9701"
max_connections = "many"
[link]
profile = "iridium-directp"
listen = ":7142"
key_file = "lost.key"
keepalive = "20"
end = "sea"
[[link.peer]]
id = 1
name = "hq"
[[link.peer]]
id = 1
adress = "10.77.0.1:7142"
[htpp]
listen = "127.0.0.1:9142"
`)
	want := []string{
		`1: node.data_dir: is missing`,
		`2: node.id: must be a whole number from 1 to 65535, is 70000`,
		`3: is not TOML:`,
		`4: node.datadir: there is no such key; is data_dir meant?`,
		`6: lan.tcp: must be an IP address and a port, like "10.20.0.1:9701", is "localhost:9701"`,
		`7: lan.max_connections: must be a whole number from 4 to 20000, is "many"`,
		`9: link.profile: "iridium-directp": no such profile; there are `,
		`10: link.listen: must be an address and a port, is ":7142"; for all addresses of this machine write "0.0.0.0:7142"`,
		`11: link.key_file: DIR/lost.key does not exist;`,
		`12: link.keepalive: must be "0s" or a time`,
		`13: link.end: must be one of "terminal", "shore", is "sea"`,
		`18: link.peer.id: 1 is there twice, first in line 15`,
		`19: link.peer.adress: there is no such key; is address meant?`,
		`20: htpp: there is no such section; is http meant?`,
	}
	if len(got) != len(want) {
		t.Fatalf("%d mistakes, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("mistake %d: %q, want %q", i, got[i], want[i])
		}
	}
}

// Each change of the good configuration gives exactly these mistakes.
func TestMistakes(t *testing.T) {
	tests := []struct {
		name, old, new string
		want           []string
	}{
		{"own id", "id = 1\n", "id = 2\n", []string{"12: link.peer.id: 2 is node.id, this gateway's own"}},
		{"id 0", "id = 1\n", "id = 0\n", []string{"12: link.peer.id: must be a whole number from 1 to 65535, is 0"}},
		{"id as text", "id = 2\n", "id = \"2\"\n", []string{`2: node.id: must be a whole number from 1 to 65535, is "2"`}},
		{"no id", "id = 2\n", "\n", []string{"1: node.id: is missing"}},
		{"leading zero", "id = 2\n", "id = 02\n", []string{"2: is not TOML"}},
		{"a broken section", "[node]\n", "[node\n", []string{"1: is not TOML", "2: id: there is no such key", "3: name: there is no such key", "4: data_dir: there is no such key"}},
		{"a list", "id = 2\n", "id = [2]\n", []string{"2: node.id: must be a whole number from 1 to 65535, is a list"}},
		{"empty name", `"ship"`, `" "`, []string{"3: node.name: is empty"}},
		{"two members", "[lan]", "[cluster]\nmembers = [\"10.0.0.1:1\", \"10.0.0.2:1\"]\n[lan]", []string{`6: cluster.members: must be 3 to 9, are 2; two machines have [site]`}},
		{"a member twice", "[lan]", "[cluster]\nmembers = \"10.0.0.1:1, 10.0.0.2:1, 10.0.0.1:1\"\n[lan]", []string{`6: cluster.members: names 10.0.0.1:1 twice`}},
		{"odd name", `"ship"`, `"sh\u0007ip"`, []string{`3: node.name: must be at most 64 printable octets, is "sh\aip"`}},
		{"name twice", "id = 0x0103", "id = 3\nname = \"hq\"", []string{"17: link.peer.name: hq is there twice, first in line 13"}},
		{"id twice", "id = 0x0103", "id = 1", []string{"16: link.peer.id: 1 is there twice, first in line 12"}},
		{"another's name", "id = 0x0103", "id = 3\n[[link.peer]]\nid = 4\nname = \"node-3\"", []string{"19: link.peer.name: node-3 is there twice, first in line 15"}},
		{"address twice", "id = 0x0103", "id = 3\naddress = \"10.77.0.1:7142\"", []string{"17: link.peer.address: 10.77.0.1:7142 is there twice, first in line 14"}},
		{"peer nowhere", "10.77.0.1:7142", "0.0.0.0:7142", []string{"14: link.peer.address: must be the peer's address"}},
		{"no port", "10.20.0.1:9701", "10.20.0.1:0", []string{"6: lan.tcp: needs a port"}},
		{"lan nowhere", "10.20.0.1:9701", "0.0.0.0:9701", []string{"6: lan.tcp: must be the one address"}},
		{"lan nowhere over http", "tcp = \"10.20.0.1:9701\"", "http = \"[::]:9700\"", []string{"6: lan.http: must be the one address"}},
		{"one lan port for two", "[link]", "http = \"10.20.0.1:9701\"\n[link]", []string{"7: lan.http: is the address of lan.tcp"}},
		{"polls and status", "tcp = \"10.20.0.1:9701\"", "http = \"127.0.0.1:9142\"", []string{"18: http.listen: is the address of lan.http"}},
		{"http without a port", "tcp = \"10.20.0.1:9701\"", "http = \"10.20.0.1\"", []string{"6: lan.http: must be an IP address and a port"}},
		{"one port for two", "127.0.0.1:9142", "10.20.0.1:9701", []string{"18: http.listen: is the address of lan.tcp"}},
		{"no section", "[lan]\ntcp = \"10.20.0.1:9701\"\n", "", []string{"lan.tcp: is missing"}},
		{"section twice", "[http]", "[lan]\nmax_connections = 5\n[http]", []string{"17: lan: section is there twice, first in line 5"}},
		{"key twice", "id = 2\n", "id = 2\nid = 3\n", []string{"3: node.id: is set twice, first in line 2"}},
		{"one bracket", "[[link.peer]]\nid = 1", "[link.peer]\nid = 1", []string{"11: link.peer: is written with two brackets"}},
		{"two brackets", "[lan]", "[[lan]]", []string{"5: lan: is written with one bracket"}},
		{"no section at all", "[node]", "nodeid = 4\n[node]", []string{"1: nodeid: there is no such key"}},
		{"multicast not said", "[lan]", "[lan]\nmulticast_group = \"224.0.1.85:1234\"", []string{`6: lan.multicast_group: is of no use without multicast = true`}},
		{"multicast group that is none", "[lan]", "[lan]\nmulticast = true\nmulticast_group = \"10.0.1.85:1234\"", []string{`7: lan.multicast_group: 10.0.1.85 is no IPv4 multicast address`}},
		{"multicast over IPv6", "tcp = \"10.20.0.1:9701\"", "multicast = true\ntcp = \"[fd00::1]:9701\"", []string{`6: lan.multicast: needs an IPv4 address in lan.tcp`}},
		{"multicast in words", "[lan]", "[lan]\nmulticast = \"yes\"", []string{`6: lan.multicast: must be true or false, is "yes"`}},
		{"group with NORM", "key_file", "group = \"239.1.1.1:7142\"\nkey_file", []string{`10: link.group: is of no use with profile iridium-directip`}},
		{"group that is none", "key_file", "group = \"10.1.1.1:7142\"\nkey_file", []string{`10: link.group: 10.1.1.1 is no IPv4 multicast address`,
			`10: link.group: is of no use with profile iridium-directip`}},
		{"rule", "[http]", "[[compact.rule]]\ntype = \"image/[\"\neffort = \"hard\"\nsize = 3\n[http]", []string{
			`18: compact.rule.type: "image/[" is no pattern`, `19: compact.rule.effort: must be one of`, `20: compact.rule.size: there is no such key`}},
		{"no wait", "[http]", "[delivery]\nwait = \"0s\"\n[http]", []string{"18: delivery.wait: must be at least 1s"}},
		{"waiting octets", "[http]", "[delivery]\nwait = \"9999h\"\nmax_octets = 100000\nmax_octets_per_peer = 200000\n[http]", []string{
			`18: delivery.wait: must be "0s" or a time from "1s" to "8760h0m0s"`,
			"20: delivery.max_octets_per_peer: is more than delivery.max_octets, which is for all peers together: 100000"}},
		{"message rule", "[http]", "[[message]]\nprecedence = \"urgent\"\nexpires = \"10\"\nlast_value_pattern = \"TRK;*\"\noctets_min = 9\noctets_max = 8\n[http]", []string{
			`18: message.precedence: must be one of "deferred", "routine", "priority", "immediate", "flash", "override", is "urgent"`, `19: message.expires: must be "0s" or a time`,
			`20: message.last_value_pattern: "TRK;*" has no {key}; like "TRK;{key};*"`, `20: message.last_value_pattern: needs last_value`, `21: message.octets_min: the rule can never match`}},
		{"message rule that never matches", "[http]", "[[message]]\nelement = \"a*\"\n[[message]]\nelement = \"ab\"\nprecedence = \"flash\"\n[http]", []string{
			`19: message: the rule can never match: that of line 17 comes first`}},
		{"filter that is odd", "[http]", "[[filter]]\ntype = \"pipes\"\ngroup = \"ops\"\nsite = \"hk\"\nrate = \"fast\"\nsize = 3\n[http]", []string{
			`17: filter.action: is missing`, `18: filter.type: must be one of "peer", "group"`, `19: filter.group: is no group id, like "urn:jxta:uuid-…02" or "net": "ops"`,
			`20: filter.site: "hk" is neither name nor id of a [[link.peer]]; is hq meant?`, `21: filter.rate: must be a number and a time`, `22: filter.size: there is no such key`}},
		{"a peer's id for a pipe's", "[http]", "[[filter]]\npipe = \"urn:jxta:uuid-AA03\"\naction = \"deny\"\n[http]", []string{`18: filter.pipe: is no pipe id`}},
		{"filters that contradict", "[http]", "[[filter]]\nname = \"a*\"\naction = \"deny\"\n[[filter]]\nname = \"a*\"\naction = \"local\"\n[http]", []string{
			`22: filter.action: "local" contradicts the rule of line 17, which has the same conditions and action "deny"`}},
		{"a filter that never matches", "[http]", "[[filter]]\naction = \"deny\"\nsite = \"hq\"\n[[filter]]\naction = \"allow\"\nsite = \"1\"\ntype = \"pipe\"\n[[filter]]\noctets_min = 9\noctets_max = 8\naction = \"deny\"\n[http]", []string{
			`21: filter.action: the rule can never match: that of line 17 comes first`, `25: filter.octets_min: the rule can never match: nothing has at least 9`}},
		{"silent", "data_dir", "silent = \"yes\"\ndata_dir", []string{`4: node.silent: must be true or false, is "yes"`}},
		{"names", "[http]", "[http]\nnames = \"ship.example, ship:9142\"", []string{`18: http.names: "ship:9142" is no host name; several have a comma between them`}},
		{"token that is not there", "[http]", "[http]\ntoken_file = \"lost.token\"", []string{`18: http.token_file: DIR/lost.token does not exist; make one with: (umask 077;`}},
		{"socket", "[http]", "[control]\nsocket = \"" + strings.Repeat("s", 120) + "\"\ngroup = \"no such group\"\n[http]", []string{
			`18: control.socket: `, `19: control.group: "no such group" is no group of this machine`}},
		{"data_dir too long for its socket", `data_dir = "data"`, `data_dir = "` + strings.Repeat("d", 120) + `"`, []string{`control.socket: DIR/ddd`}},
		{"windows", "[http]", "[[silence]]\nfrom = \"25:00\"\nto = \"06:00\"\n[[silence]]\nfrom = \"22:00\"\n[[silence]]\nfrom = \"22:00\"\nto = \"2026-12-01T00:00:00Z\"\n" +
			"[[silence]]\nfrom = \"2026-12-02T00:00:00Z\"\nto = \"2026-12-01T00:00:00Z\"\ndays = \"someday\"\n[http]",
			[]string{"18: silence.from: must be a time of day in UTC", "20: silence.to: is missing", "24: silence.to: from and to must both", "27: silence.to: is not after from", `28: silence.days: "someday" is no day`}},
		{"keepalive too short", "key_file", "keepalive = \"10ms\"\nkey_file", []string{`10: link.keepalive: must be "0s" or a time`}},
		{"log", "[http]", "[log]\nlevel = \"loud\"\nformat = 3\n[http]", []string{"18: log.level: must be one of", "19: log.format: must be text"}},
		{"profile's file", `"iridium-directip"`, `"lost.toml"`, []string{"8: link.profile: DIR/lost.toml cannot be read: no such file"}},
		{"data_dir is a file", `data_dir = "data"`, `data_dir = "net.key"`, []string{"4: node.data_dir: DIR/net.key is not a directory"}},
		{"deep", "id = 2\n", "id = " + strings.Repeat("[", 20_000) + "\n", []string{"2: is not TOML"}},
		{"two broken lines", "id = 2\nname = \"ship\"", "id = ?\nname = \"ship", []string{
			"2: is not TOML", "3: is not TOML"}},
		{"one broken line, one missing", "id = 2\nname = \"ship\"", "id = ?\n", []string{"2: is not TOML", "1: node.name: is missing"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(good, tt.old) {
				t.Fatalf("%q is not in the good configuration", tt.old)
			}
			got := faults(t, strings.Replace(good, tt.old, tt.new, 1))
			missing := 0
			for _, w := range tt.want {
				found := false
				for _, g := range got {
					found = found || strings.HasPrefix(strings.TrimSpace(g), w)
				}
				if !found {
					missing++
				}
			}
			if missing > 0 || len(got) != len(tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// A profile with mistakes is reported with the profile's own file and lines, together with the rest.
func TestMistakesInProfile(t *testing.T) {
	file := write(t, strings.NewReplacer(`"iridium-directip"`, `"own.toml"`, "id = 2\n", "id = -2\n").Replace(good))
	own := filepath.Join(filepath.Dir(file), "own.toml")
	if err := os.WriteFile(own, []byte("name = \"own\"\nsummary = 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Load(file)
	if err == nil {
		t.Fatal("accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	if !strings.HasPrefix(lines[0], file+":2: node.id: ") || !strings.Contains(err.Error(), own+":2: summary: ") || len(lines) < 4 {
		t.Errorf("%s", err)
	}
}

func TestLoadRefusesFiles(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	os.WriteFile(big, make([]byte, maxFile+1), 0o644)
	binary := filepath.Join(dir, "binary")
	os.WriteFile(binary, []byte{0xff, 0xfe, 0}, 0o644)
	for file, want := range map[string]string{
		filepath.Join(dir, "lost"): "cannot be read: no such file or directory",
		dir:                        "is a directory",
		big:                        "has 1048577 octets",
		binary:                     "is not UTF-8 text",
	} {
		_, err := Load(file)
		if err == nil || !strings.HasPrefix(err.Error(), file+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

func TestHTTPListen(t *testing.T) {
	for _, tt := range []struct{ text, want, err string }{
		{good, "127.0.0.1:9142", ""},
		{"broken\n[http]\nlisten = \"[::1]:9\"", "[::1]:9", ""}, // a status wants no faultless configuration
		{"[http]", "", ":1: http.listen: is missing"},
		{"", "", "http.listen: is missing"},
		{"[http]\nlisten = 3", "", ":2: http.listen: must be text"},
	} {
		at, err := HTTPListen(write(t, tt.text))
		in := check.In(t, tt.text)
		if tt.err == "" {
			check.NoError(in, err)
			check.Equal(in, "at", at.String(), tt.want)
		} else if check.True(in, "an error", err != nil) {
			check.Contains(in, "err.Error()", err.Error(), tt.err)
		}
	}
	if _, err := HTTPListen(t.TempDir() + "/lost"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
}

// Whatever the file says, Load returns, and each mistake names the file.
func FuzzLoad(f *testing.F) {
	f.Add(good)
	f.Add("[node\nid = \"\"\"\n")
	f.Add("link.peer.id = 3\n[[link.peer]]\n[link]\npeer = [1, {id = 2}]\n")
	f.Add("a = {b = {c = {}}}\n[[a]]\n")
	f.Add("x = \"\\uD800\"\n\x00 = 1")
	file := filepath.Join(f.TempDir(), "gateway.toml")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cfg, err := Load(file)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("%v, %v", cfg, err)
		}
		var joined interface{ Unwrap() []error }
		if errors.As(err, &joined) {
			for _, e := range joined.Unwrap() {
				var fe *profile.FieldError
				if !errors.As(e, &fe) || fe.Line > 1+strings.Count(text, "\n") && fe.File == file {
					t.Fatalf("%v", e)
				}
			}
		}
	})
}

func ExampleLoad() {
	_, err := Load("testdata/lost.toml")
	fmt.Println(err)
	// Output: testdata/lost.toml: cannot be read: no such file or directory
}

func TestWideFilterIsOdd(t *testing.T) {
	for rule, odd := range map[string]bool{
		"type = \"listener\"\naction = \"deny\"":                 true,
		"direction = \"out\"\naction = \"local\"":                true,
		"type = \"listener\"\nsite = \"hq\"\naction = \"deny\"":  true,
		"type = \"pipe\"\naction = \"deny\"":                     false,
		"group = \"net\"\naction = \"deny\"":                     false,
		"type = \"peer\"\naction = \"allow\"\nrate = \"50/min\"": false,
	} {
		cfg, err := Load(write(t, strings.Replace(good, "[http]", "[[filter]]\n"+rule+"\n[http]", 1)))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(cfg.Warnings(), "\n"), "line 17 keeps all peers or open pipes"); got != odd {
			t.Errorf("%s: odd %v, want %v", rule, got, odd)
		}
	}
}

// Who may give orders, and over which sockets.
func TestOrders(t *testing.T) {
	text := strings.Replace(good, "[http]\n", "[control]\nsocket = \"orders.sock\"\ngroup = \"root\"\n[http]\nnames = \"ship.example, aldis\"\ntoken_file = \"orders.token\"\n", 1)
	text = strings.Replace(text, "data_dir", "silent = true\ndata_dir", 1)
	file := write(t, text)
	dir := filepath.Dir(file)
	token := filepath.Join(dir, "orders.token")
	if err := os.WriteFile(token, []byte("TCVkDPWmCbUzL0hM\nfor the watch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "c.Control", c.Control, Control{Socket: filepath.Join(dir, "orders.sock"), Group: "root", GID: 0})
	check.Same(t, "c.HTTP.Names", c.HTTP.Names, []string{"ship.example", "aldis"})
	check.Equal(t, "c.HTTP.Token", c.HTTP.Token, "TCVkDPWmCbUzL0hM")
	check.True(t, "c.Node.Silent", c.Node.Silent)
	check.Same(t, "warnings", c.Warnings(), []string{"node.silent: nothing is transmitted on the link, and no order ends that"})
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"open to others", "TCVkDPWmCbUzL0hM", 0o640, "can be read by others than its owner (mode 0640)"},
		{"short", "TCVkDPWmCbUzL0h\n", 0o600, "at least 16 printable characters"},
		{"a space", "TCVkDPWmCbUzL0hM TCVkDPWmCbUzL0hM", 0o600, "without a space"},
		{"empty", "", 0o600, "at least 16"},
		{"binary", strings.Repeat("\x00", 5000), 0o600, "at least 16"},
	} {
		if err := errors.Join(os.WriteFile(token, []byte(tt.text), 0o600), os.Chmod(token, tt.mode)); err != nil {
			t.Fatal(err)
		}
		_, err := keyfile.LoadToken(token)
		check.Contains(check.In(t, tt.name), "error", fmt.Sprint(err), tt.want)
	}
	c.Control.Socket = filepath.Join(c.Node.DataDir, "control.sock")
	check.Contains(t, "warnings", strings.Join(c.Warnings(), "\n"), "its members cannot come to control.socket in node.data_dir")
}

// A command that gives an order reads the socket's path, whatever else the file says.
func TestControlSocket(t *testing.T) {
	for _, tt := range []struct{ text, want, says string }{
		{good, "data/control.sock", ""},
		{"[node]\nid = \"x\"\ndata_dir = \"d\"\n[lan]\ntcp = 3\n", "d/control.sock", ""},
		{"[control]\nsocket = \"run/c.sock\"\n", "run/c.sock", ""},
		{"[control]\nsocket = \"/run/c.sock\"\n", "/run/c.sock", ""},
		{"[node]\nid = 1\n", "", "node.data_dir: is missing"},
		{"[control]\nsocket = 3\n", "", "control.socket: must be text"},
	} {
		file := write(t, tt.text)
		path, err := ControlSocket(file)
		if tt.says != "" {
			check.Contains(check.In(t, tt.text), "error", fmt.Sprint(err), tt.says)
			continue
		}
		check.NoError(check.In(t, tt.text), err)
		check.Equal(check.In(t, tt.text), "path", strings.TrimPrefix(path, filepath.Dir(file)+"/"), tt.want)
	}
}

// Files lists every file that Load reads: a gateway that has given up its rights can read no others.
func TestFiles(t *testing.T) {
	at := netip.MustParseAddrPort("127.0.0.1:1")
	for what, c := range map[string]*Config{
		"/a/g.toml /b/net.key": {File: "/a/g.toml", Link: Link{ProfileName: "hf-2400", KeyFile: "/b/net.key"}},
		"/a/g.toml /b/r /c/k /d/t /a/p.toml /e/" + keyfile.ServerCert: {File: "/a/g.toml", HTTP: HTTP{TokenFile: "/d/t"}, TAK: TAK{TLS: at, Keys: "/e"},
			Link: Link{ProfileName: "./p.toml", Trust: Trust{RosterFile: "/b/r", NodeKeyFile: "/c/k"}}},
	} {
		check.Equal(t, "files", strings.Join(c.Files(), " "), what)
	}
}

// A directory in which others can write is reported even if the mode of the key is right: they can replace the key.
func TestKeyInADirectoryOfOthers(t *testing.T) {
	dir := t.TempDir()
	for mode, want := range map[os.FileMode]bool{0o755: false, 0o775: true, 0o757: true, 0o777 | os.ModeSticky: false} {
		check.NoError(t, os.Chmod(dir, mode))
		c := Config{Link: Link{KeyFile: filepath.Join(dir, "net.key")}}
		got := strings.Contains(strings.Join(c.Warnings(), "\n"), "others can put another file in the place of net.key")
		check.Equal(t, fmt.Sprintf("warning with mode %v", mode), got, want)
	}
}
