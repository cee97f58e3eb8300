package compact

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/primer"
)

// writeSizes is set by `make sizes`: the test then writes the document instead of comparing it.
var writeSizes = flag.Bool("write", false, "write docs/sizes.md")

const sizesFile = "../../../docs/sizes.md"

// row is one line of the table: documents, and what each costs, the codec's octet included.
type row struct {
	name      string
	kind      string // whether the corpus has it: one of kindsOfRows
	docs      [][]byte
	coded     []int
	must, aim string
	alone     bool // nothing was known before, so that other compressors compare
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

// met says which of the two figures the row reaches.
func (r row) met() string {
	reached := func(figure string) bool {
		most, err := strconv.ParseFloat(strings.TrimSuffix(figure, " x"), 64)
		if strings.HasSuffix(figure, " x") {
			return err == nil && r.octets()/mean(r.coded) >= most
		}
		return err == nil && mean(r.coded) <= most
	}
	switch {
	case r.must == "" && r.aim == "":
		return ""
	case r.aim != "" && reached(r.aim):
		return "aim"
	case reached(r.must):
		return "must"
	}
	return "missed"
}

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
	m := primer.NewMaker(2007, testWords)
	var c Coder
	var rows []row
	alone := func(kind, name string, docs [][]byte, must, aim string) {
		r := row{name: name, kind: kind, docs: docs, must: must, aim: aim, alone: true}
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
	both := func(name string, docs [][]byte, must, aim string) {
		alone(kindKnown, name, docs, must, aim)
		alone(kindUnknown, otherDress+strings.TrimPrefix(name, "captured: "), dressedAll(docs), "", "")
	}
	many := func(make func(layout int) []byte) (docs [][]byte) {
		for i := range 24 {
			docs = append(docs, make(i%primer.Layouts))
		}
		return docs
	}
	both("pipe advertisement", many(func(l int) []byte { return m.Pipe(l, false) }), "44", "34")
	both("module specification with pipe", many(m.Spec), "105", "85")
	both("peer advertisement", many(func(l int) []byte { return m.Peer(l, 0, false) }), "45", "40")
	both("with a certificate of RSA 1024, as JXTA peers make it", many(func(l int) []byte { return m.Peer(l, -1, false) }), "660", "600")
	both("with 560 random octets for a certificate", many(func(l int) []byte { return m.Peer(l, 560, false) }), "660", "600")
	both("peer group advertisement", many(m.Group), "", "")
	both("module class advertisement", many(m.Class), "", "")
	both("module implementation advertisement", many(m.Implementation), "", "")
	both("rendezvous advertisement", many(m.Rendezvous), "", "")
	both("route advertisement", many(m.Route), "", "")
	for _, d := range capturedDocs(t) {
		if d.advertisement() {
			alone(kindCaptured, "captured: "+d.name, [][]byte{d.text}, "10 x", "15 x")
			r := row{name: "the same, another layout allowed", kind: kindCaptured, docs: [][]byte{d.text}, must: "10 x", aim: "15 x"}
			coded, _ := c.AppendEquivalent(nil, d.text)
			r.coded = []int{1 + len(coded)}
			rows = append(rows, r)
		}
		if d.advertisement() && strings.HasSuffix(d.name, "MSA") {
			goal := specificationGoals[strings.Fields(d.name)[0]]
			alone(kindCaptured, "the same of peers that are not ours, "+d.name, ofOtherPeers(d.text, 24), fmt.Sprint(goal[0]), fmt.Sprint(goal[1]))
		}
	}
	both("employees, 1", [][]byte{m.Employees(1), m.Employees(1), m.Employees(1), m.Employees(1)}, "130", "110")
	both("employees, 50", [][]byte{m.Employees(50)}, "1000", "900")
	both("employees, 1000", [][]byte{m.Employees(1000)}, "10200", "9600")

	// One flow: what the messages from the tenth on cost, each coded after those before.
	flowOf := func(kind, name string, from int, next func() []byte, must, aim string) {
		r := row{name: name, kind: kind, must: must, aim: aim}
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
	bothFlows := func(kind, name string, from int, next func() []byte, must, aim string) {
		var said [][]byte
		flowOf(kind, name, from, func() []byte { said = append(said, next()); return said[len(said)-1] }, must, aim)
		n := -1
		flowOf(kindUnknown, otherDress+name, from, func() []byte { n++; return dressed(said[n]) }, "", "")
	}
	flow := func(name string, from int, next func() []byte, must, aim string) {
		bothFlows(kindKnown, name, from, next, must, aim)
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
				kind: kindCaptured, docs: [][]byte{d.text}, coded: []int{1 + len(coded)}, must: "10 x", aim: "15 x"})
		}
	}
	peer := m.Peer(primer.Bare, -1, true)
	flow("re-announcement of a known advertisement", 1, func() []byte { return peer }, "6", "0")
	n, track := 0, m.Track()
	flow("XML track, tenth and later", 9, func() []byte {
		if n++; n%30 == 1 {
			track = m.Track()
		}
		return track.XML()
	}, "24", "12")
	var tracks []*primer.Track
	flow("track text of 200 octets, tenth and later", 9, func() []byte {
		if n++; n%30 == 1 {
			tracks = []*primer.Track{m.Track(), m.Track(), m.Track()}
		}
		return primer.Texts(tracks, 200)
	}, "30", "")
	flow("field tests' track text of 200 octets, tenth and later", 9, func() []byte {
		if n++; n%30 == 1 {
			track = m.Track()
		}
		return track.Plot(1.7e9+float64(n*5)+float64(m.Rand.IntN(100))/1000, 200)
	}, "", "")
	var picture *primer.Picture
	for shape, name := range []string{"pictures of 24 tracks, or what changed of them, XML, tenth and later", "the same of 12 tracks, lines of fields", "NMEA 0183 of one ship, RMC and GGA, tenth and later"} {
		bothFlows([]string{kindPartly, kindKnown, kindKnown}[shape], name, 9, func() []byte {
			if n++; n%30 == 1 {
				picture = m.Picture(shape, []int{24, 12, 1}[shape])
			}
			return picture.Next()
		}, "", "")
	}
	flowOf(kindUnknown, "random octets, 200", 9, func() []byte { return m.Octets(200) }, "201", "")
	both("XML track, first", many(func(int) []byte { return m.Track().XML() }), "", "")
	both("track text of 200 octets, first", many(func(int) []byte { return primer.Texts([]*primer.Track{m.Track(), m.Track(), m.Track()}, 200) }), "", "")
	return rows
}

// otherDress begins the name of the row that stands beside one of a kind in the corpus.
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

// table is the part of the document that is the same wherever it is made.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| document | in the corpus | XML or text | coded | smaller by | must | aim | reached |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.1f x | %s | %s | %s |\n", r.name, r.kind, figure(r.octets()), figure(mean(r.coded)), r.octets()/mean(r.coded), r.must, r.aim, r.met())
	}
	return b.String()
}

// TestTable holds docs/sizes.md against the code.
func TestTable(t *testing.T) {
	rows := sizes(t)
	want := table(rows)
	t.Logf("\n%s", want)
	if *writeSizes {
		text := sizesHead + want + sizesMiddle + otherTools(t, rows) + sizesTail + speed()
		if err := os.WriteFile(sizesFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(sizesFile)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), want) {
		t.Errorf("docs/sizes.md is not of this code: run make sizes")
	}
	for _, r := range rows {
		if !r.alone {
			continue
		}
		line := fmt.Sprintf("| %s | %s | ", r.name, figure(r.octets()))
		ours := fmt.Sprintf("| **%s** |", figure(mean(r.coded)))
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(line) + `.*` + regexp.QuoteMeta(ours) + `$`).Match(text) {
			t.Errorf("docs/sizes.md side by side, %s: not %s: run make sizes", r.name, ours)
		}
	}
}

// otherTools runs other compressors over the same documents, each alone.
func otherTools(t *testing.T, rows []row) string {
	t.Helper()
	dir := t.TempDir()
	n := 0
	var samples []string
	for _, p := range primer.Parts() {
		for _, text := range p.Messages {
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
	packed := regexp.MustCompile(`(?m)^Packed Size = (\d+)$`)
	tools := []func(file string) int{
		func(f string) int { return len(output(t, "gzip", "-9nc", f)) },
		func(f string) int {
			return len(output(t, "zstd", "-q", "-19", "--no-check", "--no-dictID", "-D", dict, "-c", f))
		},
		func(f string) int { return len(output(t, "brotli", "-q", "11", "-c", f)) },
		func(f string) int { return len(output(t, "xz", "-9ec", f)) },
		func(f string) int {
			os.Remove(f + ".7z")
			output(t, "7z", "a", "-bd", "-m0=PPMd:o=12:mem=26", f+".7z", f)
			for _, m := range packed.FindAllSubmatch(output(t, "7z", "l", "-slt", f+".7z"), -1) {
				if size, _ := strconv.Atoi(string(m[1])); size > 0 {
					return size
				}
			}
			t.Fatal("7z lists no size")
			return 0
		},
	}
	var b strings.Builder
	b.WriteString("| document | stored | gzip -9 | zstd -19, dictionary | brotli 11 | xz -9e | 7z PPMd | this |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		if !r.alone {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s", r.name, figure(r.octets()))
		for _, tool := range tools {
			var list []int
			for i, d := range r.docs {
				file := filepath.Join(dir, fmt.Sprintf("doc%d", i))
				if err := os.WriteFile(file, d, 0o600); err != nil {
					t.Fatal(err)
				}
				list = append(list, tool(file))
			}
			fmt.Fprintf(&b, " | %s", figure(mean(list)))
		}
		fmt.Fprintf(&b, " | **%s** |\n", figure(mean(r.coded)))
	}
	return b.String()
}

// speed is what the machine that writes the document does, in its processor's time; it is not compared.
func speed() string {
	var b strings.Builder
	b.WriteString("\n## Speed\n\nProcessor time of the machine that wrote this, while it did other things as well; `go test -bench . ./internal/link/compact` for\nyours.\n\n| | |\n|---|---|\n")
	used := func(f func()) time.Duration { // the shortest of five: what others do to the cache makes it longer
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
	text, xml, random := benchmarkText(200_000), primer.NewMaker(3, testWords).Employees(1000), primer.NewMaker(3, testWords).Octets(200_000)
	code, codec := c.Append(nil, text)
	rate("track text of 200,000 octets", len(text), func() { c.made = made{}; c.Append(nil, text) })
	rate("the same, expanding", len(text), func() { c.Expand(codec, code, len(text)) })
	rate("XML of 176,000 octets", len(xml), func() { c.made = made{}; c.Append(nil, xml) })
	rate("random octets", len(random), func() { c.made = made{}; c.Append(nil, random) })
	h, next := historyOfTwelve()
	each := func(name string, f func()) { fmt.Fprintf(&b, "| %s | %.2f ms |\n", name, used(f).Seconds()*1e3) }
	each("module specification, first of its flow", func() { c.made = made{}; c.Append(nil, []byte(msa)) })
	first := benchmarkText(200)
	each("track text of 200 octets, first of its flow", func() { c.made = made{}; c.Append(nil, first) })
	each("track text of 200 octets, after twelve", func() { c.made = made{}; c.AppendAfter(nil, next, h, 13) })
	after, learned := c.AppendAfter(nil, next, h, 13)
	each("the same, expanding", func() { c.ExpandAfter(learned, after, h, 13, 200) })
	noise, before := primer.NewMaker(4, testWords), new(History)
	for i := range 12 {
		before.Add(uint64(i+1), noise.Octets(200))
	}
	each("random octets, 200, after twelve", func() { c.AppendAfter(nil, noise.Octets(200), before, 13) })
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

Written by ` + "`make sizes`" + `; a test fails when this page does not match the code in the tree. Sizes are octets and include
the one that names the codec. A row for several documents gives their mean: 24 of each kind in the four layouts that occur
(JXSE 2.7 compact and pretty, JXTA 2.2, and our own), with names that are not in the model's corpus. Captured documents are
those in internal/jxta/testdata. The test expands every document again and compares it octet for octet. "must" and "aim" are
goals that this project set itself; "reached" says which of them the figure meets.

"In the corpus" says whether the model has learned from documents of the row's kind. *yes*: from documents of the same generator, with
other names; *in part*: from some of its flows; *captured*: its kind is there, and this one is what a peer sent, or that with other
names; *no*: from nothing like it. So a row with *yes* is tuned to its test. Below each of these stands the same information in another
dress, as somebody else would have written it: invented names of elements and fields, in another order, with other quotes, separators
and white space, ids in lower case. That is what a format of your own costs that nobody has taught; ` + "`gateway corpus build`" + `
teaches it. ` + "`go test -run TestEveryRowSaysIfItIsKnown ./internal/link/compact`" + ` compares what is said with the corpus. docs/strangers.md has
the formats of others, files of Debian packages, and times on the air.

`

const sizesMiddle = `
Rows of a flow (re-announcement, tenth and later) are coded after messages that both ends hold. 3 octets of such a code say
which messages these are and check that both ends agree.

Why some rows are missed. A certificate has 256 octets of modulus and signature and 10 of a random name, so a peer
advertisement of 1,923 octets that contains one cannot be ten times smaller. Once the certificate has crossed, in whatever
document of the peer, the next document with it is coded after that one. Gateways send none at all: they rebuild peers' own
advertisements. The captured specification of 2.2 has 48 octets of random ids. Ten times smaller would leave 10 octets for its
six texts. In those of peers that are not ours 32 and 48 octets are random ids, so that 28 and 27 would be left for
four names that the corpus does not have ("Ranger lookout log") and the form; these take 35 (docs/strangers.md, "What else was
asked"). A re-announcement costs nothing where the gateway knows that the far side has the document (package advcache). The
row is for one that is sent all the same.

## Side by side

The same documents, each alone. zstd has a dictionary of 4096 octets trained on the model's corpus, and neither checksum
nor dictionary number. 7z counts the packed octets without the archive's headers; gzip and xz count with their headers.

`

const sizesTail = `
## Where the names come from

The employees have the shape of figure 10 in Demmings and others (2007), with names that are not in the corpus. There
gzip made 191, 1,532 and 19,589 octets of 254, 8,720 and 172,491, and XMLPPM 150, 1,097 and 10,198. Tracks move along
a course; the last two decimals, speed and quality are random. The tracks of the field tests have contacts that nobody can
predict, about 31 octets in each, and a CRC-32, which the model predicts (internal/lab/primer/generate.go).
`
