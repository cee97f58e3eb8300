package trace

import (
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
)

// The layers of a datagram, outermost first. Together they hold every octet of the opened datagrams.
var layerNames = [...]string{
	"IP and UDP", "seal", "seal, long form", "hello", "acknowledgements, probes, silence", "messages: frame", "messages: envelope",
	"messages: codec, what it was coded after, hash", "messages: documents", "messages: content", "messages sent again", "messages in segments", "NORM", "P_Mul", "malformed",
}

const (
	layerIP = iota
	layerSeal
	layerLong
	layerHello
	layerAcks
	layerFrame
	layerEnvelope
	layerCodec
	layerDocuments
	layerContent
	layerAgain
	layerSegments
	layerNORM
	layerMul
	layerMalformed
)

func (l *linkAnalyser) layer(n, octets int) {
	if octets > 0 {
		l.layers[n].add(octets)
	}
}

// outside counts the octets around the body of a datagram of ip octets in all.
func (l *linkAnalyser) outside(ip, data int, long bool) {
	l.layer(layerIP, ip-data)
	l.layer(layerSeal, seal.OverheadShort)
	if long {
		l.layer(layerLong, seal.OverheadLong-seal.OverheadShort)
	}
}

// inside counts a frame of so many octets, except the body of a message that is new.
func (l *linkAnalyser) inside(f frame.Frame, octets int) {
	switch f := f.(type) {
	case frame.Hello, frame.Greeting:
		l.layer(layerHello, octets)
	case frame.Data:
		if f.Rides {
			l.layer(layerAcks, 1)
			octets--
		}
		l.layer(layerFrame, octets-len(f.Body))
	case frame.Segment:
		if f.Rides {
			l.layer(layerAcks, 1)
			octets--
		}
		l.layer(layerFrame, octets-len(f.Body))
	case frame.NORM:
		l.layer(layerNORM, octets)
	case frame.PMul:
		l.layer(layerMul, octets)
	default:
		l.layer(layerAcks, octets)
	}
}

// measured lets texts count the octets that it expands; the function that it returns counts the rest of a message of so many octets.
func (l *linkAnalyser) measured(texts *envelope.Texts) (rest func(octets int)) {
	inside := 0
	texts.Seen = func(document bool, codec compact.Codec, octets int) {
		if codec == compact.Alike { // the codec's octet is absent
			octets--
		}
		head := min(compact.HeadOctets(codec), octets)
		if codec != compact.Alike {
			head = min(head+1, octets)
		}
		l.layer(layerCodec, head)
		if document {
			l.layer(layerDocuments, octets-head)
		} else {
			l.layer(layerContent, octets-head)
		}
		inside += octets
	}
	return func(octets int) { l.layer(layerEnvelope, octets-inside) }
}

func (l *linkAnalyser) layerRows() []Row {
	rows := []Row{}
	for i, t := range l.layers {
		if t.Octets > 0 {
			rows = append(rows, Row{layerNames[i], t})
		}
	}
	return rows
}
