package edgepeer

import (
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/jxta"
)

// A filled template equals, octet for octet, a document written anew, including values that need escaping.
func TestTemplates(t *testing.T) {
	p := New(Config{Name: "a", Rand: rand.New(rand.NewPCG(1, 1))})
	p.Step(time.Unix(0, 0), Dialled{Remote: "10.0.0.1:9701", Local: "10.0.0.2:1"})
	p.Step(time.Unix(0, 0), Welcomed{jxta.Welcome{Peer: jxta.URN("uuid-59616261646162614A78746150325033000000000000000000000000000000A103")}})
	for range 2 { // made, then from the cache
		for i, value := range []string{"trk-1", "*", "a<b&c", "", "  blank", "@mark@", "1073741823"} {
			q := jxta.DiscoveryQuery{Type: jxta.TypeAdv, Threshold: 1, Attr: "Name", Value: value}
			if got, want := string(p.discoveryDoc(i+1, q)), string(p.questionDoc(i+1, jxta.HandlerDiscovery, string(q.Append(nil)))); got != want {
				t.Errorf("query for %q:\n%s\nwant\n%s", value, got, want)
			}
			id := "id-" + value
			if got, want := string(p.wireDoc("uuid-01", id)), string(jxta.WireHeader{Src: p.id, Pipe: "uuid-01", MsgID: id, TTL: walkTTL}.Append(nil)); got != want {
				t.Errorf("wire header %q:\n%s\nwant\n%s", id, got, want)
			}
		}
		h := jxta.Propagate{MessageID: "x-1", Service: "s", Param: "p", TTL: walkTTL, Path: []string{p.id}}
		if got, want := string(p.propagateDoc("x-1", "s", "p")), string(h.Append(nil)); got != want {
			t.Errorf("propagation header:\n%s\nwant\n%s", got, want)
		}
	}
}
