package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// [tak] is read with its rules, and each mistake in it is reported with its key.
func TestTAK(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "net.key"), []byte("aldis net key 1\n"+strings.Repeat("AQID", 10)+"AQI=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(tak string) (*Config, error) {
		file := filepath.Join(dir, "gateway.toml")
		text := "[node]\nid = 2\nname = \"ship\"\ndata_dir = \"data\"\n[link]\nprofile = \"iridium-dialup\"\nlisten = \"127.0.0.1:7142\"\nkey_file = \"net.key\"\n[[link.peer]]\nid = 1\nname = \"hq\"\n" + tak
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return Load(file)
	}
	c, err := load("[tak]\nlisten = \"127.0.0.1:8087\"\n[[tak.rule]]\naffiliation = \"n\"\naround = \"own u 5000\"\nprecedence = \"flash\"\n[[tak.rule]]\nsite = \"hq\"\nbox = \"54 179 55 -179\"\n")
	if err != nil {
		t.Fatal(err)
	}
	if r := c.TAK.Rules; len(r) != 2 || r[0].Around.Own != "u" || r[0].Around.Radius != 5000 || r[0].Precedence.String() != "flash" || r[1].Site != 1 || r[1].Box.West != 179 {
		t.Errorf("rules %+v", r)
	}
	if c.TAK.Bound != 50 || !c.TAK.On() {
		t.Errorf("%+v", c.TAK)
	}
	_, err = load("[tak]\nbound = 0\ncadence = \"1h\"\n[[tak.rule]]\ntype = \"a-*\"\naffiliation = \"xyz\"\nbox = \"1 2 3\"\naround = \"somewhere\"\naction = \"deny\"\nsite = \"nowhere\"\n")
	if err == nil {
		t.Fatal("it was read")
	}
	for _, key := range []string{"tak.listen", "tak.bound", "tak.cadence", "tak.rule.type", "tak.rule.affiliation", "tak.rule.box", "tak.rule.around",
		"tak.rule.action", "tak.rule.site"} {
		if !strings.Contains(err.Error(), key+":") {
			t.Errorf("no word of %s in\n%v", key, err)
		}
	}
	c, err = load("[tak]\nlisten = \"127.0.0.1:8087\"\nfiles = \"127.0.0.1:8080\"\nmax_file = 5000\n")
	if err != nil {
		t.Fatal(err)
	}
	if f := c.TAK.Files; f.URL() != "http://127.0.0.1:8080" || f.MostFile != 5000 || f.Crossing != 5000 || f.Life != 7*24*time.Hour {
		t.Errorf("files %+v", f)
	}
	_, err = load("[tak]\nlisten = \"127.0.0.1:8087\"\nfiles = \"0.0.0.0:8080\"\nfiles_tls = \"127.0.0.1:8087\"\nmax_files = 2000\n")
	for _, want := range []string{"tak.files: must be an address that devices reach", "tak.files_tls: is the address of tak.listen", "tak.tls_keys:", "tak.max_files: is less than max_file"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	c, err = load("[tak]\nlisten = \"127.0.0.1:8087\"\n[[tak.want]]\ntype = \"a-f\"\nbox = \"54 9 55 11\"\n[[tak.rule]]\npolygon = \"54 10 55 10 54.5 11\"\noctets_per_minute = 300\n")
	if err != nil {
		t.Fatal(err)
	}
	if w := c.TAK.Wants; len(w) != 1 || w[0].Type != "a-f" || w[0].Box.East != 11 || len(c.TAK.Rules[0].Polygon) != 3 || c.TAK.Rules[0].Rate != 300 {
		t.Errorf("%+v, %+v", w, c.TAK.Rules)
	}
	_, err = load("[tak]\nlisten = \"127.0.0.1:8087\"\n[[tak.want]]\n[[tak.want]]\ntype = \"a-*\"\n[[tak.rule]]\npolygon = \"54 10 55 10\"\n[[tak.rule]]\npolygon = \"54 10 55 10 154 11\"\n")
	for _, want := range []string{"tak.want.type: is missing", "a-*", "there are 4 numbers", "outside of the world: 154 11"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	for text, want := range map[string]string{"": "10.20.0.1:4242", "mesh_unicast = \"off\"\n": "invalid AddrPort", "mesh_unicast = \"10.20.0.1:4300\"\n": "10.20.0.1:4300"} {
		c, err := load("[tak]\nmesh = \"10.20.0.1\"\n" + text)
		if err != nil || c.TAK.Unicast.String() != want {
			t.Errorf("%q: %v, %v", text, c, err)
		}
	}
	for _, bad := range []string{"0.0.0.0:4242", "[::1]:4242", "10.20.0.1", "10.20.0.1:8087"} {
		if _, err := load("[tak]\nlisten = \"10.20.0.1:8087\"\nmesh = \"10.20.0.1\"\nmesh_unicast = \"" + bad + "\"\n"); err == nil || !strings.Contains(err.Error(), "tak.mesh_unicast:") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	c, err = load("[tak]\nlisten = \"127.0.0.1:8087\"\nfiles = \"127.0.0.1:8080\"\n[[tak.bring]]\nsite = \"hq\"\nname = \"*.zip\"\noctets_max = 20000\n")
	if err != nil || len(c.TAK.Files.Bring) != 1 || c.TAK.Files.Bring[0].Site != 1 || c.TAK.Files.Bring[0].Most != 20000 || c.TAK.Files.Bring[0].Name != "*.zip" {
		t.Errorf("%v, %v", c, err)
	}
	if _, err = load("[tak]\nlisten = \"127.0.0.1:8087\"\n[[tak.bring]]\nsite = \"nowhere\"\n"); err == nil || !strings.Contains(err.Error(), "tak.bring: is of no use without tak.files") || !strings.Contains(err.Error(), "tak.bring.site:") {
		t.Error(err)
	}
	_, err = load("[tak]\nlisten = \"127.0.0.1:8087\"\nserver_keys = \"nowhere\"\n")
	for _, want := range []string{"tak.server_keys: is of no use without server", "the directory needs ca.pem"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}
