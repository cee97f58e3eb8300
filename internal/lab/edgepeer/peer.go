package edgepeer

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"aldis/internal/jxta"
)

const (
	leaseAgain  = 15 * time.Second // a lease request without an answer is repeated, as by 2.7's monitor (wire 0.10)
	leaseSoon   = 2 * time.Second  // after Disconnect (ghosts 10)
	renewBefore = 5 * time.Minute  // or half the lease, whichever is less (wire 0.10)
	defaultLife = 2 * time.Hour
)

// Peer is one edge peer. Step is its only way in.
type Peer struct {
	cfg   Config
	id    string
	now   time.Time
	out   *Output
	stats Stats

	rdv       jxta.AccessPoint // of the present connection; Peer empty before its welcome
	remote    string
	ready     bool // welcomes are exchanged
	leases    map[string]*lease
	groups    []string // keys of leases, in order of joining
	pipes     map[pipeKey]string
	opened    []pipeKey // keys of pipes, in order of opening
	docs      []*own
	targets   map[pipeKey]*target
	seen      recent
	query     int
	print     []byte                   // element EndpointRouterMsg-fingerprint; nil: unsigned
	templates map[templateKey]template // of this connection
	cached    map[routeKey][]byte      // router elements of frequent destinations

}

type pipeKey struct{ group, pipe string }

type lease struct {
	until time.Time // zero: none
	ask   time.Time // when to ask (again); zero: not
}

// New makes a peer without a connection.
func New(cfg Config) *Peer {
	if cfg.MaxWaiting == 0 {
		cfg.MaxWaiting = 1024
	}
	if cfg.MaxDocs == 0 {
		cfg.MaxDocs = 16384
	}
	p := &Peer{cfg: cfg, id: cfg.ID, leases: map[string]*lease{}, pipes: map[pipeKey]string{}, targets: map[pipeKey]*target{},
		seen: newRecent(1024), cached: map[routeKey][]byte{}, templates: map[templateKey]template{}}
	if p.id == "" && cfg.Cert != nil {
		p.id, _ = jxta.CertPeer(cfg.Cert) // data that is no certificate gives no id, and a random one is drawn
	}
	if p.id == "" {
		parts := jxta.IDParts{Kind: jxta.KindPeer, Group: jxta.WorldUUID}
		binary.BigEndian.PutUint64(parts.UUID[:], cfg.Rand.Uint64())
		binary.BigEndian.PutUint64(parts.UUID[8:], cfg.Rand.Uint64()|1)
		p.id = parts.Unique()
	}
	if cfg.Key != nil {
		p.print = fingerprint(p.id, cfg.Key, cfg.Cert)
	}
	if len(cfg.Groups) == 0 {
		p.join(jxta.NetGroup)
	}
	for _, g := range cfg.Groups {
		p.join(groupOf(g))
	}
	return p
}

// ID is the peer's unique value.
func (p *Peer) ID() string { return p.id }

// Rendezvous is the unique value of the rendezvous that the peer is connected to; "" before the welcome.
func (p *Peer) Rendezvous() string { return p.rdv.Peer }

// Leased reports whether there is a lease in a group.
func (p *Peer) Leased(group string) bool {
	l := p.leases[groupOf(group)]
	return l != nil && l.until.After(p.now)
}

// Stats are the counters so far.
func (p *Peer) Stats() Stats { return p.stats }

func groupOf(group string) string {
	if group == "" {
		return jxta.NetGroup
	}
	return group
}

// Step brings the peer to now and applies ev.
func (p *Peer) Step(now time.Time, ev Event) Output {
	var out Output
	p.now, p.out = now, &out
	switch ev := ev.(type) {
	case Dialled:
		p.dialled(ev)
	case Welcomed:
		p.welcomed(ev.Welcome)
	case Received:
		p.received(ev.Body)
	case Lost:
		p.lost()
	case Join:
		p.join(groupOf(ev.Group))
	case Leave:
		p.leave(groupOf(ev.Group))
	case Renew:
		if l := p.leases[groupOf(ev.Group)]; l != nil {
			l.ask = p.now
		}
	case Publish:
		p.publish(ev)
	case Query:
		p.ask(ev)
	case Listen:
		p.listen(ev)
	case Unlisten:
		p.unlisten(ev)
	case Resolve:
		p.resolve(ev)
	case Send:
		p.send(ev)
	}
	p.wake()
	p.out = nil
	return out
}

// wake does all work that is due and sets the next deadline.
func (p *Peer) wake() {
	next := time.Time{}
	until := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, g := range p.groups {
		l := p.leases[g]
		if !l.until.IsZero() && !p.now.Before(l.until) {
			l.until = time.Time{}
		}
		if !p.ready {
			continue
		}
		if !l.ask.IsZero() && !p.now.Before(l.ask) {
			l.ask = p.now.Add(leaseAgain)
			p.connect(g)
		}
		until(l.ask)
		until(l.until)
	}
	if p.ready {
		p.wakeTargets(until)
	}
	p.out.Deadline = next
}

func (p *Peer) notice(n Notice) { p.out.Notices = append(p.out.Notices, n) }

func (p *Peer) dialled(ev Dialled) {
	p.lost()
	p.remote = ev.Remote
	dest := "tcp://" + ev.Remote
	if p.cfg.Relay > 0 { // the request hides in the address dialled (wire 10)
		service, param := jxta.Mangle(jxta.NetGroup, jxta.ClassRelay, "connect,"+strconv.FormatInt(p.cfg.Relay.Milliseconds(), 10)+",keep,true")
		dest += "/" + service + "/" + param
	}
	host := ev.Local
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		host = host[:i]
	}
	if host == "" {
		host = "0.0.0.0"
	}
	p.out.Welcome = &jxta.Welcome{Dest: dest, Public: "tcp://" + host + ":0", Peer: jxta.URN(p.id), Version: "1.1"}
}

func (p *Peer) welcomed(w jxta.Welcome) {
	unique, err := jxta.ParseURN(w.Peer)
	if err != nil || p.ready {
		p.stats.Bad++
		return
	}
	p.rdv = jxta.AccessPoint{Peer: unique, Addresses: []string{"tcp://" + p.remote}}
	p.ready = true
	clear(p.cached)
	clear(p.templates)
	for _, l := range p.leases {
		l.ask = p.now
	}
}

func (p *Peer) lost() {
	p.ready, p.rdv = false, jxta.AccessPoint{}
	for _, l := range p.leases {
		l.until = time.Time{}
	}
}

func (p *Peer) join(group string) {
	if p.leases[group] != nil {
		return
	}
	p.leases[group] = &lease{ask: p.now}
	p.groups = append(p.groups, group)
}

// leave gives a lease back; the group's pipes are closed with it.
func (p *Peer) leave(group string) {
	if p.leases[group] == nil {
		return
	}
	p.post(p.rdv.Peer, group, jxta.URN(jxta.ClassRendezvous), group, xmlElement("Disconnect", p.Advertisement(group)))
	delete(p.leases, group)
	for i, g := range p.groups {
		if g == group {
			p.groups = append(p.groups[:i:i], p.groups[i+1:]...)
			break
		}
	}
	var rest []pipeKey
	for _, k := range p.opened {
		if k.group == group {
			delete(p.pipes, k)
		} else {
			rest = append(rest, k)
		}
	}
	p.opened = rest
}

// connect asks for a lease, directly: the one message that is not routed (wire 4.4).
func (p *Peer) connect(group string) {
	service, param := jxta.Mangle(group, jxta.URN(jxta.ClassRendezvous), group)
	p.transmit(service, param, xmlElement("Connect", p.Advertisement(group)))
}

// granted handles the rendezvous's answer about a lease (wire 5.1).
func (p *Peer) granted(group string, elements []jxta.Element) {
	l := p.leases[group]
	if l == nil {
		return
	}
	if find(elements, "Disconnect") != nil {
		l.until, l.ask = time.Time{}, p.now.Add(leaseSoon)
		p.notice(Disowned{group})
		return
	}
	e := find(elements, "ConnectedLease")
	if e == nil {
		return
	}
	ms, err := strconv.ParseInt(strings.TrimSpace(string(e.Data)), 10, 64)
	if err != nil || ms <= 0 || ms > int64(jxta.MaxLife/time.Millisecond) {
		p.stats.Bad++
		return
	}
	d := time.Duration(ms) * time.Millisecond
	renewed := !l.until.IsZero()
	l.until = p.now.Add(d)
	l.ask = l.until.Add(-min(renewBefore, d/2))
	p.notice(Leased{Group: group, Rendezvous: p.rdv.Peer, Lease: d, Renewed: renewed})
	if !renewed {
		p.sayPipes(group)
		p.sayDocs(group)
	}
}

// Route leads to the peer through its rendezvous, in the form of a relay client's route (wire 4.5).
func (p *Peer) Route() jxta.Route {
	r := jxta.Route{Dest: p.id, Access: jxta.AccessPoint{Peer: p.id, Addresses: []string{"jxtatls://" + p.id, "relay://" + p.id}}}
	if p.rdv.Peer != "" {
		r.Hops = []jxta.AccessPoint{p.rdv}
	}
	return r
}

// Advertisement is the peer's own advertisement in a group, a document.
func (p *Peer) Advertisement(group string) []byte {
	return jxta.AppendDocument(nil, jxta.PeerAdvertisement{Peer: p.id, Group: groupOf(group), Name: p.cfg.Name, Services: []jxta.Service{
		{Class: jxta.ClassEndpoint, Node: jxta.ServiceNode(jxta.ClassEndpoint, p.Route().Node())},
	}}.Node())
}

// uuid draws the text of a message id.
func (p *Peer) uuid() string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:], p.cfg.Rand.Uint64())
	binary.BigEndian.PutUint64(raw[8:], p.cfg.Rand.Uint64())
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	var b [36]byte
	hex.Encode(b[:8], raw[:4])
	hex.Encode(b[9:13], raw[4:6])
	hex.Encode(b[14:18], raw[6:8])
	hex.Encode(b[19:23], raw[8:10])
	hex.Encode(b[24:], raw[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// recent is a set that forgets its oldest members.
type recent struct {
	in    map[string]bool
	order []string
	next  int
}

func newRecent(size int) recent { return recent{in: map[string]bool{}, order: make([]string, size)} }

// add reports whether s was new.
func (r *recent) add(s string) bool {
	if r.in[s] {
		return false
	}
	delete(r.in, r.order[r.next])
	r.order[r.next], r.in[s] = s, true
	r.next = (r.next + 1) % len(r.order)
	return true
}
