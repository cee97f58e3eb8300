package trace

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Published is one run of the Blue Game of 2004 by the report's figures of the capture at the Iridium peer (b): tables 5.1 and 5.8 to
// 5.10 (published 1).
type Published struct {
	Run        int
	TotalS     float64 // table 5.1
	In, Out    int64   // application octets, table 5.10
	DiscoverS  float64 // the other peer's service, table 5.8, column MPA
	PipeSetupS float64 // table 5.9
	Of         int64   // octets of the data packets, headers included, table 5.6
}

// BlueGame are the five runs.
var BlueGame = []Published{
	{1, 1296, 41134, 37714, 323, 127, 756563},
	{2, 1392, 45059, 41514, 95, 445, 871977},
	{3, 1206, 28019, 30856, 108, 567, 764163},
	{4, 1591, 35167, 39655, 402, 327, 891738},
	{5, 1827, 56547, 62472, 226, 239, 963385},
}

// Contents of synthetic track messages; the report does not say which content the messages had.
const (
	ContentXML    = "xml"
	ContentText   = "text"
	ContentRandom = "random"
)

// Intervals of the demonstrator (report, section 3.2: reports are buffered and sent in larger packets). The report gives
// no numbers: the full picture every five minutes, changes every half minute.
const (
	fullEvery    = 300.0
	changesEvery = 30.0
	queryEvery   = 30.0
	fullTracks   = 24 // tracks in a full picture; changes have 2 to 6
)

// Synth writes a trace of a run: two peers, of which the ship's is the edge, publish their services, look for each other's, and send
// track messages from the time of the report's first data until the run's end. Application octets in and out and the duration are exactly
// those published; the report does not say how many messages there were. The same run, seed and content give the same octets.
func Synth(w io.Writer, run int, seed uint64, content string) (TotalsOf, error) {
	i := slices.IndexFunc(BlueGame, func(p Published) bool { return p.Run == run })
	if i < 0 {
		return TotalsOf{}, fmt.Errorf("trace: there is no run %d: 1 to %d", run, len(BlueGame))
	}
	switch content {
	case ContentXML, ContentText, ContentRandom:
	default:
		return TotalsOf{}, fmt.Errorf("trace: content %q is none of %s, %s, %s", content, ContentXML, ContentText, ContentRandom)
	}
	p := BlueGame[i]
	random := rand.New(rand.NewPCG(seed, uint64(run)))
	f := NewFileWriter(w, Header{Source: fmt.Sprintf("Blue Game 2004, run %d, %s tracks, synthetic", run, content), Duration: p.TotalS, Content: "data", Seed: seed})
	sides := [2]*side{newSide("bergen", random, p.Out), newSide("mpa", random, p.In)}
	for n, s := range sides {
		s.peer = f.Peer(0, s.id, "", s.name, n == 0)
		s.pipe = f.Pipe(0, s.pipeID, "propagate")
	}
	for _, s := range sides {
		f.Write(Line{Do: EventPublish, Peer: s.peer, Pipe: s.pipe, Name: s.name, ID: s.advID, Octets: msaOctets})
	}
	first := p.DiscoverS + p.PipeSetupS
	var lines []Line
	for n, s := range sides {
		other := sides[1-n]
		for t := 0.0; t < p.DiscoverS; t += queryEvery {
			lines = append(lines, Line{T: t + float64(n)/10, Do: EventQuery, Peer: s.peer, Attr: "Name", Name: other.name})
		}
		for _, pipe := range []string{s.pipe, other.pipe} {
			lines = append(lines, Line{T: p.DiscoverS + 1 + float64(n)/10, Do: EventOpen, Peer: s.peer, Pipe: pipe, Listen: true})
		}
		lines = append(lines, s.messages(other.pipe, first+7.5*float64(n), p.TotalS, content, random)...)
	}
	slices.SortStableFunc(lines, func(a, b Line) int {
		switch {
		case a.T < b.T:
			return -1
		case a.T > b.T:
			return 1
		}
		return 0
	})
	for _, l := range lines {
		f.Write(l)
	}
	return f.End(p.TotalS, false)
}

// msaOctets is approximately the report's size of a module specification advertisement (section 5.3.1).
const msaOctets = 2000

// side is one of the two peers.
type side struct {
	name                string
	id, pipeID, advID   string
	peer, pipe          string // labels
	octets              int64
	lat, lon            []float64
	course, speed, numb []int
}

func newSide(name string, random *rand.Rand, octets int64) *side {
	hex := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%02X", random.IntN(256))
		}
		return b.String()
	}
	s := &side{name: name, octets: octets}
	const network = "uuid-59616261646162614A78746150325033" // the Net group's half of every peer ID
	s.id = network + hex(16) + "03"
	s.pipeID = "uuid-59616261646162614E50472050325033" + hex(16) + "04"
	s.advID = "uuid-" + hex(32) + "06"
	for range fullTracks {
		s.lat, s.lon = append(s.lat, 57+4*random.Float64()), append(s.lon, 4+7*random.Float64())
		s.course, s.speed = append(s.course, random.IntN(360)), append(s.speed, 4+random.IntN(20))
		s.numb = append(s.numb, 1000+random.IntN(9000))
	}
	return s
}

// messages are the messages of a side from first to end: the full picture, with changes between. The octets are shared out by weight; the
// largest remainders take the surplus, so that the sum is exact.
func (s *side) messages(pipe string, first, end float64, content string, random *rand.Rand) (lines []Line) {
	var weights []float64
	var tracks []int
	sum, full := 0.0, first
	for t := first; t <= end-1; t += changesEvery {
		n := 2 + random.IntN(5)
		if t >= full {
			n, full = fullTracks, full+fullEvery
		}
		lines = append(lines, Line{T: t, Do: EventSend, Peer: s.peer, Pipe: pipe})
		weights, tracks, sum = append(weights, float64(n)+0.5), append(tracks, n), sum+float64(n)+0.5
	}
	sizes := share(s.octets, weights, sum)
	for i := range lines {
		s.sail(random)
		body := s.body(lines[i].T, tracks[i], sizes[i], content, random)
		lines[i].Octets = len(body)
		lines[i].Parts = []PartOf{PartWith("track:body", "", body)}
	}
	return lines
}

// share divides octets by weights.
func share(octets int64, weights []float64, sum float64) []int {
	sizes, order := make([]int, len(weights)), make([]int, len(weights))
	rest := octets
	remainder := make([]float64, len(weights))
	for i, w := range weights {
		exact := float64(octets) * w / sum
		sizes[i] = int(exact)
		remainder[i] = exact - math.Floor(exact)
		order[i] = i
		rest -= int64(sizes[i])
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if remainder[a] > remainder[b] {
			return -1
		}
		return 1
	})
	for i := range int(rest) {
		sizes[order[i%len(order)]]++
	}
	return sizes
}

// sail moves the tracks by half a minute.
func (s *side) sail(random *rand.Rand) {
	for i := range s.lat {
		s.course[i] = (s.course[i] + random.IntN(11) + 355) % 360
		d := float64(s.speed[i]) / 3600 / 60 * changesEvery // degrees of latitude
		sin, cos := math.Sincos(float64(s.course[i]) * math.Pi / 180)
		s.lat[i] += d * cos
		s.lon[i] += d * sin * 2
	}
}

// body is a message of exactly size octets about n tracks, or as many as fit.
func (s *side) body(t float64, n, size int, content string, random *rand.Rand) []byte {
	if content == ContentRandom {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	start := random.IntN(fullTracks)
	head, tail := fmt.Sprintf("%s %.0f %d\n", s.name, t, n), ""
	if content == ContentXML {
		head = fmt.Sprintf("<?xml version=\"1.0\"?>\n<tracks from=%q time=\"%.0f\">\n", s.name, t)
		tail = "</tracks>\n"
	}
	b := append(make([]byte, 0, size), head...)
	for i := range n {
		k := (start + i) % fullTracks
		line := fmt.Sprintf("%d %.4f %.4f %03d %d\n", s.numb[k], s.lat[k], s.lon[k], s.course[k], s.speed[k])
		if content == ContentXML {
			line = fmt.Sprintf("<track id=\"%d\"><lat>%.4f</lat><lon>%.4f</lon><course>%03d</course><speed>%d</speed></track>\n",
				s.numb[k], s.lat[k], s.lon[k], s.course[k], s.speed[k])
		}
		if len(b)+len(line)+len(tail) > size {
			break
		}
		b = append(b, line...)
	}
	// The rest is an operator's free text, so that no size is padded with a single repeated octet.
	b = s.remark(b, size-len(tail), content, random)
	b = append(b, tail...)
	return b[:size]
}

// Tracks are the positions that one peer reports, for messages of which a trace has only the size.
type Tracks struct{ s *side }

// NewTracks draws a peer's tracks.
func NewTracks(name string, random *rand.Rand) *Tracks {
	s := newSide(name, random, 0)
	return &Tracks{s}
}

// Body is a message of exactly size octets at time t, of the content kinds of Synth: half a minute after the one before, with as many
// tracks as fit, up to a full picture.
func (t *Tracks) Body(at float64, size int, content string, random *rand.Rand) []byte {
	t.s.sail(random)
	return t.s.body(at, fullTracks, size, content, random)
}

// AppendWords appends n octets of an operator's remark.
func AppendWords(b []byte, n int, random *rand.Rand) []byte {
	end := len(b) + n
	for len(b) < end {
		b = append(append(b, words[random.IntN(len(words))]...), ' ')
	}
	return b[:end]
}

// PublishedOf is the published run that a synthetic trace stands for.
func PublishedOf(f *File) (Published, bool) {
	for _, p := range BlueGame {
		if strings.HasPrefix(f.Header.Source, fmt.Sprintf("Blue Game 2004, run %d, ", p.Run)) && f.Totals.In == p.In && f.Totals.Out == p.Out {
			return p, true
		}
	}
	return Published{}, false
}

var words = strings.Fields("contact bearing held since radar visual fishing merchant tanker unknown hostile friend neutral closing opening " +
	"steady altering investigated identified lost regained north south east west of coast patrol area request report next")

func (s *side) remark(b []byte, size int, content string, random *rand.Rand) []byte {
	open, shut := "remark ", "\n"
	if content == ContentXML {
		open, shut = "<remark>", "</remark>\n"
	}
	room := size - len(b) - len(open) - len(shut)
	if room <= 0 {
		for len(b) < size {
			b = append(b, '\n')
		}
		return b
	}
	b = append(b, open...)
	return append(AppendWords(b, room, random), shut...)
}
