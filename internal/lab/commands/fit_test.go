package commands

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
)

// packet is a UDP datagram between two hosts, the n-th of them.
func packet(n, octets int, from, to byte) []byte {
	b := make([]byte, octets)
	b[0], b[9] = 0x45, 17
	binary.BigEndian.PutUint16(b[2:], uint16(octets))
	copy(b[12:], []byte{10, 0, 0, from, 10, 0, 0, to})
	binary.BigEndian.PutUint16(b[24:], uint16(octets-20))
	binary.BigEndian.PutUint32(b[28:], uint32(n))
	return b
}

// captured is a packet in a capture file, at a time in microseconds.
func captured(at int64, b []byte) []byte {
	r := binary.LittleEndian.AppendUint32(nil, uint32(at/1e6))
	r = binary.LittleEndian.AppendUint32(r, uint32(at%1e6))
	r = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(r, uint32(len(b))), uint32(len(b)))
	return append(r, b...)
}

// captureFile writes records to a file.
func captureFile(t *testing.T, records []byte) string {
	t.Helper()
	head := []byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0}
	file := filepath.Join(t.TempDir(), "a.pcap")
	if err := os.WriteFile(file, append(head, records...), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// capture is a file with so many packets each way.
func capture(t *testing.T, n int) string {
	t.Helper()
	var all []byte
	for i := range n {
		all = append(all, captured(int64(i)*1e6, packet(i, 100, 1, 2))...)
		all = append(all, captured(int64(i)*1e6+1, packet(i, 100, 2, 1))...)
	}
	return captureFile(t, all)
}

// TestFitCommand: two captures of a link without chance, whose second clock is two seconds behind, become a profile.
func TestFitCommand(t *testing.T) {
	var ship, hq []byte
	const delay, behind = 300_000, 2_000_000 // microseconds
	at := int64(10_000_000)
	for i := range 300 {
		octets := 60 + 13*(i%30)
		b, air := packet(i, octets, 2, 1), int64(octets*8*1_000_000/4800)
		ship = append(ship, captured(at, b)...)
		if i%50 != 7 { // lost
			hq = append(hq, captured(at+air+delay-behind, b)...)
		}
		at += 900_000
		b, air = packet(i, octets, 1, 2), int64(octets*8*1_000_000/9300)
		hq = append(hq, captured(at-behind, b)...)
		ship = append(ship, captured(at+air+delay, b)...)
		at += 900_000
	}
	files := captureFile(t, ship) + "," + captureFile(t, hq)
	out := filepath.Join(t.TempDir(), "ours.toml")
	var b, errs bytes.Buffer
	if code := tuneCommand([]string{"--profile", "iridium-dialup", "--fit", files, "--out", out, "--name", "ours", "--json"}, &b, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var told struct {
		Up     struct{ Lost int } `json:"up"`
		ClockS float64            `json:"clock_offset_s"`
	}
	if err := json.Unmarshal(b.Bytes(), &told); err != nil {
		t.Fatal(err)
	}
	if told.Up.Lost != 6 || math.Abs(told.ClockS+2) > 0.005 {
		t.Errorf("%d lost, the clock %v s ahead; want 6 and -2", told.Up.Lost, told.ClockS)
	}
	p, err := profile.Load(out, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	for what, v := range map[string][2]int64{"up": {int64(p.Up.RateBps), 4800}, "down": {int64(p.Down.RateBps), 9300},
		"delay": {p.Up.Delay.Milliseconds(), 300}, "delay back": {p.Down.Delay.Milliseconds(), 300}} {
		if math.Abs(float64(v[0]-v[1])) > 0.02*float64(v[1]) {
			t.Errorf("%s: %d, want %d", what, v[0], v[1])
		}
	}
	b.Reset()
	if code := tuneCommand([]string{"--profile", "iridium-dialup", "--fit", files}, &b, &errs); code != 0 || !bytes.Contains(b.Bytes(), []byte("the second clock is -2")) {
		t.Errorf("exit %d: %s", code, b.String())
	}
}

// TestLinkProbeIsJudged: the output of gateway probe --json becomes a profile, from a file and from standard input.
func TestLinkProbeIsJudged(t *testing.T) {
	type packet struct {
		Up      bool          `json:"up"`
		Octets  int           `json:"octets"`
		Sent    time.Duration `json:"sent"`
		Arrived time.Duration `json:"arrived"`
	}
	var list []packet
	at, far := time.Duration(0), time.Hour // by the far clock
	for i := range 40 {
		octets := 52 + 400*(i%2)
		air := time.Duration(octets) * 8 * time.Second / 4800
		list = append(list, packet{true, octets, at, at + air + 300*time.Millisecond + far})
		at += 3 * time.Second
		list = append(list, packet{false, octets, at + far, at + air + 300*time.Millisecond})
		at += 3 * time.Second
	}
	text, err := json.Marshal(map[string]any{"link_probe": map[string]any{"peer": "hq", "budget_octets": 5000, "sent_octets": 2500, "received_octets": 2400},
		"terminal": true, "packets": list})
	if err != nil {
		t.Fatal(err)
	}
	file, out := filepath.Join(t.TempDir(), "linkprobe.json"), filepath.Join(t.TempDir(), "ours.toml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	code, said, errs := run(t, "tune", "--profile", "iridium-dialup", "--probe", file, "--out", out)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	wants(t, said, "rate, bit/s", "iridium-dialup-probed")
	p, err := profile.Load(out, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	if p.Up.RateBps < 4700 || p.Up.RateBps > 4900 {
		t.Errorf("%d bit/s up, want 4800", p.Up.RateBps)
	}
	text, err = os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, string(text), "# Probed: gateway probe hq --budget 5000, 2500 octets from here and 2400 from there.")
	if code, _, errs := run(t, "tune", "--profile", "iridium-dialup", "--probe", out); code != 1 {
		t.Errorf("no link probe: exit %d: %s", code, errs)
	}
	if code, _, _ := run(t, "tune", "--profile", "iridium-dialup", "--probe", file, "--fit", "a,b"); code != 2 {
		t.Errorf("both: exit %d", code)
	}
}

// TestAnalyseBothEnds: analyse joins captures of both ends: one-way times of packets, losses, and the time of the last arrival.
func TestAnalyseBothEnds(t *testing.T) {
	var near, far []byte
	const delay, behind = 300_000, 2_000_000 // microseconds
	for i := range int64(100) {
		at := 10_000_000 + i*1_000_000
		near = append(near, captured(at, packet(int(i), 100, 1, 2))...)
		if i%10 != 7 { // lost
			far = append(far, captured(at+delay-behind, packet(int(i), 100, 1, 2))...)
		}
		far = append(far, captured(at+500_000-behind, packet(int(i), 200, 2, 1))...)
		near = append(near, captured(at+500_000+delay, packet(int(i), 200, 2, 1))...)
	}
	a, b := captureFile(t, near), captureFile(t, far)
	code, out, errs := run(t, "analyse", a, "--far", b, "--json")
	if code != 1 { // the figures of JXTA are partial, because the capture has none
		t.Fatalf("exit %d: %s", code, errs)
	}
	type way struct {
		Packets, Octets, Lost int
		DelayS                struct {
			MedianS float64 `json:"median_s"`
		} `json:"one_way_s"`
	}
	var got struct {
		Details map[string]struct {
			Ends struct {
				From         way     `json:"from_the_first"`
				To           way     `json:"to_the_first"`
				ClockS       float64 `json:"clock_offset_s"`
				TerminationS float64 `json:"termination_s"`
			} `json:"ends"`
		} `json:"details"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	for _, d := range got.Details {
		e := d.Ends
		if e.From.Packets != 100 || e.From.Lost != 10 || e.From.Octets != 10_000 || e.To.Lost != 0 || e.To.Octets != 20_000 {
			t.Errorf("%+v", e)
		}
		if math.Abs(e.From.DelayS.MedianS-0.3) > 1e-3 || math.Abs(e.To.DelayS.MedianS-0.3) > 1e-3 || math.Abs(e.ClockS+2) > 1e-3 || math.Abs(e.TerminationS-99.8) > 1e-3 {
			t.Errorf("%+v", e)
		}
	}
	if len(got.Details) != 1 {
		t.Errorf("%d reports", len(got.Details))
	}
	code, _, errs = run(t, "analyse", a, "--far", "-")
	check.Equal(t, "code of standard input as the other end, "+errs, code, 2)
	if _, _, errs := run(t, "analyse", a, "--far", captureFile(t, nil)); !strings.Contains(errs, "no packet is in both captures") {
		t.Errorf("an empty capture: %s", errs)
	}
}
