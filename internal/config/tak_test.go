package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// [tak] is read with its rules, and each mistake in it is told by its key.
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
}
