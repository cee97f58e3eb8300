package compact

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/lab/primer"
)

const strangersFile = "../../../docs/strangers.md"

// strangerBefore is the cost of the first and the tenth messages with the model of version 2, which knew none of the kinds.
var strangerBefore = map[string][2]float64{
	"CoT position": {382.7, 27.0}, "CoT chat": {451.8, 78.8}, "NFFI": {236.9, 12.0}, "XMPP": {233.6, 64.2}, "mail": {520.2, 115.2},
	"JSON telemetry": {182.1, 22.8}, "NMEA": {116.2, 22.0}, "OTH-GOLD": {137.6, 18.8}, "ADatP-3": {238.1, 62.0}, "chat line": {38.1, 28.8},
	"GPX": {213.6, 64.0}, "KML": {365.5, 102.4}, "GeoJSON": {214.5, 76.8}, "AIS": {117.8, 44.2},
}

// strangerRow is the cost of the messages of a kind, each with the octet that names its codec.
type strangerRow struct {
	kind                              string
	octets, first, kin, second, tenth float64
}

func strangerRows(t *testing.T) (rows []strangerRow) {
	var c Coder
	for _, s := range strangerKinds {
		row := strangerRow{kind: s.kind, kin: afterKin(s)}
		docs := strangerFirst(s)
		for _, d := range docs {
			coded, codec := c.Append(nil, d)
			if back, err := c.Expand(codec, coded, len(d)); err != nil || !bytes.Equal(back, d) {
				t.Fatalf("%s does not come back: %v", s.kind, err)
			}
			row.octets += float64(len(d)) / float64(len(docs))
			row.first += float64(1+len(coded)) / float64(len(docs))
		}
		flows := strangerFlows(s)
		for _, flow := range flows {
			var h History
			for i, d := range flow {
				coded, codec := c.AppendAfter(nil, d, &h, uint64(i+1))
				if back, err := c.ExpandAfter(codec, coded, &h, uint64(i+1), len(d)); err != nil || !bytes.Equal(back, d) {
					t.Fatalf("%s does not come back: %v", s.kind, err)
				}
				h.Add(uint64(i+1), d)
				switch i {
				case 1:
					row.second += float64(1+len(coded)) / float64(len(flows))
				case 9:
					row.tenth += float64(1+len(coded)) / float64(len(flows))
				}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// afterKin is the cost of the first message of a flow after six messages of another flow of its kind: the mean of four flows.
func afterKin(s stranger) (octets float64) {
	flows := strangerFlows(s)
	var h History
	for i, text := range flows[0][:6] {
		h.Add(uint64(i+1), text)
	}
	var c Coder
	for _, flow := range flows[1:] {
		code, _ := c.AppendKin(nil, flow[0], &h, 1, 20)
		octets += float64(1+len(code)) / float64(len(flows)-1)
	}
	return octets
}

// ours is the part of a line that this code makes.
func (r strangerRow) ours() string {
	return fmt.Sprintf("| %s | %.0f | **%.1f** | %.1f | %.1f | %.1f |", r.kind, r.octets, r.first, r.kin, r.second, r.tenth)
}

// TestStrangersTable compares docs/strangers.md with the code, and the tenth messages with their earlier cost.
func TestStrangersTable(t *testing.T) {
	rows := strangerRows(t)
	for _, r := range rows {
		t.Log(r.ours())
		if before := strangerBefore[r.kind]; r.first >= before[0] || r.tenth > before[1] {
			t.Errorf("%s: the first costs %.1f (before %.1f), the tenth %.1f (before %.1f)", r.kind, r.first, before[0], r.tenth, before[1])
		}
	}
	if *writeSizes {
		writeStrangers(t, rows)
		return
	}
	text, err := os.ReadFile(strangersFile)
	if err != nil {
		t.Fatal(err)
	}
	if s := english(); !strings.Contains(string(text), s) {
		t.Errorf("docs/strangers.md does not have %q: run make sizes", s)
	}
	if s := dressesCost(); !strings.Contains(string(text), s) {
		t.Errorf("docs/strangers.md does not have %q: run make sizes", s)
	}
	for _, r := range rows {
		check.Contains(t, "docs/strangers.md", string(text), r.ours())
	}
	if rows := longRows(t); !strings.Contains(string(text), rows) {
		t.Errorf("docs/strangers.md does not have these rows of long texts: run make sizes\n%s", rows)
	}
	for _, s := range inventedKinds {
		check.Contains(t, "docs/strangers.md", string(text), taughtRow(t, s))
	}
}

// taughtRow is the cost of first messages of an invented kind with the built-in corpus, and with one of the network, as
// gateway corpus build makes it of 200 samples: 24 kB of a kind.
func taughtRow(t *testing.T, s stranger) string {
	var taught [][]byte
	octets := 0
	for _, text := range invented(s, 1, 200) {
		if octets += len(text); octets <= 24<<10 {
			taught = append(taught, text)
		}
	}
	plain, with := Coder{}, Coder{Network: taughtWith(t, taught)}
	var sums [3]float64
	first := invented(s, 2, 60)
	for _, text := range first {
		before, _ := plain.Append(nil, text)
		after, _ := with.Append(nil, text)
		for i, n := range []int{len(text), 1 + len(before), 1 + len(after)} {
			sums[i] += float64(n) / float64(len(first))
		}
	}
	return fmt.Sprintf("| %s | %.0f | %.1f | **%.1f** |", s.kind, sums[0], sums[1], sums[2])
}

// english is the cost of lines of chat, in words.
func english() string {
	bits := englishBits()
	return fmt.Sprintf("%.2f bits a character, the octet of the codec included; lines on other topics cost %.2f", bits[0], bits[1])
}

// englishBits are the cost of lines of chat, in bits for a character: of the strangers that are measured, and of the others.
func englishBits() (bits [2]float64) {
	var c Coder
	for i, n := range []strange{strangeFirst, strangeSecond} {
		octets, coded := 0, 0
		for _, l := range n.lines {
			out, _ := c.Append(nil, []byte(l))
			octets, coded = octets+len(l), coded+1+len(out)
		}
		bits[i] = float64(8*coded) / float64(octets)
	}
	return bits
}

// dressCosts are the octets of a document, and its least and its highest cost in another dress.
func dressCosts() (plain, least, most int) {
	var c Coder
	code, _ := c.Append(nil, []byte(plainDress))
	plain, least = 1+len(code), 1<<20
	for _, d := range dresses() {
		code, _ = c.Append(nil, d.text)
		least, most = min(least, 1+len(code)), max(most, 1+len(code))
	}
	return plain, least, most
}

// dressesCost puts dressCosts into words.
func dressesCost() string {
	plain, least, most := dressCosts()
	return fmt.Sprintf("%d octets, costs %d. Written in fifteen other ways it costs %d to %d", len(plainDress), plain, least, most)
}

// writeStrangers writes the page, with the results of other compressors.
func writeStrangers(t *testing.T, rows []strangerRow) {
	var b strings.Builder
	b.WriteString(strangersHead)
	for i, r := range rows {
		fmt.Fprintf(&b, "%s %.1f |\n", r.ours(), zstdOf(t, strangerSamples(strangerKinds[i]), strangerFirst(strangerKinds[i])))
	}
	var taught strings.Builder
	for _, s := range inventedKinds {
		fmt.Fprintf(&taught, "%s %.1f |\n", taughtRow(t, s), zstdOf(t, invented(s, 1, 200), invented(s, 2, 60)))
	}
	fmt.Fprintf(&b, strangersTail, english(), taught.String(), longRows(t), dressesCost())
	if err := os.WriteFile(strangersFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// zstdOf is the mean size of messages with zstd and a dictionary of samples of the kind.
func zstdOf(t *testing.T, known, first [][]byte) (octets float64) {
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	args := []string{"-q", "--train", "--maxdict=16384", "-o", filepath.Join(dir, "dict")}
	for i, d := range known {
		args = append(args, write(fmt.Sprint("sample", i), d))
	}
	output(t, "zstd", args...)
	for i, d := range first {
		file := write(fmt.Sprint("doc", i), d)
		octets += float64(1+len(output(t, "zstd", "-q", "-19", "--no-check", "--no-dictID", "-D", filepath.Join(dir, "dict"), "-c", file))) / float64(len(first))
	}
	return octets
}

var wordsOf = regexp.MustCompile(`[a-z0-9']+`)

// No text or name in the messages of strangers is in the corpus, nor is any of the messages.
func TestStrangersAreStrangers(t *testing.T) {
	corpus := string(primer.Corpus())
	for _, n := range []strange{strangeFirst, strangeSecond} {
		for _, list := range [][]string{n.calls, n.ships, n.people, n.hosts, n.lines} {
			for _, name := range list {
				if len(name) > 6 && strings.Contains(corpus, name) {
					t.Errorf("the corpus has %q", name)
				}
			}
		}
	}
	said := map[string]bool{}
	const together = 5
	each := func(text string, f func(string)) {
		words := wordsOf.FindAllString(strings.ToLower(text), -1)
		for i := range max(0, len(words)-together+1) {
			f(strings.Join(words[i:i+together], " "))
		}
	}
	for _, p := range corpusParts(t) {
		if p.name == "prose" || p.name == "sentence" {
			each(string(p.messages[0]), func(s string) { said[s] = true })
		}
	}
	check.True(t, "the corpus says thousands of things", len(said) > 5000, len(said))
	for _, line := range append(append([]string{}, strangeFirst.lines...), strangeSecond.lines...) {
		each(line, func(s string) {
			if said[s] {
				t.Errorf("the corpus says %q too", s)
			}
		})
	}
	for _, s := range strangerKinds {
		for _, d := range strangerFirst(s) {
			if strings.Contains(corpus, string(d)) {
				t.Errorf("the corpus has a message of kind %s", s.kind)
			}
		}
	}
}
