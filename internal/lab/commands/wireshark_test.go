package commands

import (
	"bytes"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/trace"
	"aldis/internal/link/frame"
	"aldis/internal/link/probe"
	"aldis/internal/link/seal"
	"aldis/internal/operator/cli"
	"aldis/internal/pmul"
)

const dissector = "../../../ops/wireshark/aldis.lua"

// shown is one field as the dissector shows it, in the order of the packet.
type shown struct{ name, value string }

// dissect has tshark read a capture with the dissector, and gives the fields of each packet.
func dissect(t *testing.T, file string) [][]shown {
	t.Helper()
	out := tshark(t, "-X", "lua_script:"+dissector, "-r", file, "-T", "pdml")
	var packets [][]shown
	d := xml.NewDecoder(strings.NewReader(out))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return packets
		}
		if err != nil {
			t.Fatal(err)
		}
		el, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		var f shown
		for _, a := range el.Attr {
			switch a.Name.Local {
			case "name":
				f.name = a.Value
			case "show":
				f.value = a.Value
			}
		}
		switch el.Name.Local {
		case "packet":
			packets = append(packets, nil)
		case "field", "proto":
			packets[len(packets)-1] = append(packets[len(packets)-1], f)
		}
	}
}

// faultless fails for faults that a dissector finds, and for packets that ours does not know.
func faultless(t *testing.T, file string, packets [][]shown) {
	t.Helper()
	if len(packets) == 0 {
		t.Errorf("%s: there is nothing in it", file)
	}
	for i, p := range packets {
		ours := false
		for _, f := range p {
			ours = ours || f.name == "aldis"
			if f.name == "_ws.malformed" || f.name == "aldis.malformed" || strings.HasPrefix(f.name, "_ws.lua.") && f.name != "_ws.lua.fake" {
				t.Errorf("%s: packet %d: %s %s", file, i+1, f.name, f.value)
			}
		}
		if !ours {
			t.Errorf("%s: packet %d is not dissected", file, i+1)
		}
	}
}

// decrypted is the output file of gateway analyse --decrypt for a capture.
func decrypted(t *testing.T, capture, key string, code int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clear.pcap")
	var out, errs bytes.Buffer
	if got := analyseCommand([]string{capture, "--key", key, "--decrypt", "-w", file}, &out, &errs); got != code {
		t.Fatalf("exit %d: %s", got, errs.String())
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: only its owner is to read it", info, err)
	}
	return file
}

// conversation is a capture of sealed datagrams, one frame each, and its key.
func conversation(t *testing.T, frames []frame.Frame) (capture, key string) {
	t.Helper()
	dir := t.TempDir()
	k := seal.Key{7}
	capture, key = filepath.Join(dir, "link.pcap"), filepath.Join(dir, "net.key")
	if err := os.WriteFile(key, []byte(k.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	sealer := seal.NewSealer(k, 2, seal.Incarnation{Number: 1_800_000_000, Salt: 0xbeef})
	var b bytes.Buffer
	if err := trace.WriteClearHead(&b); err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		d, err := sealer.Seal(nil, 1, i == 0, frame.Append(nil, f, true))
		if err != nil {
			t.Fatal(err)
		}
		c := trace.Clear{At: int64(i+1) * 1e9, Src: netip.MustParseAddrPort("10.0.0.2:7142"), Dst: netip.MustParseAddrPort("10.0.0.1:7142"), Payload: d}
		if err := c.Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(capture, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return capture, key
}

// everyFrame has each kind of frame, and each field of it with a value of its own.
var everyFrame = []frame.Frame{
	frame.Hello{Store: 0xa1b2c3d4, Stream: 3, HeardIncarnation: 0x11223344, HeardStream: 5, Digest: 0x99aabbcc, Model: 0x7788, Forgot: 9, Segments: true, First: [frame.Queues]uint16{258, 772},
		Seen: 1286, Starts: []frame.Start{{Incarnation: 16909060, First: [frame.Queues]uint16{11, 12}}, {Incarnation: 16909069, First: [frame.Queues]uint16{13, 260}}}, End: true, Ended: true, Void: true, Known: 77, Roster: 513, Mark: 0xf1f2,
		Ephemeral: [frame.EphemeralOctets]byte{0: 0xe1, 31: 0xe2}, HeardEphemeral: 0xe3e4, Corpus: 0xe5e6e7e8},
	frame.Ack{Queue: frame.Bulk, Cumulative: 0x1234, Bitmap: []byte{0x02, 0x80}},
	frame.Greeting{Store: 0xa1b2c3d5, Stream: 1, Digest: 0x99aabbcd, Model: 0x7789, Forgot: 10, Roster: 514, Mark: 0xf3f4, Corpus: 0xe9eaebec, First: [frame.Queues]uint16{21, 22}, Starts: true, More: true, Members: []frame.Member{
		{ID: 2, HeardIncarnation: 0x11223344, Stream: 2, HeardStream: 6, Seen: 1287, Asks: true, Blank: true}, {ID: 300, Apart: true}}},
	frame.Greeting{Store: 0xa1b2c3d5, Stream: 1, Forgot: 11, Ahead: true, Roster: 514, Mark: 0xf3f4, Corpus: 0xe9eaebec, First: [frame.Queues]uint16{21, 22}},
	frame.Probe{ID: 7},
	frame.Answer{ID: 8},
	frame.LinkProbe{Body: []byte{2, 7, 3, 20, 9, 30, 0, 0}},
	frame.Silence{Until: 1_800_000_000},
	frame.Talkers{IDs: []uint16{2, 3, 300}},
	frame.Beside{Bearer: 0xa9, Stream: 4, Ack: frame.Ack{Queue: frame.Bulk, Cumulative: 0x1235, Bitmap: []byte{0x03, 0x81}}},
	frame.Digest{Tag: 0xa1a2, Hash: 0xb1b2, Fresh: true},
	frame.Query{Ref: 3, Body: []byte{0x41, 0x42}},
	frame.Told{Ref: 2, Regular: true, Body: []byte{0x43, 0x44}},
	frame.Open{Body: []byte{0x8a, 14, 0xc1, 0xc2, 3, 0, 0, 0, 7, 0, 9, 80, 94, 1, 2, 3, 0x60, 0xc1, 0xc2, 3, 1}},
	frame.Open{Body: []byte{0xb2, 0xc1, 0xc2, 3, 0, 0, 0, 7, 0, 10, 94, 1, 2, 3}},
	frame.Rollup{Number: 6, Body: []byte{0x45, 0x46}},
	frame.Rolled{Number: 9},
	frame.Data{Number: 4138, Prompt: true, Rides: true, Cumulative: 254, Free: true, After: 3, Body: []byte{0x80 | 0x3f, 0x80, 0x01, 1, 2}},
	frame.Data{Number: 42, Short: true, Body: []byte{0}},
	frame.Segment{Number: 4139, Prompt: true, Rides: true, Cumulative: 253, Object: 99, Total: 1001, Free: true, Body: []byte{0x31, 0x32}},
	frame.Segment{Number: 43, Short: true, Object: 98, Body: []byte{0x33}},
	frame.PMul{Body: []byte{0x20, 5, 1, 0}},
	frame.NORM{Body: []byte{1, 9, 1, 2}},
}

// otherNames are fields that have other names in the dissector than in Go.
var otherNames = map[string]string{"data.short": "data.wide", "segment.short": "segment.wide"}

// TestDissectorNamesEveryField: every field of every frame in Go's own types is one of the dissector's, with its value.
func TestDissectorNamesEveryField(t *testing.T) {
	met := map[string]bool{}
	for _, f := range everyFrame {
		met[reflect.TypeOf(f).Name()] = true
	}
	for _, name := range frameTypes(t) {
		check.True(t, "a frame of type "+name, met[name])
	}
	capture, key := conversation(t, everyFrame)
	file := decrypted(t, capture, key, cli.ExitGood)
	packets := dissect(t, file)
	faultless(t, file, packets)
	for i, f := range everyFrame {
		name := strings.ToLower(reflect.TypeOf(f).Name())
		want := flatten(t, name, reflect.ValueOf(f))
		for _, w := range append(want, shown{"aldis.from", "2"}, shown{"aldis.to", "1"}, shown{"aldis.incarnation", "1800000000"}, shown{"aldis.counter", strconv.Itoa(i + 1)}) {
			if !slices.ContainsFunc(packets[i], func(s shown) bool { return s.name == w.name && alike(s.value, w.value) }) {
				t.Errorf("%T: no %s = %s in %v", f, w.name, w.value, packets[i])
			}
		}
	}
	// Sealed datagrams are named too.
	packets = dissect(t, capture)
	faultless(t, capture, packets)
	for _, w := range []shown{{"aldis.seal.incarnation", "1800000000"}, {"aldis.seal.salt", "0xbeef"}, {"aldis.seal.counter", "1"}, {"aldis.seal.hint", "2"}} {
		if !slices.ContainsFunc(packets[0], func(s shown) bool { return s.name == w.name && alike(s.value, w.value) }) {
			t.Errorf("sealed: no %v in %v", w, packets[0])
		}
	}
}

// frameTypes are the types of package frame that are frames, by its source.
func frameTypes(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../link/frame/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "isFrame" {
				names = append(names, fn.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	if len(names) < 9 {
		t.Fatalf("only %v", names)
	}
	return names
}

// flatten returns the fields of a value under the dissector's names. A member that is apart has no others.
func flatten(t *testing.T, name string, v reflect.Value) (list []shown) {
	for i := range v.NumField() {
		field := name + "." + strings.ToLower(v.Type().Field(i).Name)
		x := v.Field(i)
		if name == "member" && v.FieldByName("Apart").Bool() && field != "member.id" && field != "member.apart" {
			continue
		}
		called := "aldis." + field
		if other := otherNames[field]; other != "" {
			called = "aldis." + other
		}
		switch {
		case (field == "segment.total" || field == "segment.free") && v.FieldByName("Total").Int() == 0, field == "segment.cumulative" && !v.FieldByName("Rides").Bool():
			continue
		case x.CanInt():
			list = append(list, shown{called, fmt.Sprint(x.Int())})
		case x.Kind() == reflect.Bool:
			on := x.Bool() != strings.HasSuffix(field, ".short")
			list = append(list, shown{called, fmt.Sprint(map[bool]int{true: 1}[on])})
		case x.CanUint():
			if field == "data.after" && !v.FieldByName("Free").Bool() || field == "data.cumulative" && !v.FieldByName("Rides").Bool() {
				continue
			}
			if field == "silence.until" {
				list = append(list, shown{called, "Jan 15, 2027 08:00:00.000000000 UTC"})
				continue
			}
			list = append(list, shown{called, fmt.Sprint(x.Uint())})
		case x.Kind() == reflect.Slice && x.Type().Elem().Kind() == reflect.Uint8:
			list = append(list, shown{called, strings.ReplaceAll(fmt.Sprintf("% x", x.Bytes()), " ", ":")})
		case x.Kind() == reflect.Array && x.Type().Elem().Kind() == reflect.Uint8:
			octets := make([]byte, x.Len())
			reflect.Copy(reflect.ValueOf(octets), x)
			list = append(list, shown{called, strings.ReplaceAll(fmt.Sprintf("% x", octets), " ", ":")})
		case x.Kind() == reflect.Array || x.Kind() == reflect.Slice && x.Type().Elem().Kind() == reflect.Uint16:
			for k := range x.Len() {
				list = append(list, shown{called, fmt.Sprint(x.Index(k).Uint())})
			}
		case x.Kind() == reflect.Slice:
			list = append(list, shown{called, fmt.Sprint(x.Len())})
			for k := range x.Len() {
				list = append(list, flatten(t, strings.ToLower(x.Type().Elem().Name()), x.Index(k))...)
			}
		case x.Kind() == reflect.Struct:
			list = append(list, flatten(t, strings.ToLower(x.Type().Name()), x)...)
		default:
			t.Fatalf("%s: %v", field, x.Kind())
		}
	}
	return list
}

// alike says whether tshark shows a value, which may be a number in another base.
func alike(shown, want string) bool {
	n, err := strconv.ParseUint(shown, 0, 64)
	return shown == want || err == nil && strconv.FormatUint(n, 10) == want
}

// TestDissectorOfCarriers: the PDUs of P_Mul in the compact coding and elided NORM, field by field.
func TestDissectorOfCarriers(t *testing.T) {
	expiry := time.Unix(1_800_000_000, 0).UTC()
	const expires = "expiry=Jan 15, 2027 08:00:00.000000000 UTC"
	packed := func(pdus ...pmul.PDU) frame.Frame {
		b, err := pmul.AppendCompact(nil, 2, 1, pdus...)
		if err != nil {
			t.Fatal(err)
		}
		return frame.PMul{Body: b}
	}
	elided := func(text string) frame.Frame {
		b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		return frame.NORM{Body: b}
	}
	same := func(sequence uint32, nodes ...pmul.NodeID) (list []pmul.Destination) {
		for _, n := range nodes {
			list = append(list, pmul.Destination{Node: n, Sequence: sequence})
		}
		return list
	}
	differ := same(200, 1, 3, 4, 5, 6, 7)
	differ[1].Sequence, differ[5].Sequence = 205, 207
	tests := []struct {
		f    frame.Frame
		want string
	}{
		{packed(pmul.DataPDU{Source: 9, Message: 300, Priority: 4, Number: 7, Fragment: []byte{0xab, 0xcd}}),
			"pmul.type=0 source=9 message=300 priority=4 number=7 fragment=ab:cd"},
		{packed(pmul.AckPDU{Source: 2, Entries: []pmul.AckEntry{{Source: 1, Message: 500, Missing: []pmul.Run{{From: 3, To: 3}, {From: 5, To: 9}}, Cut: true}, {Source: 1, Message: 498}}}),
			"pmul.type=1 ack.entries=2 ack.message=500 ack.cut=1 ack.runs=2 ack.from=3 ack.to=3 ack.from=5 ack.to=9 ack.message=498 ack.cut=0 ack.runs=0"},
		{packed(pmul.AckPDU{Source: 8, Entries: []pmul.AckEntry{{Source: 6, Message: 5}}}), "pmul.type=1 source=8 ack.of=6 ack.entries=1 ack.message=5"},
		{packed(pmul.AddressPDU{Source: 2, Message: 300, Total: 20, Expiry: expiry, MAP: pmul.NotFirst, Plan: &pmul.Plan{Last: 100, Follow: 21},
			Destinations: []pmul.Destination{{Node: 3, Sequence: 44}}}),
			"pmul.type=2 message=300 total=20 " + expires + " map=0x80 plan.last=100 plan.follow=21 destinations=1 destination.node=3 destination.sequence=44"},
		{packed(pmul.AddressPDU{Source: 2, Message: 306, Total: 2, Expiry: expiry, Batch: true, Plan: &pmul.Plan{Last: 100, Follow: 2}, Destinations: []pmul.Destination{{Node: 3, Sequence: 44}}}),
			"pmul.type=2 message=306 total=2 " + expires + " map=0x01 batch=1 plan.last=100 plan.follow=2 destinations=1"},
		{packed(pmul.AddressPDU{Source: 2, Message: 307, Total: 2, Expiry: expiry, MAP: pmul.NotLast, Destinations: []pmul.Destination{{Node: 3, Sequence: 44}}}),
			"pmul.type=2 message=307 total=2 " + expires + " map=0x40 batch=0 destinations=1"},
		{packed(pmul.AddressPDU{Source: 2, Message: 308, Total: 2, After: 300, Expiry: expiry, Destinations: []pmul.Destination{{Node: 3, Sequence: 644}}}),
			"pmul.type=9 after=300 type=2 message=308 total=2 " + expires + " destinations=1"},
		{packed(pmul.DiscardPDU{Source: 2, Message: 301}), "pmul.type=3 message=301"},
		{packed(pmul.AddressPDU{Source: 2, Message: 302, Total: 1, Expiry: expiry, Destinations: []pmul.Destination{{Node: 3, Sequence: 45}}},
			pmul.DataPDU{Source: 2, Message: 302, Number: 1, Fragment: []byte{1}}, pmul.ParityPDU{Source: 2, Message: 300, Index: 2, Left: 5, Shard: []byte{0xee}}),
			"pmul.type=4 message=302 " + expires + " destinations=1 destination.node=3 destination.sequence=45 length=1 fragment=01 type=5 message=300 index=2 left=5 shard=ee"},
		{packed(pmul.AddressPDU{Source: 2, Message: 304, Total: 20, Expiry: expiry, MAP: pmul.NotFirst, Destinations: same(200, 1, 3, 4, 5, 6, 7)}),
			"pmul.type=10 message=304 total=20 " + expires + " map=0x80 destinations=6 destination.node=1 destination.sequence=200 destination.node=3 destination.sequence=200 " +
				"destination.node=4 destination.sequence=200 destination.node=5 destination.sequence=200 destination.node=6 destination.sequence=200 destination.node=7 destination.sequence=200"},
		{packed(pmul.AddressPDU{Source: 2, Message: 305, Total: 1, Expiry: expiry, Destinations: differ},
			pmul.DataPDU{Source: 2, Message: 305, Number: 1, Fragment: []byte{7}}),
			"pmul.type=12 message=305 " + expires + " destinations=6 destination.node=1 destination.sequence=200 destination.node=3 destination.sequence=205 " +
				"destination.node=4 destination.sequence=200 destination.node=5 destination.sequence=200 destination.node=6 destination.sequence=200 destination.node=7 destination.sequence=207 fragment=07"},
		{packed(pmul.TurnPDU{Source: 2, Number: 9, Next: 300, Left: 3 * time.Second, More: true}), "pmul.type=6 turn.number=9 turn.next=300 turn.left=12"},
		{packed(pmul.AckPDU{Source: 2, Runs: true, Entries: []pmul.AckEntry{{Source: 1, Message: 500}, {Source: 1, Message: 501}, {Source: 1, Message: 503}}}),
			"pmul.type=7 ack.entries=2 ack.message=500 ack.more=1 ack.message=503 ack.more=0"},
		{packed(pmul.RequestPDU{Source: 2}), "pmul.type=15 length="},
		{frame.LinkProbe{Body: probe.Append(nil, probe.Word{Op: probe.Report, ID: 9, Seq: 1, From: 2, Total: 4, Events: []probe.Event{{Seq: 5, At: time.Second}, {Sent: true, Seq: 32, At: 2 * time.Second}}}, 40)},
			"linkprobe.op=5 id=9 seq=1 from=2 total=4 events=2 event=40002 event.seq=5 event=40003 event.seq=32 fill="},
		{frame.LinkProbe{Body: probe.Append(nil, probe.Word{Op: probe.Train, ID: 9, Small: 300, Count: 8, Large: 900}, 0)}, "linkprobe.op=2 id=9 seq=0 small=300 count=8 large=900"},
		{elided("01 09 05 aabb"), "norm.kind=1 generation=9 object=5 payload=aa:bb"},
		{elided("0a 09 33 05 8020 43 aabb"), "norm.kind=2 generation=9 grtt=51 object=5 size=4096 block=2 symbol=3 payload=aa:bb"},
		{elided("03 09 05"), "norm.kind=3 generation=9 object=5"},
		{elided("04 09 05 43"), "norm.kind=4 generation=9 object=5 block=2 symbol=3"},
		{elided("05 09 05 07 01 02 c5 04 07 01 02 07 01 03 07 01 04 07 01 05"), "norm.kind=5 generation=9 nack.form=1 object=7 block=1 symbol=2 nack.count=4 object=7 block=1 symbol=5"},
	}
	frames := []frame.Frame{everyFrame[0]}
	for _, tt := range tests {
		frames = append(frames, tt.f)
	}
	capture, key := conversation(t, frames)
	file := decrypted(t, capture, key, cli.ExitRefused) // the contents of the frames are no messages
	packets := dissect(t, file)
	faultless(t, file, packets)
	for i, tt := range tests {
		kind, text, _ := strings.Cut(tt.want, ".")
		rest := packets[i+1]
		for _, w := range strings.Split(regexp.MustCompile(` ([a-z.]+=)`).ReplaceAllString(text, "\x00$1"), "\x00") {
			name, value, _ := strings.Cut(w, "=")
			at := slices.IndexFunc(rest, func(s shown) bool {
				return s.name == "aldis."+kind+"."+name && (value == "" || alike(s.value, value) || s.value == value)
			})
			if at < 0 {
				t.Errorf("%s: no %s after what stands before it in %v", tt.want, w, rest)
				break
			}
			rest = rest[at+1:]
		}
	}
}

// The dissector writes every one of its fields into a tree: none is a name without a use.
func TestDissectorHasNoIdleField(t *testing.T) {
	b, err := os.ReadFile(dissector)
	if err != nil {
		t.Fatal(err)
	}
	source := string(b)
	for _, m := range regexp.MustCompile(`(?m)^field\("\w+", "([^"]+)"`).FindAllStringSubmatch(source, -1) {
		name := m[1]
		whole := strings.Count(source, `"`+name+`"`)
		_, last, _ := strings.Cut(name, ".")
		parts := strings.Count(source, `"`+last+`"`) // "message." .. name, name .. ".id"
		if whole < 2 && parts < 1 && last != "id" {
			t.Errorf("nothing shows %s", name)
		}
	}
}

// TestDecryptRefuses: wrong arguments are reported, and a capture is never overwritten.
func TestDecryptRefuses(t *testing.T) {
	capture, key := conversation(t, everyFrame[:1])
	before, err := os.ReadFile(capture)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{capture, "--decrypt", "-w", "x.pcap"}, cli.ExitUsage, "--decrypt needs --key"},
		{[]string{capture, "--key", key, "--decrypt"}, cli.ExitUsage, "--decrypt needs --key"},
		{[]string{capture, "--key", key, "-w", "x.pcap"}, cli.ExitUsage, "-w needs --decrypt"},
		{[]string{capture, "--key", key, "--decrypt", "-w", capture}, cli.ExitRefused, "that is the capture that is read"},
		{[]string{capture, "--key", key, "--decrypt", "-w", filepath.Join(capture, "x")}, cli.ExitRefused, "not a directory"},
	} {
		var out, errs bytes.Buffer
		if code := analyseCommand(tt.args, &out, &errs); code != tt.code || !strings.Contains(errs.String(), tt.says) {
			t.Errorf("%v: exit %d, %s", tt.args, code, errs.String())
		}
	}
	if after, err := os.ReadFile(capture); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the capture has changed: %v", err)
	}
}
