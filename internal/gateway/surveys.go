package gateway

import (
	"errors"
	"fmt"
	"time"

	"aldis/internal/due"
	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/link/survey"
)

// SurveyOrder is the operator's order to measure the link to a peer with so many octets of both directions.
type SurveyOrder struct {
	Ref    uint64 // with which Status.Survey answers
	Peer   uint16
	Budget int
}

// GatewayEvent marks SurveyOrder as an event of the gateway.
func (SurveyOrder) GatewayEvent() {}

// surveys measures the link to a peer when the operator orders it, and answers peers that do. What it sends goes when no message
// waits and the air is free, and never while this node is silent.
type surveys struct {
	b      *bearer
	road   mail.Road
	quiet  func() bool    // this node is silent
	peers  func() []*peer // all of this node
	shore  bool           // this end of the link is ashore
	boot   uint8          // of this start's number
	last   api.SurveyStatus
	asker  *survey.Asker // nil: none runs
	peer   *peer         // of asker
	id     uint8
	before uint64 // datagrams of others before it began
	own    uint64 // datagrams of the survey
	far    map[uint16]*survey.Answerer
}

// peerOf is the one with this id; nil: there is none.
func (s *surveys) peerOf(id uint16) *peer {
	for _, p := range s.peers() {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// surveyOverhead is what a datagram of a survey has beside its word.
const surveyOverhead = profile.IPUDPOctets + seal.OverheadShort + frame.SurveyOverhead

// SurveyPlan is what a survey of a link would send, for one end of it.
func SurveyPlan(p profile.Profile, shore bool, budget int) (survey.Plan, error) {
	return survey.For(p, p.Sending(shore).RateBps, surveyOverhead, budget)
}

// obey begins a survey, or says why not.
func (s *surveys) obey(now time.Time, o SurveyOrder) {
	p := s.peerOf(o.Peer)
	refuse := func(text string) {
		if s.asker == nil { // what runs stays to be seen
			s.last = api.SurveyStatus{Ref: o.Ref, State: api.SurveyRefused, Text: text, Budget: o.Budget}
			if p != nil {
				s.last.Peer = p.Name
			}
		}
		s.road.Note("warn", "a survey was refused", "why", text)
	}
	plan, err := SurveyPlan(s.b.Profile, s.shore, o.Budget)
	switch {
	case s.asker != nil:
		refuse("a survey of the link to " + s.peer.Name + " runs")
	case p == nil:
		refuse(fmt.Sprintf("no [[link.peer]] has the id %d", o.Peer))
	case err != nil:
		refuse(err.Error())
	case s.quiet():
		refuse("this gateway is silent")
	case linkWord(p) != linkUp || !p.Met.KnowsUs:
		refuse("the link to " + p.Name + " is not up")
	default:
		s.id++
		s.peer, s.asker = p, survey.NewAsker(now, s.id^s.boot, plan)
		s.before, s.own = s.datagrams(), 0
		s.last = api.SurveyStatus{Ref: o.Ref, Peer: p.Name, State: api.SurveyRuns, Budget: o.Budget}
		s.road.Note("info", "a survey of a link begins", "peer", p.Name, "budget_octets", o.Budget)
	}
}

// datagrams is how many went and came, of all peers.
func (s *surveys) datagrams() (n uint64) {
	for _, p := range s.peers() {
		if p.bearer == s.b {
			n += p.Counts.DatagramsSent + p.Counts.DatagramsReceived
		}
	}
	return n
}

// status is the last survey; nil: none was ordered.
func (s *surveys) status() *api.SurveyStatus {
	if s.last.State == "" {
		return nil
	}
	last := s.last
	if s.asker != nil {
		last.Sent, last.Received = s.asker.Octets()
	}
	return &last
}

// receive takes a word of a peer.
func (s *surveys) receive(now time.Time, p *peer, f frame.Survey, octets int) {
	p.Ledger.Add(mail.Received, mail.Survey, octets)
	w, err := survey.Parse(f.Body)
	if err != nil {
		s.road.Drop("survey")
		return
	}
	all := surveyOverhead - frame.SurveyOverhead + octets
	switch w.Op {
	case survey.Back, survey.Report, survey.Refuse:
		if p == s.peer && s.asker != nil && s.asker.Receive(now, w, all) {
			s.own++
			return
		}
		s.road.Drop("survey")
	default:
		s.answerer(p).Receive(now, w, all)
	}
}

func (s *surveys) answerer(p *peer) *survey.Answerer {
	a := s.far[p.ID]
	if a == nil {
		a = survey.NewAnswerer(s.b.Profile, s.b.Profile.Sending(s.shore).RateBps, surveyOverhead)
		s.far[p.ID] = a
	}
	return a
}

// pump sends what is ready. It is not called while this node is silent.
func (s *surveys) pump(now time.Time) {
	for _, p := range s.peers() {
		for a := s.far[p.ID]; a != nil && s.may(now, p, a.Streams()); {
			w, octets, ok := a.Next(now)
			if !ok || !s.send(now, p, w, octets) {
				break
			}
			a.Sent(now, octets)
		}
	}
	if s.asker == nil {
		return
	}
	for s.may(now, s.peer, s.asker.Streams()) {
		w, octets, ok := s.asker.Next(now)
		if !ok {
			break
		}
		if !s.send(now, s.peer, w, octets) {
			s.asker.Fail(errors.New("nothing more can be sealed in this start"))
			break
		}
		s.asker.Sent(now, octets)
		s.own++
	}
	s.ended(now)
}

// hush: this node is silent. What is owed to a survey is forgotten, for it would come too late.
func (s *surveys) hush(now time.Time) {
	for _, a := range s.far {
		a.Drop()
	}
	if s.asker != nil {
		s.ended(now)
	}
}

// left: a peer was taken out of the configuration.
func (s *surveys) left(now time.Time, p *peer) {
	delete(s.far, p.ID)
	if s.asker != nil && s.peer == p {
		s.asker.Fail(errors.New("the peer was taken out of the configuration"))
		s.ended(now)
	}
}

// ended says what became of a survey that is over.
func (s *surveys) ended(now time.Time) {
	switch word := linkWord(s.peer); {
	case s.quiet():
		s.asker.Fail(errors.New("this gateway was ordered to be silent"))
	case word != linkUp:
		s.asker.Fail(errors.New("the link to " + s.peer.Name + " is " + word))
	}
	if !s.asker.Over() {
		return
	}
	s.last.Sent, s.last.Received = s.asker.Octets()
	s.last.Others = s.datagrams() - s.before - s.own
	if err := s.asker.Err(); err != nil {
		s.last.State, s.last.Text = api.SurveyFailed, err.Error()
		s.road.Note("warn", "a survey of a link came to nothing", "peer", s.peer.Name, "why", err)
	} else {
		s.last.State, s.last.Packets = api.SurveyDone, s.asker.Packets()
		s.road.Note("info", "a survey of a link is done", "peer", s.peer.Name, "sent_octets", s.last.Sent, "received_octets", s.last.Received)
	}
	s.asker, s.peer = nil, nil
}

// may says whether something of a survey may go to a peer now: any message goes before it.
func (s *surveys) may(now time.Time, p *peer, streams bool) bool {
	if !p.Addr.IsValid() || !p.Met.KnowsUs || p.Link.Dead() || p.Link.Listening() {
		return false
	}
	if air, _ := p.Link.Air(); !streams && now.Before(air.Free) {
		return false
	}
	return !s.waits(p)
}

// waits says whether a message waits that would go over the same air.
func (s *surveys) waits(p *peer) bool {
	for _, other := range s.peers() {
		if other != p && (other.bearer != s.b || s.shore) {
			continue
		}
		if other.Box.Waiting(frame.Direct, frame.Bulk) > 0 || other.Box.Flying(mail.Group) > 0 {
			return true
		}
	}
	return false
}

// send puts a word on the air.
func (s *surveys) send(now time.Time, p *peer, w survey.Word, octets int) bool {
	body := survey.Append(nil, w, octets-surveyOverhead)
	data, ok := s.road.Seal(p.ID, false, frame.Append(nil, frame.Survey{Body: body}, true))
	if !ok {
		return false
	}
	p.Ledger.Add(mail.Sent, mail.Survey, len(body)+frame.SurveyOverhead)
	p.Ledger.Head(mail.Sent, false)
	p.Counts.DatagramsSent++
	p.LastSent = now
	air, rate := p.Link.Air()
	air.Took(now, &s.b.Profile, len(data), rate)
	s.road.Send(p.Addr, data)
	return true
}

// due is when pump has something to do; zero: not by itself.
func (s *surveys) due(now time.Time) (at time.Time) {
	if s.quiet() {
		return at
	}
	for id, a := range s.far {
		if next := a.Due(now); !next.IsZero() {
			at = due.Earliest(at, s.ready(now, s.peerOf(id), next, a.Streams()))
		}
	}
	if s.asker != nil {
		at = due.Earliest(at, s.ready(now, s.peer, s.asker.Due(), s.asker.Streams()))
	}
	return at
}

// ready is when what is due then may go: a message that waits is looked at again when it has gone, or after a while.
func (s *surveys) ready(now time.Time, p *peer, at time.Time, streams bool) time.Time {
	if air, _ := p.Link.Air(); !streams {
		at = due.Latest(at, air.Free)
	}
	if !at.After(now) {
		at = now.Add(surveyAgain)
	}
	return at
}

// surveyAgain is when a survey looks again that had something to send and might not.
const surveyAgain = 50 * time.Millisecond
