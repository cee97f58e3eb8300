package envelope

import (
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/site"
)

const (
	usualPeer  = "uuid-59616261646162614A78746150325033A1D1000000000000000000000000000703"
	hashedPeer = "cbid-59616261646162614A78746150325033A1D1000000000000000000000000000703"
)

// A question crosses unchanged, and in few octets if it is regular.
func TestQueriesCross(t *testing.T) {
	for _, tt := range []struct {
		id, owner, scope string
		short            bool
		octets           int
	}{
		{"Name=peer 700", "", netGroup, true, 8}, {"PID=", usualPeer, netGroup, true, 16}, {"PID=", hashedPeer, netGroup, false, 0},
		{"Name=sixteen letters.", "", netGroup, false, 0}, {"Name=sixteen letters", "", netGroup, true, 15},
		{"Name=*", "", netGroup, true, 1}, {"Name=", "", netGroup, false, 0}, {"", "", netGroup, false, 0}, {"Desc=x", "", netGroup, false, 0},
		{"Name=x", usualPeer, netGroup, false, 0}, {"Name=x", "", "uuid-" + strings.Repeat("1F", 16) + "02", false, 0},
	} {
		in := check.In(t, tt.id, tt.owner, tt.scope)
		it := site.Item{Kind: site.Question, Scope: tt.scope, Owner: tt.owner, ID: tt.id}
		check.True(in, "is one", Asks(it))
		b, short := AppendQuery(nil, it)
		check.Equal(in, "in short", short, tt.short)
		if tt.octets > 0 {
			check.Equal(in, "octets", len(b), tt.octets)
		}
		got, err := ParseQuery(b, short)
		check.NoError(in, err)
		check.Equal(in, "the same", got.Key(), it.Key())
		for n := range b { // cut short it is another question, or none
			if got, err := ParseQuery(b[:n], short); err == nil && got.Key() == it.Key() {
				t.Errorf("%v: %d of %d octets are the same question", tt, n, len(b))
			}
		}
	}
}

// An answer crosses in short form if it adds only an id or a name to the question.
func TestAnswersCross(t *testing.T) {
	head, tail := regular(usualPeer)
	found := site.Item{Kind: site.Endpoint, Scope: netGroup, Owner: usualPeer, Doc: []byte(head + "peer 700" + tail)}
	for _, tt := range []struct {
		question site.Item
		change   func(*site.Item)
		octets   int // -1: not in short
	}{
		{site.Item{ID: "Name=peer 700"}, nil, 16}, {site.Item{ID: "PID=", Owner: usualPeer}, nil, 8},
		{site.Item{ID: "Name=peer*"}, nil, -1}, {site.Item{ID: "PID=", Owner: hashedPeer}, nil, -1},
		{site.Item{ID: "Name=peer 700"}, func(it *site.Item) { it.Variant = true }, -1},
		{site.Item{ID: "Name=peer 700"}, func(it *site.Item) { it.Doc = append(it.Doc, ' ') }, -1},
		{site.Item{ID: "Name=peer 700"}, func(it *site.Item) { it.Owner = hashedPeer }, -1},
		{site.Item{ID: "Name=peer 700"}, func(it *site.Item) { it.Gone = true }, -1},
	} {
		it := found
		it.Doc = append([]byte(nil), found.Doc...)
		if tt.change != nil {
			tt.change(&it)
		}
		b, short := AppendFound(nil, tt.question, it)
		check.Equal(t, "in short", short, tt.octets >= 0)
		if !short {
			continue
		}
		check.Equal(t, "octets", len(b), tt.octets)
		got, err := ParseFound(tt.question, b)
		check.NoError(t, err)
		check.Equal(t, "the same", got.Key()+string(got.Doc), it.Key()+string(it.Doc))
	}
	if _, err := ParseFound(site.Item{ID: "Name=x"}, []byte("short")); err == nil {
		t.Error("an id of five octets is read")
	}
}
