package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// withLinks loads a configuration with these [[link]] sections.
func withLinks(t *testing.T, links string) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	check.NoError(check.Fatal(t), os.WriteFile(filepath.Join(dir, "net.key"), []byte("aldis net key 1\nAQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"), 0o600))
	file := filepath.Join(dir, "gateway.toml")
	text := "[node]\nid = 2\nname = \"ship\"\ndata_dir = \"data\"\n[lan]\ntcp = \"10.0.0.1:9701\"\n" + links
	check.NoError(check.Fatal(t), os.WriteFile(file, []byte(text), 0o600))
	return Load(file)
}

const twoLinks = `
[[link]]
name = "iridium"
profile = "iridium-directip"
listen = "10.77.0.2:7142"
key_file = "net.key"
[[link.peer]]
id = 1
name = "hq"
address = "10.77.0.1:7142"

[[link]]
name = "hf"
profile = "hf-2400"
price = 0.5
listen = "10.78.0.2:7142"
group = "239.1.1.1:7142"
[[link.peer]]
id = 1
address = "10.78.0.1:7142"
`

func TestSeveralLinks(t *testing.T) {
	c, err := withLinks(t, twoLinks)
	check.NoError(check.Fatal(t), err)
	all := c.Bearers()
	check.Equal(check.Fatal(t), "bearers", len(all), 2)
	check.Equal(t, "the first", all[0].Name+" "+all[0].Peers[0].Address.String(), "iridium 10.77.0.1:7142")
	check.Equal(t, "the second", all[1].Name+" "+all[1].Peers[0].Address.String()+" "+all[1].Profile.Name, "hf 10.78.0.1:7142 hf-2400")
	check.True(t, "its price", all[1].Price == 0.5, all[1].Price)
	one, err := withLinks(t, twoLinks[:strings.Index(twoLinks, "\n[[link]]\nname = \"hf\"")])
	check.NoError(check.Fatal(t), err)
	changes := one.Changes(c)
	check.True(t, "a second link is a change, and needs a restart", slices.ContainsFunc(changes, func(c Change) bool { return c.Key == "[[link]]" && c.Restart }), changes)
}

func TestMistakesOfSeveralLinks(t *testing.T) {
	for _, tt := range []struct{ name, from, to, want string }{
		{"no name", "name = \"hf\"\n", "", "link.name: is missing: each of several [[link]] needs one"},
		{"one name twice", "name = \"hf\"", "name = \"iridium\"", "link.name: iridium is there twice, first in line 9"},
		{"one address twice", "10.78.0.2", "10.77.0.2", "link.listen: 10.77.0.2:7142 is there twice"},
		{"an address of another bearer", "10.78.0.1", "10.77.0.1", "link.peer.address: 10.77.0.1:7142 is there twice"},
		{"a peer of this bearer alone", "[[link.peer]]\nid = 1\naddress = \"10.78", "[[link.peer]]\nid = 3\naddress = \"10.78", "link.peer.id: 3 is no peer of the first [[link]]"},
		{"keys of a bearer", "price = 0.5", "key_file = \"net.key\"", "link.key_file: belongs to the network"},
		{"no profile", "profile = \"hf-2400\"\n", "", "link.profile: is missing"},
		{"a profile that is none", "hf-2400", "hf-2500", "link.profile: \"hf-2500\": no such profile"},
		{"a price below nothing", "price = 0.5", "price = -1", "link.price: must be a number from 0 on"},
		{"a key that is none", "price = 0.5", "prize = 1", "link.prize: there is no such key"},
	} {
		text := strings.Replace(twoLinks, tt.from, tt.to, 1)
		_, err := withLinks(t, text)
		check.True(t, tt.name+": it is refused", text != twoLinks && err != nil && strings.Contains(err.Error(), tt.want), err)
	}
}
