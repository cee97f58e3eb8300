package relay

import (
	"encoding/hex"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/site"
)

var now = time.Unix(1_800_000_000, 0).UTC()

// A capsule's octets: the fields that every hop reads stand before tags and text, and each recipient's share can be cut out.
func TestCapsule(t *testing.T) {
	c := Capsule{Origin: 2, To: []uint16{3, 5}, Set: 7, Hops: 1, Lifetime: time.Hour, number: 0x1234,
		tags: []byte{1, 1, 1, 1, 2, 2, 2, 2}, sealed: []byte("text")}
	m := c.Message(now, site.Mark{Precedence: site.Flash, LastValue: "x"})
	check.Equal(t, "octets", hex.EncodeToString(m.Parts[0].Data), "095e"+"1234"+"01010101"+"02020202"+"74657874")
	check.Equal(t, "from, to, set", m.From+" "+m.To+" "+m.Param, "2 3,5 7")
	check.Equal(t, "precedence", m.Precedence, site.Flash)
	check.True(t, "it ends before its lifetime is over", m.Expires.After(now.Add(55*time.Minute)) && !m.Expires.After(now.Add(time.Hour)), m.Expires)
	got, err := Parse(&m)
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "lifetime", got.Lifetime, 3584*time.Second)
	one := got.For([]uint16{5})
	check.Equal(t, "the tag of one", hex.EncodeToString(one.tags), "02020202")
	check.True(t, "its name is that of the whole", one.Name(5) == got.Name(5) && got.Name(3) != got.Name(5))
	for name, spoil := range map[string]func(*site.Message){
		"no origin":            func(m *site.Message) { m.From = "" },
		"an origin of 0":       func(m *site.Message) { m.From = "0" },
		"no number":            func(m *site.Message) { m.To = "3,x" },
		"one id twice":         func(m *site.Message) { m.To = "3,3" },
		"ids in another order": func(m *site.Message) { m.To = "5,3" },
		"a number with zeros":  func(m *site.Message) { m.To = "03,5" },
		"no set":               func(m *site.Message) { m.Param = "" },
		"no octets":            func(m *site.Message) { m.Parts[0].Data = nil },
		"no lifetime":          func(m *site.Message) { m.Parts[0].Data = m.Parts[0].Data[:1] },
		"half its tags":        func(m *site.Message) { m.Parts[0].Data = m.Parts[0].Data[:8] },
		"a kind that is none":  func(m *site.Message) { m.Parts[0].Data[0] |= 0x40 },
		"two parts":            func(m *site.Message) { m.Parts = append(m.Parts, m.Parts[0]) },
	} {
		bad := c.Message(now, site.Mark{})
		spoil(&bad)
		if _, err := Parse(&bad); err == nil {
			t.Errorf("a capsule with %s is read", name)
		}
	}
}

// A lifetime as written is never longer than it was, and a seventh shorter at the most.
func TestLifetime(t *testing.T) {
	for s := 1; s < 1<<28; s += 1 + s/7 {
		d := time.Duration(s) * time.Second
		got := lifetimeOf(lifetime(d))
		check.True(t, "within", got <= d && got+time.Second > d*6/7, d, got)
	}
	check.True(t, "no more than can be said", lifetimeOf(0xff) == lifetimeOf(lifetime(1<<62)) && lifetimeOf(0xff) > 0)
}

func FuzzParse(f *testing.F) {
	c := Capsule{Origin: 2, To: []uint16{3}, Set: 7, Hops: 1, tags: []byte{1, 2, 3, 4}, sealed: []byte("text")}
	m := c.Message(now, site.Mark{})
	f.Add(m.From, m.To, m.Param, m.Parts[0].Data)
	f.Fuzz(func(t *testing.T, from, to, set string, data []byte) {
		m := site.Message{From: from, To: to, Param: set, Parts: []site.Part{{Data: data}}}
		c, err := Parse(&m)
		if err != nil {
			return
		}
		c.Name(c.To[0])
		again := c.Message(now, site.Mark{})
		if d, err := Parse(&again); err != nil || again.From != from || again.To != to || again.Param != set || d.Hops != c.Hops {
			t.Errorf("%+v comes back as %+v, %v", c, d, err)
		}
	})
}
