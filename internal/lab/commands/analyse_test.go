package commands

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/field"
	"aldis/internal/lab/trace"
	"aldis/internal/operator/cli"
)

// captures unpacks the captures of internal/lab/trace (a README next to them describes them).
func captures(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../trace/testdata/*.pcap.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	m := map[string][]byte{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(z)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		m[strings.TrimSuffix(filepath.Base(file), ".pcap.gz")] = b
	}
	return m
}

// records cuts a little-endian pcap file into its head and its packets.
func records(t *testing.T, b []byte) (head []byte, list [][]byte) {
	t.Helper()
	head, b = b[:24], b[24:]
	for len(b) > 0 {
		n := 16 + int(binary.LittleEndian.Uint32(b[8:]))
		list = append(list, b[:n])
		b = b[n:]
	}
	return head, list
}

func write(t *testing.T, parts ...[]byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.pcap")
	if err := os.WriteFile(file, bytes.Join(parts, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func tshark(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("tshark", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark %v: %v: %s", args, err, stderr.String())
	}
	return string(out)
}

// theirs are the figures of tables 5.1 to 5.7 by tshark's view of every packet.
func theirs(t *testing.T, file string) (f trace.Figures) {
	type stream struct {
		first, last, syn, setup float64
		packets                 int64
		answered                bool
		opener                  string
	}
	streams := map[string]*stream{}
	fields := []string{"tcp.stream", "frame.time_epoch", "tcp.len", "frame.len", "tcp.flags", "tcp.srcport",
		"tcp.analysis.retransmission", "tcp.analysis.fast_retransmission", "tcp.analysis.spurious_retransmission"}
	args := []string{"-r", file, "-Y", "tcp", "-T", "fields", "-E", "separator=,"}
	for _, name := range fields {
		args = append(args, "-e", name)
	}
	var start, end float64
	for line := range strings.Lines(tshark(t, args...)) {
		col := strings.Split(strings.TrimRight(line, "\n"), ",")
		number := func(i int) float64 {
			v, err := strconv.ParseFloat(col[i], 64)
			if err != nil {
				t.Fatalf("tshark says %q", line)
			}
			return v
		}
		at, size := number(1), int64(number(3))
		flags, err := strconv.ParseUint(col[4], 0, 16)
		if err != nil {
			t.Fatalf("tshark says %q", line)
		}
		s := streams[col[0]]
		if s == nil {
			s = &stream{first: at, setup: -1}
			streams[col[0]] = s
		}
		if f.Packets == 0 {
			start = at
		}
		end = max(end, at)
		f.Packets++
		f.TotalBytes += size
		s.packets++
		s.last = at
		if number(2) > 0 {
			f.DataPackets++
			f.DataBytes += size
		} else {
			f.TCPBytes += size
		}
		if slices.ContainsFunc(col[6:9], func(s string) bool { return s != "" }) {
			f.Retransmissions++
		}
		switch flags & 0x12 {
		case 0x02:
			if s.opener == "" {
				s.opener, s.syn = col[5], at
			}
		case 0x12:
			s.answered = true
		case 0x10:
			if s.answered && s.opener == col[5] && s.setup < 0 && flags&4 == 0 {
				s.setup = at - s.syn
			}
		}
	}
	f.Connections, f.TotalS = int64(len(streams)), end-start
	var setups []float64
	var seconds []float64
	var packets []int64
	for _, s := range streams {
		seconds, packets = append(seconds, s.last-s.first), append(packets, s.packets)
		if s.setup >= 0 {
			setups = append(setups, s.setup)
		}
	}
	f.ConnMinS, f.ConnMaxS, f.ConnAvgS = slices.Min(seconds), slices.Max(seconds), mean(seconds)
	f.ConnMinPkts, f.ConnMaxPkts, f.ConnAvgPkts = slices.Min(packets), slices.Max(packets), float64(f.Packets)/float64(len(packets))
	if len(setups) > 0 {
		f.SetupMinS, f.SetupMaxS, f.SetupAvgS = slices.Min(setups), slices.Max(setups), mean(setups)
	}
	return f
}

func mean(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// same compares figures; times to the microsecond that the captures have.
func same(t *testing.T, what string, got, want trace.Figures) {
	t.Helper()
	flat := func(f trace.Figures) map[string]float64 {
		b, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]float64{}
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	g, w := flat(got), flat(want)
	for name := range w {
		if math.Abs(g[name]-w[name]) > 2e-6 {
			t.Errorf("%s: %s is %v, tshark says %v", what, name, g[name], w[name])
		}
	}
}

func analysed(t *testing.T, file string) *trace.Report {
	t.Helper()
	r, err := analyseFile(file, trace.Options{}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Tables 5.1 to 5.7 equal tshark's, also when packets are missing, come twice or in another order.
func TestAnalyseAgreesWithTshark(t *testing.T) {
	for name, b := range captures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := write(t, b)
			same(t, "as captured", analysed(t, file).Figures, theirs(t, file))
			head, list := records(t, b)
			file = write(t, head, bytes.Join(list[len(list)/2:], nil))
			same(t, "from the middle", analysed(t, file).Figures, theirs(t, file))
			var short [][]byte
			for _, r := range list {
				r = bytes.Clone(r[:min(len(r), 16+80)])
				binary.LittleEndian.PutUint32(r[8:], uint32(len(r)-16))
				short = append(short, r)
			}
			file = write(t, head, bytes.Join(short, nil))
			same(t, "80 octets of each packet", analysed(t, file).Figures, theirs(t, file))
			for seed := range uint64(4) {
				random := rand.New(rand.NewPCG(seed, 7))
				var out [][]byte
				for i, r := range list {
					switch random.IntN(12) {
					case 0:
						continue
					case 1:
						out = append(out, r)
					case 2:
						if i > 0 && len(out) > 0 {
							out = slices.Insert(out, len(out)-1, r)
							continue
						}
					}
					out = append(out, r)
				}
				file := write(t, head, bytes.Join(out, nil))
				same(t, fmt.Sprintf("damaged with seed %d", seed), analysed(t, file).Figures, theirs(t, file))
			}
		})
	}
}

// tally is the results of an independent decoder.
type tally struct {
	kinds    map[string]trace.Tally
	elements map[string]trace.Tally
	rest     int64 // octets between messages: welcome lines, HTTP
}

func (c *tally) note(m map[string]trace.Tally, name string, octets int) {
	v := m[name]
	v.Count++
	v.Octets += int64(octets)
	m[name] = v
}

// message reads one message without the use of internal/jxta and returns its length, trailer included; 0 when the capture ends within it.
func (c *tally) message(t *testing.T, b []byte, framing int) int {
	t.Helper()
	if n := min(len(b), 5); string(b[:n]) != "jxmg\x00"[:n] {
		t.Fatalf("no message: %q", b[:min(len(b), 20)])
	}
	r := bytes.NewReader(b)
	cut := false
	skip := func(n int) []byte {
		p := make([]byte, n)
		if _, err := io.ReadFull(r, p); err != nil {
			cut = true
		}
		return p
	}
	u16 := func() int { return int(binary.BigEndian.Uint16(skip(2))) }
	skip(5)
	names := []string{"", "jxta"}
	for range u16() {
		names = append(names, string(skip(u16())))
	}
	count := u16()
	kind := "other"
	found := map[string][]int{}
	for range count {
		magic, p := string(skip(4)), skip(2)
		if cut {
			return 0
		}
		if magic != "jxel" || p[1]&^1 != 0 {
			t.Fatalf("element %q, flags %#x", magic, p[1])
		}
		name := string(skip(u16()))
		if p[1]&1 != 0 {
			skip(u16())
		}
		data := string(skip(int(binary.BigEndian.Uint32(skip(4)))))
		if ns := names[p[0]]; ns != "" {
			name = ns + ":" + name
		}
		found[name] = append(found[name], len(data))
		if k := kindBy(name, data); k != "" && kind == "other" {
			kind = k
		}
	}
	if cut {
		return 0
	}
	used := len(b) - r.Len()
	if r.Len() > 4 && b[used] == 0 { // a trailer; messages begin with j
		for range 3 {
			skip(int(binary.BigEndian.Uint32(skip(4))))
		}
		used = len(b) - r.Len()
	}
	for name, sizes := range found {
		for _, n := range sizes {
			c.note(c.elements, name, n)
		}
	}
	c.note(c.kinds, kind, used+framing)
	return used
}

func kindBy(name, data string) string {
	pick := func(discovery, pipe, other string) string {
		switch {
		case strings.Contains(data, "DEADBEEFDEAFBABAFEEDBABE0000000305"):
			return discovery
		case strings.Contains(data, "JxtaPipeResolver"):
			return pipe
		}
		return other
	}
	switch {
	case strings.HasPrefix(name, "relay:"):
		return "relay"
	case name == "jxta:JxtaWireHeader":
		return "propagate pipe"
	case strings.HasPrefix(name, "jxta:PeerView."):
		return "peer view"
	case name == "jxta:Connect", name == "jxta:RdvAdvReply", name == "jxta:ConnectedPeer", name == "jxta:ConnectedLease":
		return "lease"
	case name == "jxta:jxta-NetGroupSrdi":
		return "srdi"
	case name == "jxta:jxta-NetGroupORes":
		return pick("discovery query", "pipe query", "resolver query")
	case name == "jxta:jxta-NetGroupIRes":
		return pick("discovery response", "pipe answer", "resolver response")
	}
	return ""
}

// tcp reads a stream of packages.
func (c *tally) tcp(t *testing.T, b []byte) {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return
	}
	c.rest += int64(len(line) + 1)
	for len(rest) > 63 {
		i := bytes.Index(rest[:63], []byte("content-length\x00\x08"))
		if i < 0 || rest[62] != 0 {
			t.Fatalf("no package: %q", rest[:63])
		}
		n := int(binary.BigEndian.Uint64(rest[i+16:]))
		if len(rest) < 63+n {
			break
		}
		if used := c.message(t, rest[63:63+n], 63); used != n {
			t.Fatalf("message of %d octets in a package of %d", used, n)
		}
		rest = rest[63+n:]
	}
	c.rest += int64(len(rest)) // a message whose end is not in the capture
}

// http reads requests or answers with the standard library.
func (c *tally) http(t *testing.T, b []byte) {
	in := bufio.NewReader(bytes.NewReader(b))
	answers := bytes.HasPrefix(b, []byte("HTTP/"))
	total := int64(len(b))
	for {
		if _, err := in.Peek(1); err != nil {
			break
		}
		var body io.ReadCloser
		if answers {
			r, err := http.ReadResponse(in, nil)
			if errors.Is(err, io.ErrUnexpectedEOF) { // the capture ends within a head
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			body = r.Body
		} else {
			r, err := http.ReadRequest(in)
			if errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			body = r.Body
		}
		messages, _ := io.ReadAll(body) // the capture may end within a poll
		for len(messages) > 0 && messages[0] == 'j' {
			n := c.message(t, messages, 0)
			if n == 0 {
				break
			}
			messages = messages[n:]
			total -= int64(n)
		}
	}
	c.rest += total
}

// Message kinds and element octets equal those of another decoder: tshark puts the streams together, the standard
// library reads HTTP, and messages are read by the lines above.
func TestAnalyseAgreesWithAnotherDecoder(t *testing.T) {
	for name, b := range captures(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := write(t, b)
			got := analysed(t, file)
			c := &tally{kinds: map[string]trace.Tally{}, elements: map[string]trace.Tally{}}
			for i := range got.Figures.Connections {
				var sides [2][]byte
				for line := range strings.Lines(tshark(t, "-r", file, "--disable-heuristic", "jxta_tcp", "--disable-protocol", "http", "-q", "-z", fmt.Sprintf("follow,tcp,raw,%d", i))) {
					side := 0
					if strings.HasPrefix(line, "\t") {
						side = 1
					}
					octets, err := hex.DecodeString(strings.TrimSpace(line))
					if err == nil {
						sides[side] = append(sides[side], octets...)
					}
				}
				for _, s := range sides {
					if bytes.HasPrefix(s, []byte("JXTAHELLO")) {
						c.tcp(t, s)
					} else if len(s) > 0 {
						c.http(t, s)
					}
				}
			}
			rows := func(list []trace.Row) map[string]trace.Tally {
				m := map[string]trace.Tally{}
				for _, r := range list {
					m[r.Name] = r.Tally
				}
				return m
			}
			if g := rows(got.Kinds); !maps.Equal(g, c.kinds) {
				t.Errorf("kinds %v\nwant  %v", g, c.kinds)
			}
			if g := rows(got.Elements); !maps.Equal(g, c.elements) {
				t.Errorf("elements %v\nwant     %v", g, c.elements)
			}
			if g := got.WelcomeBytes + got.HTTPBytes + got.UnreadBytes; g != c.rest {
				t.Errorf("%d octets beside the messages, want %d", g, c.rest)
			}
		})
	}
}

// Elements equal those of tshark's own dissector, where it can read them. Of signed messages and of HTTP's back channel
// it reads none; of 2.2 over TCP it loses some when its line ends come in segments of their own.
func TestAnalyseAgreesWithDissector(t *testing.T) {
	all := captures(t)
	for name, complete := range map[string]bool{"jxse27-unsigned-tcp": true, "jxta22-tcp-iridium": false, "jxta22-http": false} {
		file := write(t, all[name])
		want := map[string]trace.Tally{}
		out := tshark(t, "-r", file, "-o", "tcp.reassemble_out_of_order:TRUE", "-Y", "jxta.message", "-T", "fields", "-E", "separator=;",
			"-e", "jxta.message.element.name", "-e", "jxta.message.element.content.length")
		for line := range strings.Lines(out) {
			names, lengths, _ := strings.Cut(strings.TrimSpace(line), ";")
			sizes := strings.Split(lengths, ",")
			for i, n := range strings.Split(names, ",") {
				size, err := strconv.ParseInt(sizes[i], 0, 64)
				if err != nil {
					t.Fatal(err)
				}
				v := want[n]
				want[n] = trace.Tally{Count: v.Count + 1, Octets: v.Octets + size}
			}
		}
		got := map[string]trace.Tally{}
		for _, e := range analysed(t, file).Elements {
			n := e.Name[strings.LastIndexByte(e.Name, ':')+1:]
			v := got[n]
			got[n] = trace.Tally{Count: v.Count + e.Count, Octets: v.Octets + e.Octets}
		}
		if len(want) < 10 || complete && !maps.Equal(got, want) {
			t.Errorf("%s: elements %v\nthe dissector says %v", name, got, want)
		}
		for n, w := range want {
			if g := got[n]; g.Count < w.Count || g.Octets < w.Octets {
				t.Errorf("%s: %q: %v, the dissector says %v", name, n, g, w)
			}
		}
	}
}

func TestAnalyseCommand(t *testing.T) {
	all := captures(t)
	good := write(t, all["jxta22-http"])
	cut := write(t, all["jxta22-http"][:50000])
	tests := []struct {
		name string
		args []string
		code int
		out  []string // each in standard output, or in standard error
	}{
		{"text", []string{good}, 0, []string{"5.10", "1000 / 4500", "edge 10.88.0.3 (it dialled most"}},
		{"edge", []string{good, "--edge", "10.88.0.1"}, 0, []string{"4500 / 1000"}},
		{"json", []string{good, "--json"}, 0, []string{`"retransmissions": 0`, `"data_bytes": 87056`, `"captures": {`, `"A": 13.202`}},
		{"page", []string{good, "--html", filepath.Join(t.TempDir(), "a.html")}, 0, []string{"5.10"}},
		{"page, printed", []string{good, "--html", "-"}, 0, []string{"<!DOCTYPE html>", "5.10", "Octets on the wire by kind"}},
		{"page, nowhere", []string{good, "--html", "/nowhere/a.html"}, 1, []string{"--html", "no such file"}},
		{"cut, page", []string{cut, "--html", "-"}, 1, []string{"The figures are partial", "the file ends in the middle of a packet", "5.10"}},
		{"cut", []string{cut}, 1, []string{"partial", "the file ends in the middle of a packet", "5.10"}},
		{"no capture", nil, 2, []string{"which capture"}},
		{"two", []string{good, good}, 2, []string{"unexpected argument"}},
		{"no address", []string{good, "--edge", "here"}, 2, []string{"--edge"}},
		{"no file", []string{good + "x"}, 1, []string{"no such file"}},
		{"a directory", []string{filepath.Dir(good)}, 1, []string{"is a directory"}},
		{"foreign", []string{"analyse.go"}, 1, []string{"not a pcap or pcapng file"}},
		{"help", []string{"-h"}, 0, []string{"usage: gateway analyse"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if code := analyseCommand(tt.args, &out, &out); code != tt.code {
				t.Errorf("exit %d, want %d", code, tt.code)
			}
			for _, want := range tt.out {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in:\n%s", want, out.String())
				}
			}
		})
	}
	var out bytes.Buffer
	analyseCommand([]string{good, "--json"}, &out, io.Discard)
	var parsed struct {
		Captures map[string]trace.Figures `json:"captures"`
		Details  map[string]trace.Report  `json:"details"`
	}
	if err := json.Unmarshal(out.Bytes(), &parsed); err != nil || parsed.Captures["a"].Packets != 248 || parsed.Details["a"].Messages != 29 {
		t.Errorf("JSON: %v, %+v", err, parsed.Captures)
	}
}

// The airtime ledgers of two gateways agree with the capture of their link, every account, with pieces and with P_Mul as the carrier of
// long messages. A gateway charges the packets that it sends, and even those lost on the way are in its own capture.
func TestAnalyseAgreesWithLedger(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("needs root, as the lab does")
	}
	binary := filepath.Join(t.TempDir(), "gateway")
	if out, err := exec.Command("go", "build", "-o", binary, "aldis/cmd/gateway").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	for _, tt := range []struct {
		profile, frame string
	}{{"iridium-directip-shore", "segment"}, {"vhf-cnr-16k", "p_mul Data_PDU"}} {
		t.Run(tt.profile, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, err := field.BlueGame(context.Background(), field.Options{
				Profile: tt.profile, Only: "gateway", Gateway: binary, Keep: dir, Seed: 3,
				Duration: 40 * time.Second, Rate: 2 * time.Second, Bulk: 6000, BulkAt: 20 * time.Second, Idle: time.Second, Drain: 20 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, site := range []string{"hq", "ship"} {
				checkLedger(t, filepath.Join(dir, "gateway"), site, fmt.Sprintf("node %d", i+1), tt.frame)
			}
		})
	}
}

// checkLedger compares a site's ledger with its capture, which must have such a frame.
func checkLedger(t *testing.T, dir, site, node, frame string) {
	t.Helper()
	var status struct {
		Ledger []struct {
			Direction, Kind string
			Octets          int64
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, site+"-status"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &status); err != nil {
		t.Fatal(err)
	}
	var opt trace.Options
	if err := linkOptions(&opt, filepath.Join(dir, "net.key"), "", ""); err != nil {
		t.Fatal(err)
	}
	r, err := analyseFile(filepath.Join(dir, site+".pcap"), opt, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	l := r.Link
	must := check.Fatal(check.In(t, site))
	check.True(must, "l", l != nil)
	check.Equal(must, "l.Opened", l.Opened, l.Datagrams)
	check.Equal(must, "l.Unread", l.Unread, 0)
	check.True(must, "not r.Partial", !r.Partial, r.Problems)
	clear := decrypted(t, filepath.Join(dir, site+".pcap"), filepath.Join(dir, "net.key"), cli.ExitGood)
	packets := dissect(t, clear)
	faultless(t, clear, packets)
	check.Equal(t, "datagrams that are dissected", int64(len(packets)), l.Datagrams)
	contents := 0
	for _, p := range packets {
		for _, f := range p {
			if f.name == "aldis.element.data" {
				contents++
			}
		}
	}
	check.True(t, "contents of messages in clear", contents > 0)
	named := func(r trace.Row) bool { return r.Name == frame }
	check.True(must, "frames of kind "+frame, slices.ContainsFunc(l.Frames, named), l.Frames)
	want := map[string]int64{}
	for _, row := range status.Ledger {
		if row.Direction == "sent" && row.Octets > 0 {
			want[row.Kind] += row.Octets
		}
	}
	got := map[string]int64{}
	for _, row := range l.Ledger {
		if row.From == node {
			got[row.Kind] += row.Octets
		}
	}
	if len(want) < 5 || !maps.Equal(got, want) {
		t.Errorf("%s sent, by the capture: %v\nby its ledger: %v", site, got, want)
	}
}

// TestAnalyseGzipped: a gzipped capture gives the same report as its contents.
func TestAnalyseGzipped(t *testing.T) {
	const file = "../trace/testdata/jxse27-tcp-iridium.pcap.gz"
	plain := filepath.Join(t.TempDir(), "jxse27-tcp-iridium.pcap")
	if err := os.WriteFile(plain, captures(t)["jxse27-tcp-iridium"], 0o600); err != nil {
		t.Fatal(err)
	}
	code, packed, errs := run(t, "analyse", file)
	check.Equal(t, "exit code, and "+errs, code, cli.ExitGood)
	_, unpacked, _ := run(t, "analyse", plain)
	check.Equal(t, "the report", packed, unpacked)
	cut, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	code, _, errs = run(t, "analyse", write(t, cut[:len(cut)/2]))
	check.Equal(t, "exit code of half a file, and "+errs, code, cli.ExitRefused)
}
