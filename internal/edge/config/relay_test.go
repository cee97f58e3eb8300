package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// via names peers that pass on messages for another. A name that makes no sense is reported in one line, and so is a circle.
func TestVia(t *testing.T) {
	peers := func(keys ...string) string {
		text := "\n[[link.peer]]\nid = 1\nname = \"hq\"\naddress = \"10.0.0.2:7142\"\n"
		for i, k := range keys {
			text += fmt.Sprintf("\n[[link.peer]]\nid = %d\nname = \"ship%d\"\n%s\n", i+3, i+1, k)
		}
		return text
	}
	load := func(text string) (*Config, string) {
		c, err := Load(write(t, text))
		if err != nil {
			return c, err.Error()
		}
		return c, ""
	}
	base := good[:strings.Index(good, "[[link.peer]]")]
	c, fault := load(base + peers(`via = "hq"`, `via = "ship1, 1"`))
	if fault != "" {
		t.Fatal(fault)
	}
	if got := c.Link.Hops(c.Link.Peers[2]); !slices.Equal(got, []uint16{3, 1}) {
		t.Errorf("the hops are %v", got)
	}
	for keys, want := range map[string]string{
		`via = "shop"`:                            "shop is no peer of this gateway",
		`via = "ship1"`:                           "ship1 is this peer itself",
		`via = "hq, 1"`:                           "1 is there twice",
		"via = \"ship2\"\x00" + `via = "ship1"`:   "are a circle: each goes via the other, and neither has an address",
		"via = \"hq\"\x00" + `via = "node-9, hq"`: "node-9 is no peer of this gateway",
	} {
		if _, fault := load(base + peers(strings.Split(keys, "\x00")...)); !strings.Contains(fault, want) {
			t.Errorf("%q: %q, want %q", keys, fault, want)
		}
	}
}

// Two peers that are called on a later bearer make no circle, although each may go via the other.
func TestViaWithAddressOnALaterLink(t *testing.T) {
	more := "[[link.peer]]\nid = 3\nname = \"ship3\"\nvia = \"ship4\"\n[[link.peer]]\nid = 4\nname = \"ship4\"\nvia = \"ship3\"\n"
	first, second, _ := strings.Cut(twoLinks, "\n[[link]]\nname = \"hf\"")
	_, err := withLinks(t, first+more+"\n[[link]]\nname = \"hf\""+second)
	if err == nil || !strings.Contains(err.Error(), "are a circle") {
		t.Errorf("nobody calls either: %v", err)
	}
	if _, err = withLinks(t, first+more+"\n[[link]]\nname = \"hf\""+second+"[[link.peer]]\nid = 4\naddress = \"10.78.0.4:7142\"\n"); err != nil {
		t.Error(err)
	}
}
