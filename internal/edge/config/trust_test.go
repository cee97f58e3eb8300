package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/edge/keyfile"
	"aldis/internal/lab/check"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// rosterSite writes keys, a roster of nodes 1 to 3 and a configuration of node 1; change may spoil any of them.
func rosterSite(t *testing.T, change func(dir string, lines []string) []string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	authority := seal.NewSigningKey([32]byte{99})
	var nodes []roster.Node
	for id := uint16(1); id <= 3; id++ {
		k, err := keyfile.NewNodeKey(filepath.Join(dir, fmt.Sprintf("node%d.key", id)))
		check.NoError(check.Fatal(t), err)
		nodes = append(nodes, roster.Node{ID: id, Name: fmt.Sprintf("ship%d", id), Public: k.Public()})
	}
	r, err := roster.Issue("blue", nil, nodes, time.Unix(1_800_000_000, 0), time.Time{}, [roster.RandomForIssue]byte{1}, authority)
	check.NoError(check.Fatal(t), err)
	check.NoError(t, keyfile.WriteNew(filepath.Join(dir, "net.roster"), r.Text(), 0o644))
	lines := []string{
		"[node]", "id = 1", `name = "hq"`, `data_dir = "data"`, "[lan]", `tcp = "127.0.0.1:9701"`,
		"[link]", `profile = "iridium-directip"`, `listen = "127.0.0.1:7142"`,
		`roster = "net.roster"`, `node_key = "node1.key"`, fmt.Sprintf("authority = %q", roster.AuthorityPublic(authority.Public())),
		"[[link.peer]]", "id = 2",
	}
	if change != nil {
		lines = change(dir, lines)
	}
	file := filepath.Join(dir, "gateway.toml")
	check.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644))
	c, err := Load(file)
	if err == nil {
		check.True(t, "keys of single nodes", c.Link.Trust.On() && c.Link.Trust.Own != nil)
		check.Equal(t, "name from the roster", c.Link.Peers[0].Name, "ship2")
		return "", nil
	}
	return strings.ReplaceAll(err.Error(), dir, "DIR"), err
}

func TestRosterInConfiguration(t *testing.T) {
	_, err := rosterSite(t, nil)
	check.NoError(t, err)
	set := func(i int, line string) func(string, []string) []string {
		return func(_ string, l []string) []string { l[i] = line; return l }
	}
	other := seal.NewSigningKey([32]byte{1}).Public()
	for name, tt := range map[string]struct {
		change func(string, []string) []string
		want   string
	}{
		"key file too":    {set(6, "[link]\nkey_file = \"net.key\""), "link.key_file: goes not with roster"},
		"no node key":     {set(10, ""), "link.node_key: is missing"},
		"no authority":    {set(11, ""), "link.authority: is missing"},
		"no roster":       {set(9, ""), "link.roster: is missing"},
		"roster not here": {set(9, `roster = "lost"`), "link.roster: DIR/lost cannot be read: no such file or directory; bring the file"},
		"key not here":    {set(10, `node_key = "lost"`), "link.node_key: DIR/lost does not exist; make this node's key with: gateway keys node new -o DIR/lost"},
		"network key": {func(dir string, l []string) []string {
			keyfile.NewKey(dir + "/net.key")
			l[10] = `node_key = "net.key"`
			return l
		}, "not an aldis node key"},
		"other authority": {set(11, fmt.Sprintf("authority = %q", roster.AuthorityPublic(other))), "not signed by this authority, or changed since; link.authority is " + other.Fingerprint()},
		"no authority's":  {set(11, fmt.Sprintf("authority = %q", roster.NodePublic(other))), "link.authority: roster: not an authority's public key"},
		"another's key":   {set(10, `node_key = "node2.key"`), "for node 1: bring the right one, or have the authority name this one: gateway keys roster add --node '1,ship1,aldis-node:"},
		"not named":       {set(1, "id = 9"), "does not name this node, 9: have the authority add it"},
		"peer not named":  {set(13, "id = 8"), "link.peer.id: the roster, serial 1, does not name node 8"},
		"readable":        {func(dir string, l []string) []string { os.Chmod(dir+"/node1.key", 0o644); return l }, "can be read by others than its owner (mode 0644)"},
		"changed": {func(dir string, l []string) []string {
			text, _ := os.ReadFile(dir + "/net.roster")
			os.WriteFile(dir+"/net.roster", []byte(strings.Replace(string(text), "ship3", "ship4", 1)), 0o644)
			return l
		}, "not signed by this authority"},
	} {
		text, err := rosterSite(t, tt.change)
		if err == nil || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %s\nwant %s", name, text, tt.want)
		}
	}
}
