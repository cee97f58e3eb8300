package operator

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/edge/config"
	"aldis/internal/lab/check"
)

// TestInitAsks: wrong answers are asked for again, an empty one takes the default, and if the answers end too soon nothing is
// written.
func TestInitAsks(t *testing.T) {
	dir := t.TempDir()
	s := &setup{file: filepath.Join(dir, "gateway.toml"), data: dir, link: "0.0.0.0:7142"}
	all := []string{"id", "name", "lan", "profile", "peer", "new-key"}
	var asked bytes.Buffer
	answers := "boat 2 tug\nship 0 tug\nship 2 tug\nhere\n10.0.0.1\niridium\nhf-2400\nhq\n1,hq,far\n1,hq\nperhaps\nno\nyes\n"
	if err := s.ask(strings.NewReader(answers), &asked, all); err != nil {
		t.Fatalf("%v\n%s", err, &asked)
	}
	wants(t, asked.String(), "say: ship NUMBER NAME", "no number from 1 to 65535", "no such profile", "say id,name", "bring the key")
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(s.file)
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "the node", c.Node, config.Node{ID: 2, Name: "tug", DataDir: dir})
	check.Equal(t, "the link", c.Link.ProfileName, "hf-2400")
	if err := (&setup{}).ask(strings.NewReader("ship 2 tug\n"), &asked, all); err == nil {
		t.Error("half of the answers were enough")
	}
}

// TestCommandFromAshore: the command for the other side can be pasted.
func TestCommandFromAshore(t *testing.T) {
	ashore := (&setup{ashore: true}).seenFrom()
	check.True(t, "a shell takes the command from ashore", !strings.ContainsAny(ashore, "'\"`<>"), ashore)
}
