package field

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

const (
	meetTracks = "uuid-59616261646162614E50472050325033000000000000000000000000000000A104"
	meetWords  = "uuid-59616261646162614E50472050325033000000000000000000000000000000A204"
	meetRules  = `
[tak]
[[meet]]
label = "tracks"
pipe = "` + meetTracks + `"
element = "trk:body"
id_at = "xml:/track/@id"
lat_at = "xml:/track/@lat"
lon_at = "xml:/track/@lon"
as = "a-f-S"
write = '''<track id="{id}" lat="{lat}" lon="{lon}"/>'''
[[meet]]
label = "the room"
pipe = "` + meetWords + `"
element = "trk:body"
from_at = "xml:/say/@by"
text_at = "xml:/say"
room = "All Chat Rooms"
write = '''<say by="{from}">{text}</say>'''
`
)

// said is the texts that one end received.
type said struct {
	mu   sync.Mutex
	text []string
}

func (s *said) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, text)
}

// times are the texts with these parts.
func (s *said) times(parts ...string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.text {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(text, p)
		}
		if all {
			n++
		}
	}
	return n
}

// stream is a TAK device at the end of a raw stream.
func stream(c net.Conn) *said {
	s := &said{}
	go func() {
		rest, b := "", make([]byte, 64<<10)
		for {
			n, err := c.Read(b)
			rest += string(b[:n])
			for {
				event, more, ok := strings.Cut(rest, "</event>")
				if !ok {
					break
				}
				s.add(event)
				rest = more
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

// TestAdaptersMeet: JXTA peers on the ship's LAN, raw streams that act as ATAK on headquarters', real gateways and the emulator of
// iridium-dialup between them. A track of each side is shown once on the other, and so is a line of a chat; on the sender's own LAN it
// comes once, too.
func TestAdaptersMeet(t *testing.T) {
	t.Parallel()
	g, ctx := stand(t, "meet", load(t, "iridium-dialup"), 1)
	hq, ship := g.sites[0], g.sites[1]
	ashore := fmt.Sprintf("%s:8087", lanAddr(0, 1).Addr())
	for s, text := range map[*lanSite]string{hq: fmt.Sprintf("[tak]\nlisten = %q\n", ashore), ship: meetRules} {
		err := s.gateway.configure(text)
		if err == nil {
			err = s.gateway.start(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	var heard [2]*said
	var peers [2]*tcp.Peer
	for i, name := range []string{"anna", "bert"} {
		ns, err := g.w.add("ship-" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := plug(ship.ns, ns, fmt.Sprintf("p%d", i+1), lanAddr(1, 11+i)); err != nil {
			t.Fatal(err)
		}
		heard[i] = &said{}
		cfg := tcp.Config{Address: fmt.Sprintf("%s:%d", lanAddr(1, 1).Addr(), seedPort), Edge: edgepeer.Config{Name: name, Rand: rand.New(rand.NewPCG(uint64(i), 15))},
			Dial:  func(ctx context.Context, at string) (net.Conn, error) { return DialIn(ctx, ns, at) },
			Pipes: []edgepeer.Listen{{Pipe: meetTracks, Kind: jxta.PipeTypePropagate}, {Pipe: meetWords, Kind: jxta.PipeTypePropagate}},
			Hear: func(_ *tcp.Peer, n edgepeer.Notice) {
				if m, ok := n.(edgepeer.Message); ok {
					heard[i].add(string(m.Elements[0].Data))
				}
			}}
		check.Until(t, time.Minute, name+" is there", func() bool {
			peers[i], err = tcp.Dial(ctx, cfg)
			return err == nil
		})
		t.Cleanup(func() { peers[i].Close() })
	}
	var devices [2]net.Conn
	for i := range devices {
		var err error
		check.Until(t, time.Minute, "a TAK device is served", func() bool {
			devices[i], err = DialIn(ctx, hq.ns, ashore)
			return err == nil
		})
		t.Cleanup(func() { devices[i].Close() })
	}
	shown := [2]*said{stream(devices[0]), stream(devices[1])}
	const id = "ANDROID-359975090666199a"
	tell := func(pipe, text string) {
		t.Helper()
		if _, err := peers[0].Do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte(text)}}}); err != nil {
			t.Fatal(err)
		}
	}
	report := func(uid string) string {
		now := time.Now()
		return fmt.Sprintf(`<event version="2.0" uid="%s" type="a-f-G-U-C" time="%s" start="%s" stale="%s" how="m-g"><point lat="54.3" lon="10.1" hae="22" ce="4.7" le="9999999.0"/><detail><contact endpoint="*:-1:stcp" callsign="FALCON"/><track course="0" speed="0"/></detail></event>`,
			uid, cotTime(now), cotTime(now), cotTime(now.Add(10*time.Minute)))
	}
	line := func(text string) string {
		now := time.Now()
		return fmt.Sprintf(`<event version="2.0" uid="GeoChat.%s.All Chat Rooms.m-1" type="b-t-f" time="%s" start="%s" stale="%s" how="h-g-i-g-o"><point lat="0" lon="0" hae="9999999.0" ce="9999999.0" le="9999999.0"/><detail><__chat parent="RootContactGroup" groupOwner="false" messageId="m-1" chatroom="All Chat Rooms" id="All Chat Rooms" senderCallsign="FALCON"><chatgrp uid0="%s" uid1="All Chat Rooms" id="All Chat Rooms"/></__chat><link uid="%s" type="a-f-G-U-C" relation="p-p"/><remarks source="BAO.F.ATAK.%s" to="All Chat Rooms" time="%s">%s</remarks></detail></event>`,
			id, cotTime(now), cotTime(now), cotTime(now.Add(24*time.Hour)), id, id, id, cotTime(now), text)
	}
	// The peers have announced that they listen once a message of one of them comes to the other.
	check.Until(t, time.Minute, "the peers hear each other", func() bool {
		tell(meetWords, "<hello/>")
		return heard[1].times("<hello/>") > 0
	})

	began := time.Now()
	tell(meetTracks, `<track id="B-7" lat="54.5" lon="10.2"/>`)
	tell(meetWords, `<say by="anna">boat ready</say>`)
	io.WriteString(devices[0], report(id))
	io.WriteString(devices[0], line("come and see"))
	for what, there := range map[string]func() bool{
		"anna's track is shown ashore":       func() bool { return shown[0].times(`uid="B-7"`, `lat="54.5"`) > 0 && shown[1].times(`uid="B-7"`) > 0 },
		"anna's line is there":               func() bool { return shown[0].times("boat ready") > 0 && shown[1].times("boat ready") > 0 },
		"FALCON's track is told to peers":    func() bool { return heard[0].times(id) > 0 && heard[1].times(id) > 0 },
		"FALCON's line is there":             func() bool { return heard[0].times("come and see") > 0 && heard[1].times("come and see") > 0 },
		"the device beside has got the line": func() bool { return shown[1].times("come and see") > 0 },
	} {
		check.Until(t, 2*time.Minute, what, there)
	}
	t.Logf("all is there after %v", time.Since(began).Round(100*time.Millisecond))
	// Duplicates come within the time in which all messages came once, and as long again.
	check.Never(t, 10*time.Second, func() string {
		for i := range 2 {
			for what, n := range map[string]int{"boat ready": shown[i].times("boat ready"), "come and see": heard[i].times("come and see"), "FALCON": heard[i].times(id)} {
				if n != 1 {
					return fmt.Sprintf("%s is there %d times", what, n)
				}
			}
		}
		for what, n := range map[string]int{"boat ready": heard[0].times("boat ready"), "the track": heard[0].times(`"B-7"`)} {
			if n != 0 {
				return fmt.Sprintf("%s came back %d times to who said it", what, n)
			}
		}
		for what, n := range map[string]int{"boat ready": heard[1].times("boat ready"), "the track": heard[1].times(`"B-7"`)} {
			if n != 1 {
				return fmt.Sprintf("%s came %d times to the peer beside", what, n)
			}
		}
		return ""
	})
}

// cotTime is a time as CoT has it.
func cotTime(when time.Time) string { return when.UTC().Format("2006-01-02T15:04:05.000Z") }
