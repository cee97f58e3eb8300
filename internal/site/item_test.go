package site_test

import (
	"testing"

	"aldis/internal/site"
)

// A withdrawal has the key of the item that it withdraws, and is made of the key alone.
func TestKeys(t *testing.T) {
	seen := map[string]site.Item{}
	for _, it := range []site.Item{
		{Kind: site.Document, Sub: 2, Scope: "jxta-NetGroup", Owner: "uuid-03", ID: "uuid-0106", Doc: []byte("x"), Variant: true},
		{Kind: site.Listener, Scope: "s", Owner: "", ID: ""},
		{Kind: site.Question, Scope: "", Owner: "o", ID: "Name=a*"},
		{Adapter: 1, Kind: site.Document, Sub: 2, Scope: "jxta-NetGroup", Owner: "uuid-03", ID: "uuid-0106"},
		{Adapter: 2, Kind: site.Document, Sub: 2, Scope: "jxta-NetGroup", Owner: "uuid-03", ID: "uuid-0106"},
		{Adapter: site.MaxAdapter, Kind: site.Endpoint, Scope: "room", Owner: "a@ship", ID: "x"},
	} {
		key := it.Key()
		if other, taken := seen[key]; taken {
			t.Errorf("%+v has the key of %+v", it, other)
		}
		seen[key] = it
		w := site.WithdrawalOf(key)
		if w.Key() != key {
			t.Errorf("the key %q comes back as %q", key, w.Key())
		}
		want := site.Item{Adapter: it.Adapter, Kind: it.Kind, Sub: it.Sub, Scope: it.Scope, Owner: it.Owner, ID: it.ID, Gone: true}
		if got := it.Withdrawal(); !same(got, want) {
			t.Errorf("withdrawal %+v, want %+v", got, want)
		}
		if !same(w, want) {
			t.Errorf("withdrawal of the key %+v, want %+v", w, want)
		}
	}
}

func same(a, b site.Item) bool {
	return a.Adapter == b.Adapter && a.Kind == b.Kind && a.Sub == b.Sub && a.Scope == b.Scope && a.Owner == b.Owner && a.ID == b.ID &&
		a.Gone == b.Gone && a.Doc == nil && b.Doc == nil
}

// The numbers of precedences are those of the link; their names come lowest first.
func TestPrecedences(t *testing.T) {
	for i, name := range site.Precedences {
		p, ok := site.ParsePrecedence(name)
		if !ok || p.Rank() != i || p.String() != name {
			t.Errorf("%s: %d, rank %d, %v", name, p, p.Rank(), ok)
		}
	}
	if site.Routine != 0 || site.Deferred != 5 {
		t.Error("the numbers on the link have changed")
	}
	if _, ok := site.ParsePrecedence("urgent"); ok {
		t.Error("a precedence that there is not")
	}
}
