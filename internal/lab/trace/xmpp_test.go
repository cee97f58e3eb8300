package trace

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// The traffic between servers is told apart by purpose, to the octet: also after a new stream on the same connection, and after a change
// to TLS.
func TestXMPP(t *testing.T) {
	server, client := netip.MustParseAddrPort("10.0.0.1:5269"), netip.MustParseAddrPort("10.0.0.2:40000")
	k := &talk{src: client, dst: server, seq: 100}
	back := &talk{src: server, dst: client, seq: 100}
	const head = "<?xml version='1.0'?><stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams' xmlns:db='jabber:server:dialback' to='hq.example'>"
	total := map[string]int{}
	say := func(at float64, k *talk, kind, text string) {
		total[kind] += len(text)
		k.say(at, []byte(text))
	}
	say(1, k, xmppSetUp, head)
	say(2, back, xmppSetUp, head+"<stream:features/>")
	say(3, k, xmppSetUp, head) // after SASL
	say(4, k, "dialback", "<db:result from='ship.example' to='hq.example'>0123</db:result>")
	say(5, k, "message with text", "<message from='anna@ship.example' to='bert@hq.example'><body>Good ")
	say(6, k, "message with text", "morning</body></message>")
	say(6.5, k, "message without text", "<message from='anna@ship.example' to='bert@hq.example'><composing xmlns='http://jabber.org/protocol/chatstates'/></message>")
	say(7, k, "presence", "<presence from='anna@ship.example' to='bert@hq.example'><show>away</show></presence>")
	say(7.5, k, "presence: probe", "<presence type='probe' from='anna@ship.example' to='bert@hq.example'/>")
	say(8, k, "iq: urn:xmpp:ping", "<iq type='get' id='1' from='ship.example' to='hq.example'><ping xmlns='urn:xmpp:ping'/></iq>")
	say(9, k, "white space, to keep the connection", " ")
	say(10, back, xmppSetUp, "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
	say(11, k, "TLS, not to be read", "\x16\x03\x01 not XML")
	a := New(Options{})
	list := append(k.list, back.list...)
	slices.SortStableFunc(list, func(a, b Packet) int { return int(a.At - b.At) })
	for _, p := range list {
		a.Add(p)
	}
	r := a.Finish()
	if r.XMPP == nil {
		t.Fatal("no XMPP was found")
	}
	check.Equal(t, "streams", r.XMPP.Streams, int64(2))
	check.Equal(t, "kinds", len(r.XMPP.Kinds), len(total))
	for _, row := range r.XMPP.Kinds {
		check.Equal(t, row.Name, row.Octets, int64(total[row.Name]))
	}
	var text strings.Builder
	check.NoError(t, r.WriteText(&text, "x"))
	check.True(t, "the text has it", strings.Contains(text.String(), "message with text"), text.String())
}

// Strangers' streams are not taken for XMPP, or end as broken XMPP: nothing is read twice, and the number of kinds is bounded.
func TestHostileXMPP(t *testing.T) {
	a := New(Options{})
	k := &talk{src: netip.MustParseAddrPort("10.0.0.2:40000"), dst: netip.MustParseAddrPort("10.0.0.1:5222"), seq: 1}
	k.say(0, []byte("<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"))
	for i := range 200 {
		k.say(float64(i), []byte("<iq><x xmlns='"+strings.Repeat("y", i+1)+"'/></iq>"))
	}
	k.say(300, []byte("<!DOCTYPE x>rest"))
	k.say(301, []byte("more"))
	for _, p := range k.list {
		a.Add(p)
	}
	r := a.Finish()
	check.True(t, "kinds are bounded", len(r.XMPP.Kinds) <= maxXMPPKinds+1, len(r.XMPP.Kinds))
	check.Equal(t, "all is counted", r.XMPP.Octets+r.UnreadBytes, r.StreamBytes)
}
