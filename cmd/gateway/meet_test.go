package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

// meetSite is a ship with JXTA peers and the rules of docs/tak.md, as printed there.
func meetSite(t *testing.T, s *testSite, peers ...string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/tak.md")
	check.NoError(check.Fatal(t), err)
	_, section, _ := strings.Cut(string(page), "\n## One picture with JXTA, one chat room\n")
	_, section, _ = strings.Cut(section, "\n```toml\n")
	rules, _, _ := strings.Cut(section, "```\n")
	s.write(t, s.dir+"/data", peers...)
	text, err := os.ReadFile(s.file)
	check.NoError(check.Fatal(t), err)
	check.NoError(check.Fatal(t), os.WriteFile(s.file, append(append(text, '\n'), rules...), 0o600))
}

// The rules of docs/tak.md are valid, and check says what they make of an event and of elements, and why not.
func TestMeetExamples(t *testing.T) {
	s := newSite(t, 2, "")
	meetSite(t, s, "1 127.0.0.1:7142")
	code, out, errs := run(t, "check", "-c", s.file)
	if code != 0 {
		t.Fatal(out, errs)
	}
	check.Contains(t, "check", out, `rule "tracks" (line`)
	check.Contains(t, "check", out, `the room "All Chat Rooms" and element text of the pipe that is named "chat*", both ways`)
	explain := func(name, text, what string, wants ...string) {
		t.Helper()
		check.NoError(t, os.WriteFile(s.dir+"/"+name, []byte(text), 0o600))
		_, out, errs := run(t, "check", "-c", s.file, "--example", strings.ReplaceAll(what, "FILE", s.dir+"/"+name))
		for _, want := range wants {
			if !strings.Contains(out+errs, want) {
				t.Errorf("no %q in\n%s%s", want, out, errs)
			}
		}
	}
	explain("event.xml", deviceReport("ANDROID-1", "FALCON"), "FILE", `meet: to JXTA peers by rule "tracks"`, `    <track id="ANDROID-1" lat="54.3" lon="10.1" time="`,
		`<name>FALCON</name>`, `nothing to JXTA peers by rule "the room"`, "its type does not fit")
	explain("event.xml", takEvent("m", "b-m-p-s-m", ""), "FILE", `nothing to JXTA peers by rule "tracks"`)
	explain("track.xml", `<track id="B-7" lat="54.5" lon="10.2"><name>boat</name><course>90</course><speed>10</speed></track>`, "type=message,element=trk:body,data=FILE",
		`meet: to TAK devices by rule "tracks"`, `uid="B-7" type="a-f-S"`, `lat="54.5"`, `speed="5.14"`, `nothing to TAK devices by rule "the room" (line`, "its element does not fit")
	explain("track.xml", `<track lat="54.5" lon="10.2"/>`, "type=message,element=trk:body,data=FILE", "the element has no id")
	explain("track.xml", `<track id="B" lat="94.5" lon="10.2"/>`, "type=message,element=trk:body,data=FILE", "outside of the world")
	explain("line.json", `{"from":"anna","text":"ready & able"}`, "type=message,element=text,data=FILE", `senderCallsign="anna"`, "ready &amp; able")
}

// Mistakes of [[meet]] are reported with the key.
func TestMeetMistakes(t *testing.T) {
	s := newSite(t, 2, "")
	meetSite(t, s, "1 127.0.0.1:7142")
	good, err := os.ReadFile(s.file)
	check.NoError(check.Fatal(t), err)
	for _, c := range [][3]string{
		{"\n[tak]\n", "\n", "of no use without [tak]"},
		{"id_at = \"xml:/track/@id\"\n", "", "meet.id_at: is missing"},
		{"{callsign}", "{rank}", "has {rank}: it may have {id}, {callsign}"},
		{"lat_at = \"xml:", "lat_at = \"yaml:", "meet.lat_at: must be like"},
		{"as = \"a-f-S\"", "as = \"ship\"", "must be a type of units"},
		{"pipe_name = \"chat*\"", "", "meet.pipe: is missing"},
		{"room = ", "lat_at = \"json:/lat\"\nroom = ", "meet.lat_at: is of no use in a rule with room"},
		{"room = ", "form = \"cot\"\nroom = ", "is of no use in form = \"cot\""},
		{"id = 2", "id = 65535", "needs the number 65535 for itself"},
	} {
		bad := strings.Replace(string(good), c[0], c[1], 1)
		if bad == string(good) {
			t.Fatalf("%q is not in the configuration", c[0])
		}
		check.NoError(t, os.WriteFile(s.file, []byte(bad), 0o600))
		code, out, errs := run(t, "check", "-c", s.file)
		check.True(t, c[2]+" is a mistake", code != 0, out)
		check.Contains(t, c[2], errs, c[2])
	}
}

// A JXTA peer and a TAK device at one gateway see each other by the rules of docs/tak.md; unreadable data is reported and counted.
func TestMeetAtOneGateway(t *testing.T) {
	const tracks = "uuid-59616261646162614E50472050325033000000000000000000000000000000A104"
	s := newSite(t, 2, "")
	meetSite(t, s, "1 127.0.0.1:7142")
	tak := check.FreeAddress(t, "tcp")
	text, err := os.ReadFile(s.file)
	check.NoError(check.Fatal(t), err)
	check.NoError(t, os.WriteFile(s.file, []byte(strings.Replace(string(text), "\n[tak]\n", fmt.Sprintf("\n[tak]\nlisten = %q\n", tak), 1)), 0o600))
	r := s.start(t)
	var mu sync.Mutex
	heard := ""
	peer, err := tcp.Dial(t.Context(), tcp.Config{Address: s.lan, Edge: edgepeer.Config{Name: "anna", Rand: rand.New(rand.NewPCG(1, 2))},
		Pipes: []edgepeer.Listen{{Pipe: tracks, Kind: jxta.PipeTypePropagate}},
		Hear: func(_ *tcp.Peer, n edgepeer.Notice) {
			if m, ok := n.(edgepeer.Message); ok {
				mu.Lock()
				defer mu.Unlock()
				heard += string(m.Elements[0].Data)
			}
		}})
	check.NoError(check.Fatal(t), err)
	t.Cleanup(peer.Close)
	device := dialTAK(t, tak)
	say := func(text string) {
		t.Helper()
		_, err := peer.Do(edgepeer.Send{Pipe: tracks, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Namespace: "trk", Name: "body", Data: []byte(text)}}})
		check.NoError(t, err)
	}
	r.until(t, "the track is shown", func() bool {
		say(`<track id="B-7" lat="54.5" lon="10.2"><name>boat</name></track>`)
		return device.find("B-7") != nil
	})
	check.Equal(t, "callsign", device.find("B-7").Callsign(), "boat")
	r.until(t, "the unit is told", func() bool {
		fmt.Fprint(device, deviceReport("ANDROID-1", "FALCON"))
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(heard, `<track id="ANDROID-1" lat="54.3"`)
	})
	for range 3 {
		say(`<track id="B-8" lat="north" lon="10.2"/>`)
	}
	r.until(t, "what cannot be read is counted", func() bool {
		_, metrics := r.get("/metrics")
		agrees(t, metrics)
		return strings.Contains(metrics, `aldis_meet_total{what="refused number"} 3`)
	})
	check.Equal(t, "lines of the log about it", strings.Count(r.logged(), "a JXTA message cannot be translated to TAK"), 1)
	check.Contains(t, "the log", r.logged(), `lat is no number`)
}
