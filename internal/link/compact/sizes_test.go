package compact

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// writeSizes is set by `make sizes`: the test then writes the document instead of comparing it.
var writeSizes = flag.Bool("write", false, "write docs/sizes.md")

const sizesFile = "../../../docs/sizes.md"

// row is one line of the table: documents, and the cost of each, the codec's octet included.
type row struct {
	name  string
	kind  string // whether the corpus has it: one of kindsOfRows
	docs  [][]byte
	coded []int
	alone bool // no messages before it, so that other compressors compare
	quiet bool // not on the page
}

func mean(list []int) float64 {
	sum := 0
	for _, n := range list {
		sum += n
	}
	return float64(sum) / float64(len(list))
}

func (r row) octets() float64 {
	var list []int
	for _, d := range r.docs {
		list = append(list, len(d))
	}
	return mean(list)
}

// other says that the row is the one before it in another dress.
func (r row) other() bool { return strings.HasPrefix(r.name, otherDress) }

// figure writes whole numbers for large ones.
func figure(f float64) string {
	if f >= 100 || f == float64(int(f)) {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.1f", f)
}

// sizes makes the documents and codes them.
func sizes(t *testing.T) []row {
	t.Helper()
	m := NewMaker(2007, testWords)
	var c Coder
	var rows []row
	alone := func(kind, name string, docs [][]byte) {
		r := row{name: name, kind: kind, docs: docs, alone: true}
		for _, d := range docs {
			coded, codec := c.Append(nil, d)
			back, err := c.Expand(codec, coded, len(d))
			if err != nil || !bytes.Equal(back, d) {
				t.Fatalf("%s: %v does not come back: %v", name, codec, err)
			}
			r.coded = append(r.coded, 1+len(coded))
		}
		rows = append(rows, r)
	}
	both := func(name string, docs [][]byte) {
		alone(kindKnown, name, docs)
		alone(kindUnknown, otherDress+strings.TrimPrefix(name, "captured: "), dressedAll(docs))
	}
	many := func(make func(layout int) []byte) (docs [][]byte) {
		for i := range 24 {
			docs = append(docs, make(i%Layouts))
		}
		return docs
	}
	both("pipe advertisement", many(func(l int) []byte { return m.Pipe(l, false) }))
	both("module specification with pipe", many(m.Spec))
	both("peer advertisement", many(func(l int) []byte { return m.Peer(l, 0, false) }))
	both("with a certificate of RSA 1024, as JXTA peers make it", many(func(l int) []byte { return m.Peer(l, -1, false) }))
	both("with 560 random octets for a certificate", many(func(l int) []byte { return m.Peer(l, 560, false) }))
	both("peer group advertisement", many(m.Group))
	both("module class advertisement", many(m.Class))
	both("module implementation advertisement", many(m.Implementation))
	both("rendezvous advertisement", many(m.Rendezvous))
	both("route advertisement", many(m.Route))
	for _, d := range capturedDocs(t) {
		if d.advertisement() {
			alone(kindCaptured, "captured: "+d.name, [][]byte{d.text})
			r := row{name: "the same, another layout allowed", kind: kindCaptured, docs: [][]byte{d.text}, quiet: true}
			coded, _ := c.AppendEquivalent(nil, d.text)
			r.coded = []int{1 + len(coded)}
			rows = append(rows, r)
		}
		if d.advertisement() && strings.HasSuffix(d.name, "MSA") {
			alone(kindCaptured, "the same with invented names, "+d.name, ofOtherPeers(d.text, 24))
		}
	}
	both("employees, 1", [][]byte{m.Employees(1), m.Employees(1), m.Employees(1), m.Employees(1)})
	both("employees, 50", [][]byte{m.Employees(50)})
	both("employees, 1000", [][]byte{m.Employees(1000)})

	// One flow: the cost of the messages from the tenth on, each coded after those before.
	flowOf := func(kind, name string, from int, next func() []byte) {
		r := row{name: name, kind: kind}
		for range 5 {
			var h History
			for i := range 30 {
				d := next()
				coded, codec := c.AppendAfter(nil, d, &h, uint64(i+1))
				back, err := c.ExpandAfter(codec, coded, &h, uint64(i+1), len(d))
				if err != nil || !bytes.Equal(back, d) {
					t.Fatalf("%s: %v does not come back: %v", name, codec, err)
				}
				h.Add(uint64(i+1), d)
				if i >= from {
					r.docs, r.coded = append(r.docs, d), append(r.coded, 1+len(coded))
				}
			}
		}
		rows = append(rows, r)
	}
	bothFlows := func(kind, name string, from int, next func() []byte) {
		var said [][]byte
		flowOf(kind, name, from, func() []byte { said = append(said, next()); return said[len(said)-1] })
		n := -1
		flowOf(kindUnknown, otherDress+name, from, func() []byte { n++; return dressed(said[n]) })
	}
	flow := func(name string, from int, next func() []byte) {
		bothFlows(kindKnown, name, from, next)
	}
	for _, d := range capturedDocs(t) {
		if bytes.Contains(d.text, []byte("RootCert")) && d.advertisement() {
			var h History
			h.Add(1, otherDocument(d.text))
			coded, codec := c.AppendAfter(nil, d.text, &h, 2)
			back, err := c.ExpandAfter(codec, coded, &h, 2, len(d.text))
			if err != nil || !bytes.Equal(back, d.text) {
				t.Fatalf("%s: %v does not come back: %v", d.name, codec, err)
			}
			rows = append(rows, row{name: "captured: " + d.name + ", after another document with its certificate",
				kind: kindCaptured, docs: [][]byte{d.text}, coded: []int{1 + len(coded)}})
		}
	}
	peer := m.Peer(Bare, -1, true)
	flow("re-announcement of a known advertisement", 1, func() []byte { return peer })
	n, track := 0, m.Track()
	flow("XML track, tenth and later", 9, func() []byte {
		if n++; n%30 == 1 {
			track = m.Track()
		}
		return track.XML()
	})
	var tracks []*Track
	flow("track text of 200 octets, tenth and later", 9, func() []byte {
		if n++; n%30 == 1 {
			tracks = []*Track{m.Track(), m.Track(), m.Track()}
		}
		return Texts(tracks, 200)
	})
	flow("field tests' track text of 200 octets, tenth and later", 9, func() []byte {
		if n++; n%30 == 1 {
			track = m.Track()
		}
		return track.Plot(1.7e9+float64(n*5)+float64(m.Rand.IntN(100))/1000, 200)
	})
	var picture *Picture
	for shape, name := range []string{"pictures of 24 tracks, full or only changes, XML, tenth and later", "the same of 12 tracks, lines of fields", "NMEA 0183 of one ship, RMC and GGA, tenth and later"} {
		bothFlows([]string{kindPartly, kindKnown, kindKnown}[shape], name, 9, func() []byte {
			if n++; n%30 == 1 {
				picture = m.Picture(shape, []int{24, 12, 1}[shape])
			}
			return picture.Next()
		})
	}
	flowOf(kindUnknown, "random octets, 200", 9, func() []byte { return m.Octets(200) })
	both("XML track, first", many(func(int) []byte { return m.Track().XML() }))
	both("track text of 200 octets, first", many(func(int) []byte { return Texts([]*Track{m.Track(), m.Track(), m.Track()}, 200) }))
	return rows
}

// otherDress begins the name of the row that follows a row of a kind in the corpus.
const otherDress = "in another dress: "

func dressedAll(docs [][]byte) (list [][]byte) {
	for _, d := range docs {
		list = append(list, dressed(d))
	}
	return list
}

// otherDocument is a peer advertisement of the same peer, with another name and other addresses.
func otherDocument(text []byte) []byte {
	other := regexp.MustCompile(`(<Name>)[^<]*`).ReplaceAll(text, []byte("${1}someone else"))
	return regexp.MustCompile(`//[0-9.]+:[0-9]+`).ReplaceAll(other, []byte("//192.168.44.5:9788"))
}

// head is the part of a line that this code makes.
func (r row) head() string {
	return fmt.Sprintf("| %s | %s | %s | **%s** |", r.name, r.kind, figure(r.octets()), figure(mean(r.coded)))
}

// otherCells are the end of a line, after the columns of other compressors: the row that follows it in another dress.
func otherCells(rows []row) string {
	if len(rows) == 0 || !rows[0].other() {
		return " | |"
	}
	return fmt.Sprintf(" %s | %s |", figure(rows[0].octets()), figure(mean(rows[0].coded)))
}

// TestTable compares docs/sizes.md with the code.
func TestTable(t *testing.T) {
	rows := sizes(t)
	if *writeSizes {
		text := sizesHead + table(t, rows) + sizesTail + speed()
		if err := os.WriteFile(sizesFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(sizesFile)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		line := regexp.QuoteMeta(r.head()) + ".*" + regexp.QuoteMeta(otherCells(rows[i+1:]))
		if !r.other() && !r.quiet && !regexp.MustCompile(`(?m)^`+line+`$`).Match(text) {
			t.Errorf("docs/sizes.md has not %s%s: run make sizes", r.head(), otherCells(rows[i+1:]))
		}
	}
}

// table runs other compressors over the same documents, each alone as well. A row in another dress is put after the one before it.
func table(t *testing.T, rows []row) string {
	t.Helper()
	dir := t.TempDir()
	n := 0
	var samples []string
	for _, p := range corpusParts(t) {
		for _, text := range p.messages {
			n++
			file := filepath.Join(dir, fmt.Sprintf("sample%d", n))
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			samples = append(samples, file)
		}
	}
	dict := filepath.Join(dir, "dict")
	output(t, "zstd", append([]string{"-q", "--train", "--maxdict=4096", "-o", dict}, samples...)...)
	tools := []func(file string) int{
		func(f string) int {
			return len(output(t, "zstd", "-q", "-19", "--no-check", "--no-dictID", "-D", dict, "-c", f))
		},
		func(f string) int { return len(output(t, "brotli", "-q", "11", "-c", f)) },
	}
	var b strings.Builder
	b.WriteString("| document | in the corpus | octets | coded | zstd | brotli | rewritten: octets | rewritten: coded |\n|---|---|---|---|---|---|---|---|\n")
	for i, r := range rows {
		if r.other() || r.quiet {
			continue
		}
		b.WriteString(r.head())
		for _, tool := range tools {
			var list []int
			for i, d := range r.docs {
				if !r.alone {
					break
				}
				file := filepath.Join(dir, fmt.Sprintf("doc%d", i))
				if err := os.WriteFile(file, d, 0o600); err != nil {
					t.Fatal(err)
				}
				list = append(list, tool(file))
			}
			if r.alone {
				fmt.Fprintf(&b, " %s", figure(mean(list)))
			}
			b.WriteString(" |")
		}
		b.WriteString(otherCells(rows[i+1:]) + "\n")
	}
	return b.String()
}

// speed is the performance of the machine that writes the document, in its processor's time; it is not compared.
func speed() string {
	var b strings.Builder
	b.WriteString("\n## Speed\n\nProcessor time on a busy machine; `go test -bench . ./internal/link/compact` measures yours. docs/decisions/model-speed.md has\nmessages of 200 octets.\n\n| | |\n|---|---|\n")
	used := func(f func()) time.Duration { // the shortest of five: other processes' use of the cache makes it longer
		least := time.Hour
		for range 5 {
			from, n := busy(), 0
			for ; busy()-from < 300*time.Millisecond; n++ {
				f()
			}
			least = min(least, (busy()-from)/time.Duration(n))
		}
		return least
	}
	rate := func(name string, octets int, f func()) {
		fmt.Fprintf(&b, "| %s | %.1f MB/s |\n", name, float64(octets)/1e6/used(f).Seconds())
	}
	var c Coder
	text, xml, random := benchmarkText(200_000), NewMaker(3, testWords).Employees(1000), NewMaker(3, testWords).Octets(200_000)
	code, codec := c.Append(nil, text)
	rate("track text of 200,000 octets", len(text), func() { c.made = made{}; c.Append(nil, text) })
	rate("the same, expanding", len(text), func() { c.Expand(codec, code, len(text)) })
	rate("XML of 176,000 octets", len(xml), func() { c.made = made{}; c.Append(nil, xml) })
	rate("random octets", len(random), func() { c.made = made{}; c.Append(nil, random) })
	fmt.Fprintf(&b, "| module specification, first of its flow | %.2f ms |\n", used(func() { c.made = made{}; c.Append(nil, []byte(msa)) }).Seconds()*1e3)
	return b.String()
}

func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, errs.Bytes())
	}
	return out
}

const sizesHead = `# What documents cost on the link

Written by ` + "`make sizes`" + `; a test compares this page with the code. Sizes are in octets, with the octet that names the codec. A row that
is not of one document gives the mean of 24, in four layouts (JXSE 2.7 compact and pretty, JXTA 2.2, the gateway's own), with names that
are not in the model's corpus. Captured documents are in internal/jxta/testdata. docs/strangers.md has formats of other software.

"In the corpus" says what the model has learned from. *Yes*: documents of the same generator with other names, so the row flatters the
model. *In part*: some flows of that generator. *Captured*: documents of the kind, and the row's own is from a real peer. *No*: nothing
like it (` + "`go test -run TestEveryRowSaysIfItIsKnown ./internal/link/compact`" + `). "Rewritten" is the same information with invented
names, order, quotes, separators and white space: the cost of a format that the model has not learned. zstd -19 has a dictionary of 4096
octets trained on the model's corpus; brotli has level 11.

`

const sizesTail = `
Rows of a flow (re-announcement, tenth and later) are coded after messages that both ends hold; 3 octets name these. A certificate
has 256 octets of modulus and signature and 10 of a random name. It crosses once; the next document with it is coded after the first.
Gateways do not send peers' own advertisements but rebuild them, and send no re-announcement of a document that the far side has.

The lists of employees have the form of figure 10 in Demmings and others (2007). Of their 254, 8,720 and 172,491 octets gzip left 191,
1,532 and 19,589, and XMLPPM 150, 1,097 and 10,198. The field tests' tracks have about 31 unpredictable octets each, and a CRC-32, which
the model predicts.
`
