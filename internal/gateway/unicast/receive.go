package unicast

import (
	"errors"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/compact"
	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
)

// Receive takes a frame of a peer's datagram.
func (c *Carrier) Receive(now time.Time, p *mail.Peer, f frame.Frame, octets int, newest bool) bool {
	l := c.links[p.ID]
	if newest {
		l.passed.newest(l.Stamp, l.receiver.Cumulative(frame.Direct))
	}
	kind := mail.Ack
	switch f := f.(type) {
	case frame.Ack:
		c.ack(now, l, f, newest)
	case frame.Probe:
		l.receiver.Probed(now)
		if len(l.answers) < 4 {
			l.answers = append(l.answers, f.ID)
		}
	case frame.Answer:
		l.sender.Answer(now, f.ID)
		l.cut.missed(l, now)
		if f.ID == l.question.probe && !l.question.asked.IsZero() {
			l.answered(now, l.question.to)
		}
	case frame.Talkers:
		kind = c.hearTalkers(now, l, f)
	case frame.Data:
		c.receiveData(now, l, f, false, octets, newest)
		return true
	case frame.Segment:
		d := frame.Data{Number: f.Number, Short: f.Short, Prompt: f.Prompt, Rides: f.Rides, Cumulative: f.Cumulative,
			Body: frame.Append(nil, frame.Segment{Short: true, Object: f.Object, Total: f.Total, Free: f.Free, Body: f.Body}, true)}
		c.receiveData(now, l, d, true, octets, newest)
		return true
	case frame.NORM:
		if !l.takes(now) {
			break
		}
		c.receiveNORM(now, l, f.Body, octets)
		return true
	default:
		return false
	}
	p.Ledger.Add(mail.Received, kind, octets)
	return true
}

// takes says whether messages of a peer count now. If this node was put back since it last ran, the peer may have begun a stream
// that this node's data do not know, and may give the numbers in these data to other messages. So the peer has to say its stream
// first, and sends the messages that came before that again. A silent node takes all messages, since nothing will tell the peer
// that this node runs anew.
//
// A HELLO that other datagrams have overtaken does not say of which stream they are. The peer believes that it has said so, and is
// asked again.
func (l *peerLink) takes(now time.Time) bool {
	switch {
	case l.Handshake.Refused != mail.Taken:
		l.of.Services.Drop("refused_stream")
	case !l.Handshake.Placed && !l.of.silent:
		l.of.Services.Drop("unknown_stream")
		if l.Handshake.KnowsUs {
			l.Handshake.KnowsUs = false
			l.Handshake.Owe(now)
		}
	default:
		return true
	}
	return false
}

// receiveData takes a message of the direct queue, and charges its octets.
func (c *Carrier) receiveData(now time.Time, l *peerLink, f frame.Data, segment bool, octets int, newest bool) {
	if f.Rides {
		l.Ledger.Add(mail.Received, mail.Ack, 1)
		octets--
		if newest && l.Handshake.Reissued == mail.Taken && !l.Handshake.Ending { // otherwise its low 8 bits may mean another number
			c.ack(now, l, frame.Ack{Queue: frame.Direct, Cumulative: l.sender.Widen(frame.Direct, f.Cumulative)}, true)
		}
	}
	l.Ledger.Came(octets)
	l.Ledger.Named(takeData(now, c, l, f, segment, newest), octets)
}

// takeData does so for a frame whose octets count as unread until then. A number cut to 8 bits is read as of the time when it was sent: a
// message that very many others have overtaken counts as lost. The result is the kind to which the frame's octets are charged.
func takeData(now time.Time, c *Carrier, l *peerLink, f frame.Data, segment, newest bool) mail.Kind {
	if !l.takes(now) {
		return mail.Payload
	}
	if newest {
		l.receiver.Newest(f.Short)
	}
	number, known := l.passed.widen(l.Stamp, uint8(f.Number))
	switch {
	case !f.Short:
	case newest:
		f.Number = l.receiver.Widen(frame.Direct, uint8(f.Number))
	case known:
		f.Number = number
	default:
		c.Services.Drop("late")
		return mail.Repair
	}
	if !segment && l.unreadable(f) {
		c.Services.Drop("parted")
		return mail.Repair
	}
	at, fresh := l.receiver.Accept(now, frame.Direct, f.Number, f.Prompt)
	a := mail.Arrival{Place: at, Number: at.Number, Segment: segment, Body: slices.Clone(f.Body), Free: f.Free}
	if f.After != 0 {
		a.After = at.Number - min(at.Number, uint64(f.After))
	}
	switch fresh {
	case custody.New:
		l.talk.heard = now
		c.arrived(now, l, a)
		l.readAhead(now)
		return l.Opened
	case custody.Duplicate:
		if unread, kept := l.reordered.Get(at); newest && kept && len(unread.Body) > 0 && !unread.Segment && !segment {
			l.reordered.Keep(a, true) // its sender knows better now which coding can be read here
		}
		l.Counts.Duplicates++
		return mail.Repair
	case custody.Beyond:
		c.Services.Drop("beyond_window")
	}
	return mail.Payload
}

// arrived keeps a new message and delivers the messages that are in order now. Step delivers those for which this turn has no room.
func (s *shared) arrived(now time.Time, l *peerLink, a mail.Arrival) {
	at := a.Place
	next, ok := l.receiver.Next(at.Queue)
	durable := !ok || next != at || !l.Turn.Room(now)
	l.reordered.Keep(a, durable)
	l.Opened = mail.Payload
	if durable {
		at = mail.TransmissionID{Queue: at.Queue}
	}
	s.read(now, l, at.Queue, at)
	l.Record()
}

// read delivers the messages of a queue that are in order, while this turn has room; the one at fresh is not in the journal.
func (s *shared) read(now time.Time, l *peerLink, queue frame.Queue, fresh mail.TransmissionID) {
	defer l.receiver.Read(now, queue)
	for next, ok := l.receiver.Next(queue); ok && l.Turn.Room(now); next, ok = l.receiver.Next(queue) {
		a, kept := l.reordered.Get(next)
		if kept && next != fresh && len(a.Body) == 0 { // it was read before its turn
			l.reordered.Remove(next, true)
			l.receiver.Advance(queue)
			continue
		}
		if a.Segment {
			l.reordered.Remove(next, next != fresh)
			l.receiver.Advance(queue)
			l.cut.join(l, now, next.Number, a.Body)
			continue
		}
		err := s.Services.OpenSlice(now, l.Peer, next, a.Body)
		if errors.Is(err, compact.ErrUnfinished) { // Step goes on with it
			if next == fresh {
				l.reordered.Keep(a, true)
			}
			break
		}
		l.reordered.Remove(next, next != fresh)
		if errors.Is(err, compact.ErrModel) || errors.Is(err, compact.ErrHistory) || errors.Is(err, envelope.ErrUnknownFlow) {
			// It is coded with data that we lack: its sender learns that from our HELLO, and codes it otherwise.
			l.receiver.Reject(now, next)
			l.Handshake.Owe(now)
			if !errors.Is(err, compact.ErrModel) {
				l.Handshake.Misread()
				l.Reader.Unlearn()
				l.rejectUnread(now, next)
			}
			s.Services.Note("info", "a message refers to data that this node lacks; the gateway asks for it again", "peer", l.Name, "number", next.Number, "error", err)
			break
		}
		l.receiver.Advance(queue)
		if err != nil {
			l.Counts.Unreadable++
			s.Services.Unread(now, l.Peer, next)
			s.Services.Note("error", "a message of a peer cannot be read; it is dropped. Does the peer run another version?",
				"peer", l.Name, "number", next.Number, "error", err)
		}
	}
}

// rejectUnread follows a message that cannot be read because it was coded after a history that differs from the one here. Messages that
// have arrived behind it and are coded in this way are missing again: all of them come anew at once, when their sender has heard that.
func (l *peerLink) rejectUnread(now time.Time, missing mail.TransmissionID) {
	if missing.Queue == frame.Direct {
		l.parted = missing.Number
	}
	for _, at := range l.reordered.Places() {
		if a, _ := l.reordered.Get(at); at.Queue == missing.Queue && len(a.Body) > 0 && !a.Segment && l.Reader.Dependent(a.Body) {
			l.reordered.Remove(at, true)
			l.receiver.Reject(now, at)
		}
	}
}

// unreadable says whether a message was sent before its sender heard that it has to be coded otherwise. If it were kept, it would be
// read right behind the first one that comes anew, before its own new coding has come, and would cost one more round trip.
func (l *peerLink) unreadable(f frame.Data) bool {
	if l.parted <= l.receiver.Cumulative(frame.Direct) {
		l.parted = 0
	}
	return l.parted != 0 && f.Number != uint16(l.parted) && !l.receiver.Known(frame.Direct, f.Number) && l.Reader.Dependent(f.Body)
}

// NewNumbers: the peer counts its messages from 1 again.
func (c *Carrier) NewNumbers(now time.Time, p *mail.Peer) {
	l := c.links[p.ID]
	l.deliverHeld(now, false)
	l.receiver, l.parted, l.passed = custody.NewReceiver(c.Timing, [frame.Queues]uint64{}), 0, nil
	l.long.wire.Forget()
	l.cut.forgetReceived(l)
}
