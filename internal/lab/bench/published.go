package bench

import "strings"

// published is one figure of a study, to show with the row of the same name. Number and Size are those of the row; 0: any.
type published struct {
	Bench, What  string
	Size, Number int
	Value        float64 // in the unit of the row; 0: only words
	Source       string  // the study and the place in it, which is also the name of a curve
	Words        string  // needed to read the value
}

// Names that rows and published figures share.
const (
	whatRoundTrip   = "message and acknowledgement"
	whatSmooth      = "messages at an even rate, without loss"
	whatBurst       = "burst of 50 messages until all arrive"
	whatData        = "data"
	whatShare       = "payload's share of the octets on the LAN"
	whatToReceivers = "messages to all receivers"
	whatElements    = "message of 20 kB and its acknowledgement"
	whatQuestions   = "questions answered"
	whatTransit     = "transit of a document with compaction"
	whatControl     = "transit of a document without compaction"
	whatOneOctet    = "message of 1 octet"
	whatFind        = "until a service is found"
)

const (
	jxta10  = "2004, JXTA 1.0, figure 6.5"
	jxta20  = "2004, JXTA 2.0, figure 6.6"
	grid    = "2005, J2SE 2.3.2, gigabit, 6.1"
	gridC   = "2005, JXTA-C 2.1.1, gigabit, table 4"
	bytes5  = "2005, section 5"
	xml7    = "2007, 640 kbit/s, table 7"
	table61 = "2004, table 6.1"
)

// publishedFigures are all figures that the studies print as numbers and a present-day peer can still make. Their other curves are
// pictures without numbers.
var publishedFigures = append(operationsOf2004(), []published{
	{Bench: "start", What: "until peers are taken", Number: 1000, Source: "2004, figure 6.1", Words: "JXTA 2.0: as fast with 1,000 as with 10"},

	{Bench: "layers", What: "endpoint: " + whatRoundTrip, Size: 1, Value: 0.294, Source: grid, Words: "one way"},
	{Bench: "layers", What: "unicast pipe: " + whatRoundTrip, Size: 1, Value: 0.711, Source: grid, Words: "one way"},
	{Bench: "layers", What: "socket: " + whatRoundTrip, Size: 1, Value: 0.977, Source: grid, Words: "one way"},
	{Bench: "jxta-c", What: "JXTA-C unicast pipe: message and acknowledgement, one way", Size: 1, Value: 298, Source: gridC},
	{Bench: "jxta-c", What: "JXTA-C unicast pipe: data", Size: 4 << 20, Value: 96, Source: "2005, JXTA-C 2.1.1, gigabit, 6.2"},
	{Bench: "pipe", What: whatRoundTrip, Size: 1, Value: 298, Source: gridC, Words: "one way"},
	{Bench: "layers", What: "endpoint: octets on the LAN", Size: 1, Value: 300, Source: bytes5, Words: "JXTA-C 239"},
	{Bench: "layers", What: "unicast pipe: octets on the LAN", Size: 1, Value: 877, Source: bytes5, Words: "JXTA-C 834"},
	{Bench: "layers", What: "socket: octets on the LAN", Size: 1, Value: 913, Source: bytes5},
	{Bench: "layers", What: "unicast pipe: " + whatSmooth, Size: 1000, Value: 115, Source: jxta10},
	{Bench: "layers", What: "unicast pipe: " + whatSmooth, Size: 10_000, Value: 97, Source: jxta10},
	{Bench: "layers", What: "secure pipe: " + whatSmooth, Size: 1000, Value: 23, Source: jxta10},
	{Bench: "layers", What: "secure pipe: " + whatSmooth, Size: 10_000, Value: 23, Source: jxta10},
	{Bench: "layers", What: "propagate pipe: " + whatSmooth, Size: 1000, Value: 20, Source: jxta10},
	{Bench: "pipe", What: whatSmooth, Size: 1000, Value: 115, Source: jxta10},
	{Bench: "pipe", What: whatSmooth, Size: 10_000, Value: 97, Source: jxta10},
	{Bench: "layers", What: "unicast pipe: " + whatBurst, Size: 1000, Source: jxta20, Words: "179 messages a second"},
	{Bench: "pipe", What: whatBurst, Size: 1000, Source: jxta20, Words: "179 messages a second"},
	{Bench: "pipe", What: whatData, Size: 4_000_000, Value: 96, Source: gridC, Words: "endpoint 103"},
	{Bench: "pipe", What: whatShare, Size: 1000, Source: "2004, figure 6.9", Words: "JXTA 1.0: 40 % and more"},
	{Bench: "pipe", What: whatShare, Size: 10_000, Source: "2004, figure 6.9", Words: "JXTA 1.0: more than 80 %"},
	{Bench: "pipe", What: whatElements, Number: 20, Source: "2004, figure 6.18", Words: "20 elements 1.24 times as long as 1 (unicast), 1.43 (propagate), 2.2 (secure); JXTA 2.0 1.0"},
	{Bench: "pipe", What: "message and acknowledgement of each sender, 8 senders over 1", Source: "2004, figure 6.12", Words: "nearly flat"},

	{Bench: "propagate", What: whatToReceivers, Size: 1000, Value: 9.06, Source: "2004, 6.3.1.3", Words: "1 to 8 receivers alike, deviation 0.09"},
	{Bench: "propagate", What: whatToReceivers, Size: 10_000, Value: 8.98, Source: "2004, 6.3.1.3", Words: "deviation 0.19"},

	{Bench: "query", What: whatQuestions, Source: "2004, 6.4.1.2", Words: "4 a second, with two rendezvous 16"},
	{Bench: "query", What: "deviation over mean of the answers' times", Value: 0.5, Source: "2004, figure 6.33", Words: "around and above 0.5"},
	{Bench: "query", What: "slowdown by an unanswerable half", Source: "2004, figures 6.28 and 6.29", Words: "centralized slower, SRDI faster"},
	{Bench: "query", What: "resident memory", Source: "2004, 6.4.2", Words: "SRDI 45 MB after 12 hours at 8 a second, 85 MB after 20 (a leak)"},
	{Bench: "query", What: "until a peer has another lease after its rendezvous died", Source: "2004, 6.4.3", Value: 78.4, Words: "100.4 s with more than 8 peers"},

	{Bench: "relay", What: "received, of the best rate", Source: "2004, figure 6.38", Words: "falls with what is sent"},
	{Bench: "relay", What: "messages until the relay fails", Value: 3900, Source: "2004, 6.5.2", Words: "JXTA 1.0"},

	{Bench: "octets", What: whatOneOctet + " on a unicast pipe, alone", Value: 877, Source: bytes5, Words: "socket 913, JXTA-C pipe 834"},
	{Bench: "octets", What: whatOneOctet + " on a propagate pipe, alone", Value: 877, Source: bytes5, Words: "of a unicast pipe"},

	{Bench: "link", What: whatFind + ", octets", Number: 1, Value: 6034, Source: "2004, Blue Game, 5.3.1", Words: "4,034 a question, 2,000 a service"},
	{Bench: "link", What: whatFind + ", time", Number: 1, Value: 231, Source: "2004, Blue Game, table 5.8", Words: "mean of five"},
}...)

func init() {
	sizes := []int{254, 8720, 17290, 43208, 86370, 129384, 172491}
	for i, v := range []float64{504.65, 643.73, 786.18, 1221.79, 1932.57, 2647.72, 3373.92} {
		publishedFigures = append(publishedFigures, published{Bench: "link", What: whatControl, Size: sizes[i], Value: v, Source: xml7, Words: "control"})
	}
	for i, v := range []float64{503.41, 390.03, 267.74, 394.74, 778.35, 653.04, 601.87} {
		publishedFigures = append(publishedFigures, published{Bench: "link", What: whatTransit, Size: sizes[i], Value: v, Source: xml7, Words: "gzip"})
	}
}

// The rows of ops in the order of table 6.1.
var operationNames = []string{"start of the platform", "make and join a group", "open an input pipe", "find peers in its own cache",
	"find peers by asking other peers", "find pipes in its own cache", "find a pipe by asking other peers", "open an output pipe", "publish"}

// operationsOf2004 are the cells of table 6.1, JXTA 2.0: milliseconds, in the order of operationNames, making and joining a group in one.
func operationsOf2004() (list []published) {
	for _, row := range []struct {
		name string
		ms   []float64
	}{
		{"ad hoc", []float64{4822.1, 1555.5, 5.5, 12.8, 16.6, 448.5, 7.1, 252.5, 708.5, 218.9}},
		{"TCP", []float64{5310.7, 1447.4, 5.4, 10.7, 29.3, 880.8, 2.0, 478.7, 860.7, 294.8}},
		{"HTTP", []float64{5768.1, 1509.0, 5.6, 12.3, 178.0, 593.0, 2.1, 346.5, 654.6, 307.8}},
	} {
		row.ms[0], row.ms[1], row.ms[2] = 0, row.ms[0], row.ms[1]+row.ms[2]
		for i, ms := range row.ms[1:] {
			list = append(list, published{Bench: "ops", What: operationNames[i], Value: ms, Source: table61, Words: row.name})
		}
	}
	wan := []float64{3475.0, 987.6, 3.8, 130.9, 132.1, 2485.3, 0.2, 2303.7, 3599.3, 296.1}
	for i, name := range []string{"find a pipe of the other site, cold", "open an output pipe to the other site"} {
		list = append(list, published{Bench: "link", What: name, Value: wan[7+i] / 1e3, Source: table61, Words: "WAN 56 kbit/s"})
	}
	return list
}

// publishedText is the studies' figures for a row.
func publishedText(r *Row) string {
	var parts []string
	source := ""
	for _, p := range publishedFigures {
		if p.Bench != r.Bench || p.What != r.What && !strings.HasPrefix(r.What, p.What+", ") || p.Size > 0 && p.Size != r.Size || p.Number > 0 && p.Number != r.Number {
			continue
		}
		var words []string
		if p.Value > 0 {
			words = append(words, number(p.Value))
		}
		if p.Words != "" {
			words = append(words, p.Words)
		}
		between := ", "
		if p.Source == table61 { // the words say what the number measures
			between = " "
		}
		text := strings.Join(words, between)
		if p.Source == source { // the last part has the same source
			parts[len(parts)-1] = strings.TrimSuffix(parts[len(parts)-1], " ("+source+")") + ", " + text + " (" + source + ")"
			continue
		}
		source = p.Source
		parts = append(parts, text+" ("+source+")")
	}
	return strings.Join(parts, "; ")
}
