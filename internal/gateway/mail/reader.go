package mail

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// Reader reads the messages of a peer: it has the peer's numbers of flows and, of each flow, the messages that later ones may
// be coded after.
type Reader struct {
	peer     uint16
	services Services
	late     bool // messages may come out of order
	flows    map[uint32]envelope.Flow
	octets   int // of flows
	before   envelope.Histories
	bulk     envelope.Histories  // the same of the bulk queue, long elements alone
	numbers  map[string][]uint64 // of messages in both, by journal key without number
	slices   [queues]sliced
}

// sliced is a message that is read in part.
type sliced struct {
	at TransmissionID
	compact.Reading
}

const (
	bucketInFlow = "inflow" // peer, number -> flow from it
	bucketBefore = "before" // peer, flow, element, number -> data of a message delivered from it, or what is kept of that
	ofBulk       = 0x80     // in the element: the number is one of the bulk queue

	maxFlows      = 1 << 16  // combinations of group, pipe, sender and shape of message that a peer may make us remember
	maxFlowOctets = 16 << 20 // of these

	kept       = 64       // messages of a flow to read later ones after: no code needs more
	lateKept   = 2 * back // more, for a late message is read after some that were sent after it
	lateOctets = 2 * backOctets
)

func (r *Reader) clear() {
	r.flows, r.octets = map[uint32]envelope.Flow{}, 0
	r.unlearn()
}

func (r *Reader) unlearn() {
	r.before, r.bulk, r.numbers = envelope.Histories{Long: r.late}, envelope.Histories{Long: true}, map[string][]uint64{}
}

// Read parses a message in its turn, with about so many octets of the model's work in this call, and keeps what later ones
// need. compact.ErrUnfinished: the same call goes on with it.
func (r *Reader) Read(coder *compact.Coder, at TransmissionID, body []byte, octets int) (m envelope.Message, err error) {
	s := &r.slices[at.Queue]
	if s.at != at {
		*s = sliced{at: at}
	}
	coder.Read(&s.Reading, octets, func() { m, err = r.read(coder, at, body) })
	if !errors.Is(err, compact.ErrUnfinished) {
		*s = sliced{}
	}
	return m, err
}

func (r *Reader) read(coder *compact.Coder, at TransmissionID, body []byte) (envelope.Message, error) {
	texts := &envelope.Texts{Coder: coder, Whole: at.Queue == Group}
	before := &r.before
	if at.Queue == frame.Bulk {
		before = &r.bulk
	}
	texts.Decode = before.Decode(coder, at.Number)
	m, number, defined, err := envelope.ParseCoded(body, r.flow, texts)
	if err != nil {
		return m, err
	}
	if m.Payload != nil {
		r.learn(number, at, m.Payload)
	}
	if defined != "" && number != 0 && r.flows[number] != defined {
		octets := r.octets + len(defined) - len(r.flows[number])
		if len(r.flows) >= maxFlows || octets > maxFlowOctets {
			return m, fmt.Errorf("%w: more than %d flows, or of more than %d octets", envelope.ErrLimit, maxFlows, maxFlowOctets)
		}
		r.flows[number], r.octets = defined, octets
		r.services.Record(bucketInFlow, r.key(number), []byte(defined))
	}
	return m, nil
}

func (r *Reader) flow(number uint32) (f envelope.Flow, ok bool) {
	f, ok = r.flows[number]
	return f, ok
}

// Dependent says whether a message is coded after earlier ones, or of a flow that is not known here.
func (r *Reader) Dependent(body []byte) bool {
	_, _, _, err := envelope.ParseCoded(body, r.flow, &envelope.Texts{Decode: func(_ uint32, _ int, codec compact.Codec, _ []byte, _ int) ([]byte, error) {
		if compact.HeadOctets(codec) > 0 {
			return nil, compact.ErrHistory
		}
		return []byte{}, nil
	}})
	return errors.Is(err, compact.ErrHistory) || errors.Is(err, envelope.ErrUnknownFlow)
}

// Fleeting says whether a message may be read though others before it are missing: it is of use only now.
func (r *Reader) Fleeting(body []byte) bool {
	return envelope.Fleeting(body, r.flow)
}

// learn keeps the elements that later messages of the flow may be coded after: short ones in the direct queue, long ones in the bulk queue.
func (r *Reader) learn(flow uint32, at TransmissionID, payload *site.Message) {
	envelope.Elements(flow, payload, func(element int, data []byte) {
		if long := len(data) > compact.MaxLearned; at.Queue != Group && long != (at.Queue == frame.Bulk) {
			return
		}
		if at.Queue == frame.Bulk {
			element |= ofBulk
		}
		key := append(r.key(flow), byte(element))
		r.services.Record(bucketBefore, numbered(key, at.Number), append([]byte{0}, data...))
		for _, old := range r.keep(flow, element, at.Number, data, at.Queue == Group) {
			r.services.Record(bucketBefore, numbered(key, old), nil)
		}
	})
}

// keep takes an element of a message, and returns the numbers of those that are no longer kept.
func (r *Reader) keep(flow uint32, element int, number uint64, data []byte, late bool) (gone []uint64) {
	name := string(append(r.key(flow), byte(element)))
	numbers := r.numbers[name]
	if !late && element&ofBulk == 0 {
		r.before.AddElement(flow, element, number, data)
		numbers = append(numbers, number)
		if over := len(numbers) - kept; over > 0 {
			gone, numbers = numbers[:over:over], numbers[over:]
		}
	} else {
		before := &r.before
		if element&ofBulk != 0 {
			before = &r.bulk
		}
		gone = before.InsertElement(flow, element&^ofBulk, number, data, lateKept, lateOctets)
		numbers = slices.DeleteFunc(numbers, func(n uint64) bool { return slices.Contains(gone, n) })
		if !slices.Contains(gone, number) {
			numbers = append(numbers, number)
		}
	}
	r.numbers[name] = numbers
	return gone
}

// Unlearn forgets the messages that later ones are coded after, also in the journal.
func (r *Reader) Unlearn() {
	for key, numbers := range r.numbers {
		for _, number := range numbers {
			r.services.Record(bucketBefore, numbered([]byte(key), number), nil)
		}
	}
	r.unlearn()
}

// Forget: the peer's numbers begin anew.
func (r *Reader) Forget() {
	for number := range r.flows {
		r.services.Record(bucketInFlow, r.key(number), nil)
	}
	r.Unlearn()
	r.clear()
}

func (r *Reader) key(flow uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, r.peer), flow)
}

func numbered(key []byte, number uint64) []byte {
	return binary.BigEndian.AppendUint64(slices.Clone(key), number)
}

// Restore takes a record of the reader's buckets, its key without the peer; false: it is none. Those of a flow and element
// must come in order of number.
func (r *Reader) Restore(bucket string, key, value []byte) (bool, error) {
	switch {
	case bucket == bucketInFlow && len(key) == 4:
		r.flows[binary.BigEndian.Uint32(key)] = envelope.Flow(value)
		r.octets += len(value)
	case bucket == bucketBefore && len(key) == 13 && len(value) > 0:
		flow, element, number := binary.BigEndian.Uint32(key), int(key[4]), binary.BigEndian.Uint64(key[5:])
		if r.late || element&ofBulk != 0 {
			r.keep(flow, element, number, value[1:], true)
			break
		}
		r.before.AddElement(flow, element, number, value[1:])
		name := string(append(r.key(flow), byte(element)))
		r.numbers[name] = append(r.numbers[name], number)
	case bucket == bucketInFlow, bucket == bucketBefore:
		return true, ErrRecord
	default:
		return false, nil
	}
	return true, nil
}
