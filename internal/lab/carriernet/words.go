package carriernet

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"aldis/internal/site"
)

// endpoint is a local peer of a node.
func endpoint(node uint16, local int) string {
	return fmt.Sprintf("cbid-59616261646162614A78746150325033%02X569155EBF440C2B9C89E114D3E26%02X03", node, local)
}

const topic = "uuid-59616261646162614E504720503250336A0F7D3C91E84B5C8D2E1F3A4B5C6D7E04"

// Report is message i of a local peer of a node: readable, and similar to the one before.
func Report(node uint16, i int) site.Message {
	return from(node, 0, fmt.Appendf(nil, "%d;%d;TRK;N59.%04d;E005.%04d;course=%03d;speed=%02d.%d;status=under way using engine;source=own sensor",
		node, i, 1234+7*i, 4321+11*i, (45+i)%360, 12+i%3, i%10))
}

// Noise is message i of one of a node's local peers, of so many random octets, which no model compresses.
func Noise(node uint16, local, i, octets int) site.Message {
	body := bytes.Repeat([]byte{'x'}, octets)
	rng := uint32(i)*2654435761 + uint32(node) + uint32(local)<<16
	for k := range body {
		rng = rng*1664525 + 1013904223
		body[k] = byte(rng >> 24)
	}
	copy(body, fmt.Sprintf("%d;%d;", node, i))
	return from(node, local, body)
}

// Prose is message i of a node, readable and of about so many octets, which the model compresses well.
func Prose(node uint16, i, octets int) site.Message {
	text := fmt.Appendf(nil, "%d;%d;", node, i)
	for n := 0; len(text) < octets; n++ {
		text = fmt.Appendf(text, "Report %d of the watch: course %03d, speed %d knots, wind from the north west, sea moderate, visibility good. ", n, (45+i+n)%360, 10+n%7)
	}
	return from(node, 0, text)
}

func from(node uint16, local int, body []byte) site.Message {
	return site.Message{Published: true, Scope: "jxta-NetGroup", Topic: topic, From: endpoint(node, local),
		Parts: []site.Part{{Namespace: "trk", Name: "body", Data: body}}}
}

// Item is item i of a node's site.
func Item(node uint16, i int) site.Item {
	return site.Item{Kind: site.Listener, Scope: "jxta-NetGroup", Owner: endpoint(node, i), ID: topic}
}

// Heard returns the numbers of a node's messages that have come here, in the order in which they came: "0..4 6 5".
func (n *Node) Heard(from uint16) string {
	var runs []string
	first, last := -1, -2
	end := func() {
		switch {
		case first < 0:
		case first == last:
			runs = append(runs, strconv.Itoa(first))
		default:
			runs = append(runs, fmt.Sprintf("%d..%d", first, last))
		}
	}
	for _, text := range n.Said(from) {
		i, err := strconv.Atoi(strings.SplitN(text, ";", 3)[1])
		if err != nil {
			panic(err) // a text not from Report, Noise or Prose
		}
		if i != last+1 {
			end()
			first = i
		}
		last = i
	}
	end()
	return strings.Join(runs, " ")
}
