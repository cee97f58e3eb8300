package field

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/lab/check"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/report"
)

// TestTAKGame: headquarters with taky and a ship with a device on the mesh, and in comparison TCP alone. On a link that is no obstacle
// all events come, both ways.
func TestTAKGame(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	r, err := TAKGame(t.Context(), Options{Profile: "wire", Peers: KindTAK, Seed: 1, Duration: 22 * time.Second, Rate: 2 * time.Second, Gateway: builtGateway(t), Progress: &said})
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if r.Server != "taky" {
		t.Errorf("the server of headquarters is %q: make tak-peers installs taky", r.Server)
	}
	for _, kind := range []string{"gateway", "unaided"} {
		run := r.Runs[kind]
		if run == nil {
			t.Fatalf("no run %q", kind)
		}
		text, _ := json.Marshal(run)
		t.Logf("%s: %s", kind, text)
		if run.Alerts.Sent != 1 || run.Alerts.Came != 1 || run.Chats.Sent != 1 || run.Chats.Came != 1 || run.Chats.Again != 0 {
			t.Errorf("%s: alerts %+v, chats %+v", kind, run.Alerts, run.Chats)
		}
		if run.FirstS == nil || run.AllS == nil || run.Reports < 6*8 || run.Compared == 0 || run.Compared+run.NotShown != run.Reports {
			t.Errorf("%s: units are not shown: %s", kind, text)
		}
		if run.Wrong > 0 {
			t.Errorf("%s: %d positions are wrong", kind, run.Wrong)
		}
	}
	if aided, alone := r.Runs["gateway"].PerReport, r.Runs["unaided"].PerReport; aided*2 > alone {
		t.Errorf("a report costs %v octets with gateways, %v without", aided, alone)
	}
	if faults := r.Faults(); faults != "" {
		t.Error(faults)
	}
	var text strings.Builder
	if err := r.Board(&text); err != nil || !strings.Contains(text.String(), "TCP alone") || !strings.Contains(text.String(), "alerts that came") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestTAKGameRefuses: options that TAK devices do not have are refused by name before anything starts.
func TestTAKGameRefuses(t *testing.T) {
	_, err := TAKGame(t.Context(), Options{Peers: KindTAK, HTTP: true, Bulk: 1000, Silent: 1, Devices: 200})
	var bad *UsageError
	if !errors.As(err, &bad) {
		t.Fatalf("%v is no mistake in the options", err)
	}
	for _, want := range []string{"http: not with --peers tak", "bulk: not", "--silent 0", "200 devices"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

// TestTAKFaults: a game in which events are lost or come twice counts as failed.
func TestTAKFaults(t *testing.T) {
	r := &report.TAKResult{Runs: map[string]*report.TAKRun{"gateway": {Reports: 1, Alerts: report.Crossed{Sent: 2, Came: 1}, Chats: report.Crossed{Sent: 1, Came: 1, Again: 1}}}}
	for _, want := range []string{"1 alerts did not come", "1 chats came twice"} {
		if !strings.Contains(r.Faults(), want) {
			t.Errorf("no %q in %q", want, r.Faults())
		}
	}
}

// TestReplayTAK: a trace of two devices and a marker, in real time through gateways as processes.
func TestReplayTAK(t *testing.T) {
	var events []replay.TAKEvent
	began := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	event := func(at time.Duration, from, uid, kind, detail string) {
		when := began.Add(at).Format(cot.TimeFormat)
		e, err := cot.ParseXML(fmt.Appendf(nil, `<event version="2.0" uid="%s" type="%s" how="m-g" time="%s" start="%[3]s" stale="%s"><point lat="54.3" lon="10.1" hae="3" ce="9.9" le="9999999"/><detail>%s</detail></event>`,
			uid, kind, when, began.Add(at+time.Minute).Format(cot.TimeFormat), detail))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, replay.TAKEvent{At: at, From: from, Event: e})
	}
	for at := time.Duration(0); at < 9*time.Second; at += 3 * time.Second {
		event(at, "10.0.0.1", "ANDROID-1", "a-f-G-U-C", `<contact callsign="ONE"/>`)
		event(at, "10.0.0.2", "ANDROID-2", "a-f-G-U-C", `<contact callsign="TWO"/>`)
	}
	event(9*time.Second, "10.0.0.1", "marker", "b-m-p-s-m", `<contact callsign="spot"/>`)
	var said bytes.Buffer
	r, err := ReplayTAK(t.Context(), events, ReplayOptions{Profile: "wire", Terminal: load(t, "wire"), Seed: 1, Gateway: builtGateway(t), Progress: &said})
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	t.Logf("%+v", *r)
	if r.Events != 7 || r.Reports != 6 || r.Shown != 1 || r.Unshown != 0 {
		t.Errorf("%+v", *r)
	}
	if r.Octets == 0 || r.Datagrams == 0 || r.CoT == 0 || r.P95M > 1 {
		t.Errorf("octets or places are wrong: %+v", *r)
	}
	if _, err := ReplayTAK(t.Context(), nil, ReplayOptions{}); !errors.Is(err, replay.ErrNoTAK) {
		t.Errorf("no events: %v", err)
	}
}

// TestTAKDirect: a device on a ship's mesh and one of headquarters send chats to each other alone, over TCP to the endpoints that they
// see, through gateways as processes.
func TestTAKDirect(t *testing.T) {
	var said bytes.Buffer
	prog := &progressLog{w: &said}
	g := &takGame{game: &game{o: Options{Profile: "wire", Seed: 1, Ships: 1, Gateway: builtGateway(t)}, p: load(t, "wire"), kind: "tak", voice: prog.voice("tak")}}
	all, end := context.WithCancel(t.Context())
	t.Cleanup(func() {
		end()
		run := &Run{}
		if _, err := g.tearDown(run, nil, func() {}); err != nil || len(run.GatewayErrors) > 0 {
			t.Errorf("at the end: %v %v", err, run.GatewayErrors)
		}
	})
	if err := errors.Join(g.setUp(all), g.serve(all, all)); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	say, err := g.meshDevice(all, 1)
	if err != nil {
		t.Fatal(err)
	}
	ns, own := "aldis-"+g.w.id+"-ship-mesh", lanAddr(1, 12).Addr().String()
	var ln net.Listener
	if err := InNetns(ns, func() (err error) {
		ln, err = net.Listen("tcp4", own+":4242")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	taken := newPlot() // by the device on the mesh, for it alone
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			hearEvents(c, taken.saw)
			c.Close()
		}
	}()
	var group net.PacketConn
	if err := InNetns(ns, func() (err error) {
		iface, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		at := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(takGroup))
		group, err = net.ListenMulticastUDP("udp4", iface, at)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { group.Close() })
	seen := newPlot()
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, _, err := group.ReadFrom(buf)
			if err != nil {
				return
			}
			if e, _, err := cot.ParseDatagram(buf[:n]); err == nil && e != nil {
				seen.saw(e)
			}
		}
	}()
	ashore, afloat := newMover(0, 0, 1), newMover(1, 0, 1)
	alone := newPlot() // by headquarters' device, for it alone too
	device := &takStream{dial: inSpace(g.served[0].ns, g.served[0].at), saw: alone.saw}
	go device.keep(all)
	if err := opened(all, device); err != nil {
		t.Fatal(err)
	}
	check.Until(t, time.Minute, "each sees the other", func() bool {
		device.send(ashore.report(time.Minute))
		say(strings.Replace(afloat.report(time.Minute), "*:-1:stcp", own+":4242:tcp", 1))
		return seen.newest(ashore.uid) != nil && alone.newest(afloat.uid) != nil
	})
	endpoint := seen.newest(ashore.uid).Find("contact").Get("endpoint")
	at, ok := strings.CutSuffix(endpoint, ":tcp")
	if !ok {
		t.Fatalf("the far unit has the endpoint %q", endpoint)
	}
	words := func(from, to *mover, id, more string) (uid, text string) {
		uid = fmt.Sprintf("GeoChat.%s.%s.%s", from.uid, to.uid, id)
		return uid, takText(uid, "b-t-f", "h-g-i-g-o", 0, 0, time.Hour, fmt.Sprintf(
			`<__chat parent="RootContactGroup" groupOwner="false" messageId="%[5]s" chatroom="%[4]s" id="%[3]s" senderCallsign="%[2]s"><chatgrp uid0="%[1]s" uid1="%[3]s" id="%[3]s"/></__chat><link uid="%[1]s" type="a-f-G-U-C" relation="p-p"/><remarks source="BAO.F.ATAK.%[1]s" to="%[3]s" time="%[6]s">for you</remarks>%[7]s`,
			from.uid, from.callsign(), to.uid, to.callsign(), id, time.Now().UTC().Format(cot.TimeFormat), more))
	}
	direct := func(text string) {
		c, err := DialIn(all, ns, at)
		if err != nil {
			t.Fatalf("the far unit's endpoint: %v", err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	uid, text := words(afloat, ashore, "11111111-0000-4000-8000-000000000001", "")
	direct(text)
	check.Until(t, time.Minute, "words of the mesh are at headquarters", func() bool { return alone.newest(uid) != nil })
	if g.served[0].plot.newest(uid) != nil {
		t.Error("words for one were given to another")
	}
	receipt := takText("11111111-0000-4000-8000-000000000001", "b-t-f-d", "h-g-i-g-o", 0, 0, time.Hour, fmt.Sprintf(
		`<__chatreceipt parent="RootContactGroup" groupOwner="false" messageId="11111111-0000-4000-8000-000000000001" chatroom="x" id="x" senderCallsign="%s"><chatgrp uid0="%s" uid1="%s" id="x"/></__chatreceipt><link uid="%[2]s" type="a-f-G-U-C" relation="p-p"/>`,
		ashore.callsign(), ashore.uid, afloat.uid))
	device.send(receipt)
	check.Until(t, time.Minute, "the receipt is at its endpoint", func() bool {
		e := taken.newest("11111111-0000-4000-8000-000000000001")
		return e != nil && e.Type == "b-t-f-d"
	})
	uid, text = words(ashore, afloat, "11111111-0000-4000-8000-000000000002", fmt.Sprintf(`<marti><dest callsign="%s"/></marti>`, afloat.callsign()))
	device.send(text)
	check.Until(t, time.Minute, "words of headquarters are at the endpoint", func() bool { return taken.newest(uid) != nil })
	if _, n := taken.came(uid); n != 1 {
		t.Errorf("they came %d times", n)
	}
}
