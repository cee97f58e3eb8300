package compact

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// held returns histories of both ends with these messages, numbered from 1.
func held(texts ...[]byte) (*History, *History) {
	a, b := new(History), new(History)
	for i, text := range texts {
		a.Add(uint64(i+1), text)
		b.Add(uint64(i+1), text)
	}
	return a, b
}

func TestAfterHistory(t *testing.T) {
	m := NewMaker(21, testWords)
	track := m.Track()
	tracks := []*Track{m.Track(), m.Track(), m.Track()}
	peer := m.Peer(Compact, -1, true)
	tests := []struct {
		name  string
		next  func() []byte
		codec Codec
		most  int
	}{
		{"XML track", track.XML, LearnedXML, 12},
		{"records", func() []byte { return Texts(tracks, 200) }, Learned, 22},
		{"the same again", func() []byte { return peer }, Repeated, 4},
		{"random", func() []byte { return m.Octets(200) }, Stored, 200},
		{"too long to learn from", func() []byte { return bytes.Repeat(peer, 6) }, ModelledXML, 3000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var texts [][]byte
			for range 12 {
				texts = append(texts, tt.next())
			}
			a, b := held(texts...)
			var c Coder
			text := tt.next()
			coded, codec := c.AppendAfter(nil, text, a, 13)
			if tt.name == "too long to learn from" {
				if codec == Learned || codec == LearnedXML || codec == Repeated {
					t.Errorf("coded as %v", codec)
				}
			} else if codec != tt.codec || len(coded) > tt.most {
				t.Errorf("%d octets %v, want at most %d %v", len(coded), codec, tt.most, tt.codec)
			}
			back, err := c.ExpandAfter(codec, coded, b, 13, len(text))
			if err != nil || !bytes.Equal(back, text) {
				t.Errorf("comes back otherwise: %v", err)
			}
			if _, err := c.ExpandAfter(codec, coded, b, 13, len(text)-1); !errors.Is(err, ErrTooLong) {
				t.Errorf("over the limit: %v", err)
			}
			// The receiver may hold more, newer and older.
			b.Add(13, text)
			b.Add(14, tt.next())
			if back, err := c.ExpandAfter(codec, coded, b, 13, len(text)); err != nil || !bytes.Equal(back, text) {
				t.Errorf("with newer messages held: %v", err)
			}
		})
	}
}

// Wherever the ends disagree, the answer is ErrHistory.
func TestHistoriesThatDiffer(t *testing.T) {
	m := NewMaker(22, testWords)
	track := m.Track()
	var texts [][]byte
	for range 8 {
		texts = append(texts, track.XML())
	}
	a, _ := held(texts...)
	other := bytes.Replace(texts[7], []byte("<seq>"), []byte("<seq>1"), 1)
	changed := append(append([][]byte{}, texts[:7]...), other)
	_, different := held(changed...)
	_, short := held(texts[:7]...)
	late := new(History)
	for i, text := range texts[6:] {
		late.Add(uint64(i+7), text)
	}
	shifted := new(History)
	for i, text := range texts {
		shifted.Add(uint64(i+2), text)
	}
	gap := new(History)
	for i, text := range texts {
		if i != 5 {
			gap.Add(uint64(i+1), text)
		}
	}
	var c Coder
	for _, text := range [][]byte{track.XML(), texts[7]} {
		coded, codec := c.AppendAfter(nil, text, a, 9)
		for name, h := range map[string]*History{
			"none": {}, "one octet changed": different, "the last one missing": short, "heard from the seventh on": late,
			"numbered otherwise": shifted, "one lost": gap,
		} {
			if back, err := c.ExpandAfter(codec, coded, h, 9, 1000); !errors.Is(err, ErrHistory) && !bytes.Equal(back, text) {
				t.Errorf("%v, %s: %q, %v", codec, name, back, err)
			} else if err == nil && codec != Repeated {
				t.Errorf("%v, %s: expanded", codec, name)
			}
		}
		for i := range coded {
			damaged := bytes.Clone(coded)
			damaged[i] ^= 0x55
			if back, err := c.ExpandAfter(codec, damaged, a, 9, 1000); err == nil {
				t.Errorf("%v: octet %d changed gives %q", codec, i, back)
			}
		}
		for _, bad := range [][]byte{nil, {1}, {0, 1, 2}, {0xff, 1, 2, 3}} {
			if _, err := c.ExpandAfter(codec, bad, a, 9, 1000); !errors.Is(err, ErrHistory) && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%v of %x: %v", codec, bad, err)
			}
		}
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var h History
	text := bytes.Repeat([]byte("<a>b</a>\n"), MaxLearned/9)
	for i := range 500 {
		h.Add(uint64(i+1), text)
	}
	if n := len(h.held); n > maxHeld {
		t.Errorf("%d messages held", n)
	}
	if n := h.Octets(); n > maxHeld*2*MaxLearned {
		t.Errorf("%d octets held", n)
	}
	h.Add(501, make([]byte, MaxLearned+1))
	if h.held[len(h.held)-1].number != 500 {
		t.Error("a message beyond the bound was kept")
	}
	h.Add(400, text)
	if len(h.held) != 1 {
		t.Error("a number that goes back did not start anew")
	}
}

// Many messages of a flow are under way and none is acknowledged yet, as to a silent receiver: the receiver opens the later
// ones in order, and finds the messages that they were coded after.
func TestManyUnderWay(t *testing.T) {
	track := NewMaker(25, testWords).Track()
	var out, in History
	var sender, receiver Coder
	type code struct {
		codec Codec
		coded []byte
	}
	var texts [][]byte
	var codes []code
	for n := uint64(1); n <= 300; n++ {
		text := track.XML()
		coded, codec := sender.AppendAfter(nil, text, &out, n)
		texts, codes = append(texts, text), append(codes, code{codec, bytes.Clone(coded)})
		if n <= 12 {
			out.Add(n, text)
		}
	}
	for i, c := range codes {
		n := uint64(i + 1)
		back, err := receiver.ExpandAfter(c.codec, c.coded, &in, n, 1000)
		if err != nil || !bytes.Equal(back, texts[i]) {
			t.Fatalf("message %d, %v: %v", n, c.codec, err)
		}
		in.Add(n, back)
		if learned := c.codec == LearnedXML; learned != (2 <= n && n <= 44) {
			t.Errorf("message %d: %v", n, c.codec)
		}
	}
}

// Sixty flows take turns and acknowledgements come late: only the messages of its own flow under way count for a message.
func TestManyFlowsUnderWay(t *testing.T) {
	m := NewMaker(26, testWords)
	var tracks []*Track
	var flows [60]struct{ out, in History }
	for range flows {
		tracks = append(tracks, m.Track())
	}
	var sender, receiver Coder
	number, learned := uint64(0), 0
	type message struct {
		flow   int
		number uint64
		text   []byte
	}
	var late []message
	for range 8 {
		for i := range flows {
			number++
			f, text := &flows[i], tracks[i].XML()
			f.out.Sent(number)
			coded, codec := sender.AppendAfter(nil, text, &f.out, number)
			if codec == LearnedXML {
				learned++
			}
			back, err := receiver.ExpandAfter(codec, coded, &f.in, number, 1000)
			if err != nil || !bytes.Equal(back, text) {
				t.Fatalf("flow %d, message %d, %v: %v", i, number, codec, err)
			}
			f.in.Add(number, back)
			if late = append(late, message{i, number, text}); len(late) > 80 { // its acknowledgement
				flows[late[0].flow].out.Add(late[0].number, late[0].text)
				late = late[1:]
			}
		}
	}
	if learned < 6*len(flows)-80 {
		t.Errorf("%d were learned", learned)
	}
	// And a receiver keeps no more messages of one flow.
	var out History
	text := tracks[0].XML()
	out.Sent(1)
	out.Add(1, text)
	for n := uint64(2); n < 200; n++ {
		out.Sent(n)
		if _, most, ok := out.base(n); ok != (n-2 < maxHeld-1) || ok && int(n-2)+most >= maxHeld {
			t.Errorf("message %d after the first: %v, %d", n, ok, most)
		}
	}
}

// While no more messages of a flow are under way than the receiver keeps, each is coded after messages that were
// acknowledged, and expands at a receiver that has had all of them.
func TestAsManyUnderWayAsAreKept(t *testing.T) {
	var sender, receiver Coder
	var out, in History
	report := func(n uint64) []byte {
		return fmt.Appendf(nil, "TRK;ship2;%06d;N59.%04d;E005.%04d;course=045", n, 1234+7*n, 4321+11*n)
	}
	learned := 0
	for n := uint64(1); n <= 120; n++ {
		text := report(n)
		code, codec := sender.AppendAfter(nil, text, &out, n)
		if n > 40 && codec == Learned {
			learned++
		}
		back, err := receiver.ExpandAfter(codec, code, &in, n, 1000)
		if err != nil || !bytes.Equal(back, text) {
			t.Fatalf("message %d: %v", n, err)
		}
		in.Add(n, text)
		if out.Sent(n); n <= 40 {
			out.Add(n, text)
		}
	}
	if learned < maxHeld-1 {
		t.Errorf("%d of 80 that were sent without a receipt learned", learned)
	}
}

// 32 sources with the largest histories, and a coder for each direction, fit into 64 MiB.
func TestRoomForManySources(t *testing.T) {
	const most = 64 << 20
	var h History
	text := bytes.Repeat([]byte("<a>b</a>\n"), MaxLearned/9)
	for i := range 100 {
		h.Add(uint64(i+1), text)
	}
	coder := int(unsafe.Sizeof(model{})) + 4<<primedLines + 4*lineSlots*(1<<primedLines+1+lanes) + 4<<matchBits + MaxModelled
	if n := 32*h.Octets() + 2*coder; n > most {
		t.Errorf("%d octets", n)
	} else {
		t.Logf("32 times %d and 2 times %d octets: %d MiB", h.Octets(), coder, n>>20)
	}
}

// listener is a receiving end in the scenario: it delivers messages in order and remembers them.
type listener struct {
	c       Coder
	h       History
	epoch   int
	next    uint64
	waiting map[uint64][]byte
	got     [][]byte
	refused int
}

func (l *listener) hear(t *testing.T, codec Codec, coded []byte, number uint64, want []byte) {
	if number < l.next || l.waiting[number] != nil {
		return
	}
	text, err := l.c.ExpandAfter(codec, coded, &l.h, number, 10_000)
	if err != nil {
		if !errors.Is(err, ErrHistory) {
			t.Fatalf("message %d: %v", number, err)
		}
		l.refused++
		return
	}
	if !bytes.Equal(text, want) {
		t.Fatalf("message %d is %q, want %q", number, text, want)
	}
	l.waiting[number] = text
	for l.waiting[l.next] != nil {
		l.got = append(l.got, l.waiting[l.next])
		l.h.Add(l.next, l.waiting[l.next])
		delete(l.waiting, l.next)
		l.next++
	}
}

// restart loses everything that is not in the journal: the history, and messages that wait for others.
func (l *listener) restart() {
	l.h.Reset()
	l.waiting = map[uint64][]byte{}
	l.epoch++
}

// A sender and a group of listeners over a link that loses, repeats and re-orders; listeners restart, fall silent, and one
// joins late. Every message is delivered once, in order, and unchanged; and the codes are shorter than without learning.
func TestScenario(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 9))
			m := NewMaker(seed, testWords)
			tracks := []*Track{m.Track(), m.Track()}
			var sent [][]byte
			var c, plain Coder
			var h History
			type ack struct{ upTo, epoch uint64 }
			listeners := []*listener{{next: 1, waiting: map[uint64][]byte{}}, {next: 1, waiting: map[uint64][]byte{}}}
			known := make([]ack, len(listeners)) // as the sender knows them
			added := uint64(0)
			tries := map[uint64]int{}
			octets, without, refused := 0, 0, 0
			const messages = 80
			for turn := 0; turn < 3000; turn++ {
				if len(sent) < messages && turn%3 == 0 {
					sent = append(sent, Texts(tracks, 180))
				}
				for i, l := range listeners { // events of the listeners
					switch {
					case turn == 60+60*i:
						l.restart()
					case r.IntN(3) == 0: // an acknowledgement arrives
						if k := (ack{l.next - 1, uint64(l.epoch)}); k.epoch != known[i].epoch {
							h.Reset()
							added = max(added, k.upTo)
							known[i] = k
						} else {
							known[i] = k
						}
					}
				}
				all := uint64(len(sent))
				for _, k := range known {
					all = min(all, k.upTo)
				}
				for added < all {
					added++
					h.Add(added, sent[added-1])
				}
				if all == messages {
					break
				}
				n := all + 1 + uint64(r.IntN(4)) // one of those due
				if n > uint64(len(sent)) {
					continue
				}
				text := sent[n-1]
				coded, codec := c.AppendAfter(nil, text, &h, n)
				if tries[n]++; tries[n] > 1 {
					coded, codec = plain.Append(nil, text)
				} else {
					octets += len(coded)
					alone, _ := plain.Append(nil, text)
					without += len(alone)
				}
				for i, l := range listeners {
					silent := i == 1 && turn > 150 && turn < 250
					if !silent && r.IntN(10) < 7 {
						l.hear(t, codec, coded, n, text)
						if r.IntN(5) == 0 {
							l.hear(t, codec, coded, n, text)
						}
					}
				}
			}
			for i, l := range listeners {
				if len(l.got) != messages {
					t.Fatalf("listener %d has %d of %d", i, len(l.got), messages)
				}
				for j := range l.got {
					if !bytes.Equal(l.got[j], sent[j]) {
						t.Fatalf("listener %d, message %d differs", i, j)
					}
				}
				refused += l.refused
			}
			if octets*10 > without*6 {
				t.Errorf("%d octets with learning, %d without", octets, without)
			}
			// A listener that joins now holds nothing: it refuses codes that need earlier messages, and accepts the others.
			late := &listener{next: messages + 1, waiting: map[uint64][]byte{}}
			text := Texts(tracks, 180)
			coded, codec := c.AppendAfter(nil, text, &h, messages+1)
			if late.hear(t, codec, coded, messages+1, text); late.refused != 1 {
				t.Error("a listener without a history took a learned code")
			}
			h.Reset() // because it joined
			coded, codec = c.AppendAfter(nil, text, &h, messages+1)
			if late.hear(t, codec, coded, messages+1, text); len(late.got) != 1 {
				t.Error("a listener that joined does not hear")
			}
			t.Logf("%d octets, %d without learning; %d refused", octets, without, refused)
		})
	}
}

// Messages are opened in order, and the receiver's history is kept with them: then each is coded after the one before, even
// without an acknowledgement. The link loses and re-orders; both ends restart, the sender without its history.
func TestScenarioInOrder(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 10))
		track := NewMaker(seed, testWords).Track()
		var sender, receiver Coder
		var out, in History
		record := map[uint64][]byte{} // the history in the receiver's journal
		type code struct {
			codec Codec
			coded []byte
		}
		var sent [][]byte
		held := map[uint64]code{}
		next := uint64(1)
		octets, learned := 0, 0
		const messages = 60
		for turn := 0; next <= messages; turn++ {
			if turn > 5000 {
				t.Fatal("it does not end")
			}
			switch {
			case turn == 50: // the sender starts again
				out.Reset()
			case turn == 90: // the receiver restarts with its records
				in = History{}
				for n := range uint64(messages + 1) {
					if text, ok := record[n]; ok {
						in.Add(n, text)
					}
				}
			}
			n := next + uint64(r.IntN(6)) // those under way, in any order
			if n > messages {
				continue
			}
			for uint64(len(sent)) < n {
				sent = append(sent, track.XML())
				out.Add(uint64(len(sent)), sent[len(sent)-1])
			}
			coded, codec := sender.AppendAfter(nil, sent[n-1], &out, n)
			if r.IntN(3) == 0 {
				continue // lost
			}
			if _, ok := held[n]; !ok && n >= next {
				held[n] = code{codec, bytes.Clone(coded)}
				octets += len(coded)
				if codec == LearnedXML {
					learned++
				}
			}
			for c, ok := held[next]; ok; c, ok = held[next] {
				text, err := receiver.ExpandAfter(c.codec, c.coded, &in, next, 1000)
				if err != nil || !bytes.Equal(text, sent[next-1]) {
					t.Fatalf("message %d, %v: %q, %v", next, c.codec, text, err)
				}
				for _, gone := range in.Add(next, text) {
					delete(record, gone)
				}
				if in.Holds(next) {
					record[next] = text
				}
				delete(held, next)
				next++
			}
		}
		if learned < messages*3/4 || octets > messages*22 {
			t.Errorf("%d of %d were learned, %d octets", learned, messages, octets)
		}
		if len(record) != len(in.held) {
			t.Errorf("%d recorded, %d held", len(record), len(in.held))
		}
	}
}

func FuzzExpandAfter(f *testing.F) {
	m := NewMaker(23, testWords)
	track := m.Track()
	var texts [][]byte
	for range 4 {
		texts = append(texts, track.XML())
	}
	a, _ := held(texts...)
	var c Coder
	for _, text := range [][]byte{track.XML(), texts[2]} {
		coded, codec := c.AppendAfter(nil, text, a, 5)
		f.Add(byte(codec), coded, uint64(5))
	}
	f.Fuzz(func(t *testing.T, codec byte, b []byte, number uint64) {
		text, err := c.ExpandAfter(Codec(codec), b, a, number, 5000)
		if err == nil && len(text) > 5000 {
			t.Fatalf("%d octets", len(text))
		}
	})
}
