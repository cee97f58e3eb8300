package tak

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/site"
)

// pull is a file that a far site has offered. It comes when a device here asks for it.
type pull struct {
	site   uint16
	hash   string
	size   int64
	event  *cot.Event // the offer, without address and location
	heard  time.Time
	asked  int    // parts before this one were asked for
	have   []bool // parts that are here; nil: nothing was asked for yet
	news   time.Time
	wrong  int             // so often the parts made another file
	hosts  map[string]bool // of devices that wait for it
	state  string
	failed bool
}

const (
	mostPulls = 500
	mostHosts = 64
	window    = 8         // parts that may be asked for beyond those that are here
	askParts  = 4         // parts that one ask names at least, except at the end of the file
	askLater  = time.Hour // without a part; then what is missing is asked for again when a device asks
)

// here is how many parts have come.
func (p *pull) here() (n int) {
	for _, h := range p.have {
		if h {
			n++
		}
	}
	return n
}

// unasked is the state of a file of which nothing is here but its offer.
const unasked = "nobody here has asked for it yet"

// tellPart makes the state that of a file of which some parts are here.
func (p *pull) tellPart() {
	p.state = fmt.Sprintf("%d of %d octets are here", min(p.size, int64(p.here())*PartOctets), p.size)
}

// offered takes an offer of a far site, and returns it as devices here can use it; nil: it is on the list alone.
func (fs *files) offered(now time.Time, from uint16, e *cot.Event) *cot.Event {
	hash, size, ok := shared(e)
	if fs.cfg.Files.URL == "" || e.Type != "b-f-t-r" || !ok {
		return e
	}
	p := fs.pulls[hash]
	if p == nil {
		if len(fs.pulls) >= mostPulls {
			fs.forgetOldest()
		}
		p = &pull{hash: hash, size: size, hosts: map[string]bool{}}
		fs.pulls[hash] = p
	}
	if p.have == nil {
		p.size = size
	}
	p.site, p.event, p.heard = from, located(e, ""), now
	p.state, p.failed = unasked, false
	if size > fs.cfg.Files.Most {
		p.state, p.failed = fmt.Sprintf("it has %d octets, and at most %d may cross (tak.max_crossing)", size, fs.cfg.Files.Most), true
	}
	fs.trouble.Count("files_offered")
	fs.remember(keyOffer+hash, append(appendMillis([]byte{byte(from >> 8), byte(from)}, now), code.Append(nil, p.event, now, nil)...))
	fs.tell(p)
	if e.Find(listOnly) != nil {
		return nil
	}
	return fs.fresh(now, p)
}

// fresh is an offer as a device here is given it now.
func (fs *files) fresh(now time.Time, p *pull) *cot.Event {
	e := located(p.event, fs.cfg.Files.URL+"/Marti/sync/content?hash="+p.hash)
	e.Time = now.UTC().Truncate(time.Millisecond)
	e.Start, e.Stale = e.Time, e.Time.Add(usualLife)
	return e
}

// tell tells the room of files how a file stands.
func (fs *files) tell(p *pull) {
	share := p.event.Find("fileshare")
	fs.out.Orders = append(fs.out.Orders, Know{Hash: p.hash, Name: nameOf(share), Creator: share.Get("senderUid"), Size: p.size, At: p.heard, State: p.state,
		Public: p.event.Find(listOnly) != nil, Failed: p.failed, Bring: fs.brought(p)})
}

// brought says whether a file of which nothing is on its way comes by the operator's rules.
func (fs *files) brought(p *pull) bool {
	cfg := fs.cfg.Files
	return p.have == nil && !p.failed && p.size <= cfg.Most && rule.Brings(cfg.Bring, p.event, p.site, p.size)
}

// tellAll tells it of all files, after a restart.
func (fs *files) tellAll() {
	for _, p := range fs.pulls {
		fs.tell(p)
	}
}

func (fs *files) drop(p *pull) {
	delete(fs.pulls, p.hash)
	fs.remember(keyOffer+p.hash, nil)
	fs.remember(keyPull+p.hash, nil)
	fs.out.Orders = append(fs.out.Orders, Know{Hash: p.hash, Gone: true})
}

func (fs *files) forgetOldest() {
	var oldest *pull
	for _, p := range fs.pulls {
		if oldest == nil || p.heard.Before(oldest.heard) {
			oldest = p
		}
	}
	fs.drop(oldest)
}

// purge drops offers that are over.
func (fs *files) purge(now time.Time) {
	for _, p := range fs.pulls {
		if now.Sub(p.heard) > offerLife && now.Sub(p.news) > offerLife {
			fs.drop(p)
		}
	}
}

// lost drops the offers of a site.
func (fs *files) lost(from uint16) {
	for _, p := range fs.pulls {
		if p.site == from {
			fs.drop(p)
		}
	}
}

// wanted begins to ask for a file because a device does.
func (fs *files) wanted(now time.Time, ev Wanted) {
	p := fs.pulls[ev.Hash]
	if p == nil {
		return
	}
	if p.size > fs.cfg.Files.Most {
		fs.tell(p)
		return
	}
	if ev.Host != "" && len(p.hosts) < mostHosts {
		p.hosts[ev.Host] = true
	}
	if p.have == nil || p.failed {
		p.have, p.asked, p.failed, p.wrong = make([]bool, partsOf(p.size)), 0, false, 0
		fs.ask(now, p)
	} else if now.Sub(p.news) > askLater {
		p.asked = max(0, slices.Index(p.have, false))
		fs.ask(now, p)
	}
}

// ask asks for the next parts, as long as not too many are on their way.
func (fs *files) ask(now time.Time, p *pull) {
	first := slices.Index(p.have, false)
	if first < 0 {
		return
	}
	p.asked = max(p.asked, first)
	to := min(len(p.have), p.here()+window)
	if to-p.asked < min(askParts, len(p.have)-p.asked) || to <= p.asked {
		return
	}
	raw, _ := hex.DecodeString(p.hash)
	data := binary.AppendUvarint(binary.AppendUvarint(raw, uint64(p.asked)), uint64(to-p.asked))
	p.asked, p.news = to, now
	fs.progress(p)
	fs.trouble.Count("files_wanted")
	fs.out.Carry = append(fs.out.Carry, site.Carry{Sites: []uint16{p.site}, Message: site.Message{Published: true, Scope: scope, Topic: topicWant,
		Parts: []site.Part{{Name: topicWant, Data: data}}, Mark: site.Mark{Expires: now.Add(offerLife)}}})
}

// progress notes what is here of a file, and says it.
func (fs *files) progress(p *pull) {
	p.tellPart()
	value := binary.AppendUvarint(nil, uint64(p.asked))
	bits := make([]byte, (len(p.have)+7)/8)
	for i, h := range p.have {
		if h {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	fs.remember(keyPull+p.hash, append(value, bits...))
	fs.tell(p)
}

// part takes a part of a file that was asked for, or that it is there no more.
func (fs *files) part(now time.Time, m site.FarMessage, data []byte) {
	if len(data) < 2+shortHash {
		fs.farTrouble(now, m.Site, code.ErrMalformed)
		fs.undelivered(m, site.Unfit)
		return
	}
	short := hex.EncodeToString(data[1 : 1+shortHash])
	n, size := binary.Uvarint(data[1+shortHash:])
	var p *pull
	for hash, x := range fs.pulls {
		if hash[:2*shortHash] == short && x.site == m.Site {
			p = x
		}
	}
	body := data[min(len(data), 1+shortHash+max(0, size)):]
	switch {
	case p == nil || p.have == nil:
		fs.undelivered(m, site.Nobody)
	case data[0] == 1:
		fs.out.Done = append(fs.out.Done, m.Token)
		fs.fail(p, "its site has it no more: ask its sender to send it again")
	case size <= 0 || n >= uint64(len(p.have)) || int64(len(body)) != min(PartOctets, p.size-int64(n)*PartOctets):
		fs.farTrouble(now, m.Site, code.ErrMalformed)
		fs.undelivered(m, site.Unfit)
	case p.have[n]:
		fs.out.Done = append(fs.out.Done, m.Token)
	default:
		fs.trouble.Count("file_parts_in")
		fs.out.Orders = append(fs.out.Orders, Keep{Token: m.Token, Hash: p.hash, Part: int(n), Data: bytes.Clone(body)})
	}
}

func (fs *files) fail(p *pull, why string) {
	p.state, p.failed, p.have, p.asked = why, true, nil, 0
	fs.trouble.Count("files_failed")
	fs.remember(keyPull+p.hash, nil)
	fs.tell(p)
}

// keptPart goes on when a part is on the disk.
func (fs *files) keptPart(now time.Time, ev Kept) {
	p := fs.pulls[ev.Hash]
	if ev.Err != "" {
		fs.out.Undelivered = append(fs.out.Undelivered, site.Undelivered{Token: ev.Token, Why: site.NoRoom})
		if fs.trouble.May(now, "files room") {
			fs.note("warn", "a data package of a far site cannot be stored", "error", ev.Err)
		}
		if p != nil {
			fs.fail(p, "this gateway cannot keep it: "+ev.Err)
		}
		return
	}
	fs.out.Done = append(fs.out.Done, ev.Token)
	if p == nil || ev.Part >= len(p.have) {
		return
	}
	p.have[ev.Part], p.news = true, now
	fs.progress(p)
	if p.here() == len(p.have) {
		share := p.event.Find("fileshare")
		fs.out.Orders = append(fs.out.Orders, Finish{Hash: p.hash, Name: nameOf(share), Creator: share.Get("senderUid"), Size: p.size})
		return
	}
	fs.ask(now, p)
}

// finished offers a file that is here anew to those who have asked for it.
func (fs *files) finished(now time.Time, ev Finished) {
	p := fs.pulls[ev.Hash]
	if p == nil {
		return
	}
	if ev.Err != "" {
		fs.trouble.Count("files_wrong")
		fs.note("warn", "a received data package is damaged; the gateway asks for it once more", "hash", p.hash, "site", p.site, "error", ev.Err)
		p.wrong++
		if p.wrong > 1 {
			fs.fail(p, "what came is another file: "+ev.Err)
			return
		}
		p.have, p.asked = make([]bool, partsOf(p.size)), 0
		fs.ask(now, p)
		return
	}
	fs.trouble.Count("files_here")
	p.state, p.have, p.asked = "it is here", nil, 0
	fs.remember(keyPull+p.hash, nil)
	fs.tell(p)
	e := fs.fresh(now, p).Without(listOnly)
	for _, c := range fs.devices.list() {
		if p.hosts[c.host] {
			fs.devices.send(c, e)
		}
	}
	p.hosts = map[string]bool{}
}

// Keys of memories.
const (
	keyOffer = "p" // hash: site, time, event
	keyPull  = "q" // hash: parts asked for, those that are here
)

func (fs *files) restoreOffer(hash string, value []byte) bool {
	if len(hash) != 64 || len(value) < 10 {
		return false
	}
	at := millis(value[2:])
	e, err := code.Parse(value[10:], at, nil)
	if err != nil {
		return false
	}
	own, size, ok := shared(e)
	if !ok || own != hash {
		return false
	}
	fs.pulls[hash] = &pull{site: binary.BigEndian.Uint16(value), hash: hash, size: size, event: e, heard: at, hosts: map[string]bool{},
		state: unasked}
	return true
}

// restorePull reads what is here of a file; its offer was read before, as keys are in order.
func (fs *files) restorePull(hash string, value []byte) bool {
	p := fs.pulls[hash]
	asked, n := binary.Uvarint(value)
	if p == nil || n <= 0 || asked > uint64(partsOf(p.size)) || len(value)-n != (partsOf(p.size)+7)/8 {
		return false
	}
	p.asked, p.have = int(asked), make([]bool, partsOf(p.size))
	for i := range p.have {
		p.have[i] = value[n+i/8]>>(i%8)&1 != 0
	}
	p.tellPart()
	return true
}
