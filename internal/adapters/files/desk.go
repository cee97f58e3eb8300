package files

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"aldis/internal/site"
)

// Desk holds the files of an adapter that are under way: files that other sites offer, and files of this site that others ask for.
type Desk struct {
	Config
	pulls  map[string]*File  // by hash
	giving map[uint64]giving // by the number of its Load
	asks   uint64
}

// Config is the configuration of a Desk, and the functions of the adapter around it.
type Config struct {
	On    bool         // files are served here
	Scope string       // of its messages
	Most  int64        // octets of a file that crosses
	Key   string       // of the setting with this limit
	Out   *site.Output // of the Step under way
	// Count counts an event by its name; May says whether a warning of this key may be logged now; Unfit ends a far message
	// that cannot be read.
	Count func(what string)
	May   func(now time.Time, key string) bool
	Unfit func(now time.Time, m site.FarMessage)
	// Brings says whether a file is fetched although nobody has asked for it. Here is called when a file is here, Dropped when
	// it is no longer offered.
	Brings  func(*File) bool
	Here    func(now time.Time, f *File)
	Dropped func(hash string)
}

// New makes an empty Desk.
func New(c Config) *Desk {
	return &Desk{Config: c, pulls: map[string]*File{}, giving: map[uint64]giving{}}
}

// File is a file that a far site has offered. It comes when somebody here asks for it.
type File struct {
	Site                      uint16
	Hash, Name, Creator, MIME string
	Size                      int64
	Heard                     time.Time
	Public                    bool // it is offered to all

	asked  int    // the parts before this one were asked for
	have   []bool // parts that are here; nil: nothing was asked for yet
	news   time.Time
	wrong  int // how often the parts together had a wrong hash
	state  string
	failed bool
}

// giving is a request of a far site, while the parts that it wants are read.
type giving struct {
	site  uint16
	token uint64
	hash  string
	from  int
}

// Topics of the messages of a Desk.
const (
	TopicWant = "want"
	TopicPart = "part"
)

const (
	mostPulls  = 500
	mostGiving = 16        // requests whose parts are read at the same time
	mostWindow = 64        // parts that one request may name
	window     = 8         // parts that may be asked for beyond those that are here
	askParts   = 4         // parts that one request names at least, except at the end of the file
	askLater   = time.Hour // without a part; after that, missing parts are requested again when somebody asks for the file
	shortHash  = 8         // octets of a hash that name a file in a part
)

// OfferLife is how long an offer waits to be sent, and how long it is valid at the far site.
const OfferLife = 7 * 24 * time.Hour

// here is how many parts have come.
func (p *File) here() (n int) {
	for _, h := range p.have {
		if h {
			n++
		}
	}
	return n
}

// unasked is the state of a file of which only the offer is here.
const unasked = "nobody here has asked for it yet"

// tellPart sets the state of a file of which some parts are here.
func (p *File) tellPart() {
	p.state = fmt.Sprintf("%d of %d octets are here", min(p.Size, int64(p.here())*PartOctets), p.Size)
}

// Offer takes an offer of a far site.
func (d *Desk) Offer(now time.Time, f File) *File {
	p := d.pulls[f.Hash]
	if p == nil {
		if len(d.pulls) >= mostPulls {
			d.forgetOldest()
		}
		p = &File{Hash: f.Hash, Size: f.Size}
		d.pulls[f.Hash] = p
	}
	if p.have == nil {
		p.Size = f.Size
	}
	p.Site, p.Name, p.Creator, p.MIME, p.Public, p.Heard = f.Site, f.Name, f.Creator, f.MIME, f.Public, now
	p.state, p.failed = unasked, false
	if p.Size > d.Most {
		p.state, p.failed = fmt.Sprintf("it has %d octets, and at most %d may cross (%s)", p.Size, d.Most, d.Key), true
	}
	d.Count("files_offered")
	d.tell(p)
	return p
}

// Of is a file that was offered; nil: none has this hash.
func (d *Desk) Of(hash string) *File { return d.pulls[hash] }

// Len is how many files are offered.
func (d *Desk) Len() int { return len(d.pulls) }

// Restore brings back a file that was offered in an earlier run.
func (d *Desk) Restore(f File) {
	f.state = unasked
	d.pulls[f.Hash] = &f
}

// tell reports the state of a file to the file room.
func (d *Desk) tell(p *File) {
	d.Out.Orders = append(d.Out.Orders, Know{Hash: p.Hash, Name: p.Name, Creator: p.Creator, MIME: p.MIME, Size: p.Size, At: p.Heard, State: p.state,
		Public: p.Public, Failed: p.failed, Bring: d.brought(p)})
}

// brought says whether a file that nobody has asked for yet is fetched by the operator's rules.
func (d *Desk) brought(p *File) bool {
	return p.have == nil && !p.failed && p.Size <= d.Most && d.Brings(p)
}

// TellAll reports the states of all files to the file room, after a restart, and finishes those whose parts are all here: the earlier run
// may have ended before that.
func (d *Desk) TellAll() {
	if !d.On { // the offers are of a time when files were served
		return
	}
	for _, p := range d.pulls {
		d.tell(p)
		if p.have != nil && p.here() == len(p.have) {
			d.finish(p)
		}
	}
}

func (d *Desk) finish(p *File) {
	d.Out.Orders = append(d.Out.Orders, Finish{Hash: p.Hash, Name: p.Name, Creator: p.Creator, MIME: p.MIME, Size: p.Size})
}

func (d *Desk) drop(p *File) {
	delete(d.pulls, p.Hash)
	d.remember(KeyPull+p.Hash, nil)
	d.Dropped(p.Hash)
	d.Out.Orders = append(d.Out.Orders, Know{Hash: p.Hash, Gone: true})
}

func (d *Desk) forgetOldest() {
	var oldest *File
	for _, p := range d.pulls {
		if oldest == nil || p.Heard.Before(oldest.Heard) {
			oldest = p
		}
	}
	d.drop(oldest)
}

// Purge drops offers that have expired.
func (d *Desk) Purge(now time.Time) {
	for _, p := range d.pulls {
		if now.Sub(p.Heard) > OfferLife && now.Sub(p.news) > OfferLife {
			d.drop(p)
		}
	}
}

// Lost drops the offers of a site.
func (d *Desk) Lost(from uint16) {
	for _, p := range d.pulls {
		if p.Site == from {
			d.drop(p)
		}
	}
}

// Wanted begins to fetch a file because a device asks for it.
func (d *Desk) Wanted(now time.Time, ev Wanted) {
	p := d.pulls[ev.Hash]
	if p == nil {
		return
	}
	if p.Size > d.Most {
		d.tell(p)
		return
	}
	if p.have == nil || p.failed {
		p.have, p.asked, p.failed, p.wrong = make([]bool, partsOf(p.Size)), 0, false, 0
		d.ask(now, p)
	} else if now.Sub(p.news) > askLater {
		p.asked = max(0, slices.Index(p.have, false))
		d.ask(now, p)
	}
}

// ask asks for the next parts, as long as not too many are on their way.
func (d *Desk) ask(now time.Time, p *File) {
	first := slices.Index(p.have, false)
	if first < 0 {
		return
	}
	p.asked = max(p.asked, first)
	to := min(len(p.have), p.here()+window)
	if to-p.asked < min(askParts, len(p.have)-p.asked) || to <= p.asked {
		return
	}
	raw, _ := hex.DecodeString(p.Hash)
	data := binary.AppendUvarint(binary.AppendUvarint(raw, uint64(p.asked)), uint64(to-p.asked))
	p.asked, p.news = to, now
	d.progress(p)
	d.Count("files_wanted")
	d.Out.Carry = append(d.Out.Carry, site.Carry{Sites: []uint16{p.Site}, Message: site.Message{Published: true, Scope: d.Scope, Topic: TopicWant,
		Parts: []site.Part{{Name: TopicWant, Data: data}}, Mark: site.Mark{Expires: now.Add(OfferLife)}}})
}

// progress saves and reports which parts of a file are here.
func (d *Desk) progress(p *File) {
	p.tellPart()
	value := binary.AppendUvarint(nil, uint64(p.asked))
	bits := make([]byte, (len(p.have)+7)/8)
	for i, h := range p.have {
		if h {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	d.remember(KeyPull+p.Hash, append(value, bits...))
	d.tell(p)
}

// Part takes a requested part of a file, or the answer that its site no longer has the file.
func (d *Desk) Part(now time.Time, m site.FarMessage, data []byte) {
	if len(data) < 2+shortHash {
		d.Unfit(now, m)
		return
	}
	short := hex.EncodeToString(data[1 : 1+shortHash])
	n, size := binary.Uvarint(data[1+shortHash:])
	var p *File
	for hash, x := range d.pulls {
		if hash[:2*shortHash] == short && x.Site == m.Site {
			p = x
		}
	}
	body := data[min(len(data), 1+shortHash+max(0, size)):]
	switch {
	case p == nil || p.have == nil || !d.On:
		d.undelivered(m, site.Nobody)
	case data[0] == 1:
		d.Out.Done = append(d.Out.Done, m.Token)
		d.fail(p, "its site has it no more: ask its sender to send it again")
	case size <= 0 || n >= uint64(len(p.have)) || int64(len(body)) != min(PartOctets, p.Size-int64(n)*PartOctets):
		d.Unfit(now, m)
	case p.have[n]:
		d.Out.Done = append(d.Out.Done, m.Token)
	default:
		d.Count("file_parts_in")
		d.Out.Orders = append(d.Out.Orders, Keep{Token: m.Token, Hash: p.Hash, Part: int(n), Data: bytes.Clone(body)})
	}
}

func (d *Desk) fail(p *File, why string) {
	p.state, p.failed, p.have, p.asked = why, true, nil, 0
	d.Count("files_failed")
	d.remember(KeyPull+p.Hash, nil)
	d.tell(p)
}

// Kept requests more parts, or finishes the file, when a part is on the disk.
func (d *Desk) Kept(now time.Time, ev Kept) {
	p := d.pulls[ev.Hash]
	if ev.Err != "" {
		d.Out.Undelivered = append(d.Out.Undelivered, site.Undelivered{Token: ev.Token, Why: site.NoRoom})
		if d.May(now, "files room") {
			d.note("warn", "a file of a far site cannot be stored", "error", ev.Err)
		}
		if p != nil {
			d.fail(p, "this gateway cannot keep it: "+ev.Err)
		}
		return
	}
	d.Out.Done = append(d.Out.Done, ev.Token)
	if p == nil || ev.Part >= len(p.have) {
		return
	}
	p.have[ev.Part], p.news = true, now
	d.progress(p)
	if p.here() == len(p.have) {
		d.finish(p)
		return
	}
	d.ask(now, p)
}

// Finished takes in whether all parts have made the right file: it is here, or it is requested once more.
func (d *Desk) Finished(now time.Time, ev Finished) {
	p := d.pulls[ev.Hash]
	if p == nil {
		return
	}
	if ev.Err != "" {
		d.Count("files_wrong")
		d.note("warn", "a received file is damaged; the gateway asks for it once more", "hash", p.Hash, "site", p.Site, "error", ev.Err)
		p.wrong++
		if p.wrong > 1 {
			d.fail(p, "what came is another file: "+ev.Err)
			return
		}
		p.have, p.asked = make([]bool, partsOf(p.Size)), 0
		d.ask(now, p)
		return
	}
	d.Count("files_here")
	p.state, p.have, p.asked = "it is here", nil, 0
	d.remember(KeyPull+p.Hash, nil)
	d.tell(p)
	d.Here(now, p)
}

// RestorePull reads which parts of a file are here; its offer was read before, because keys are sorted.
func (d *Desk) RestorePull(hash string, value []byte) bool {
	p := d.pulls[hash]
	asked, n := binary.Uvarint(value)
	if p == nil || n <= 0 || asked > uint64(partsOf(p.Size)) || len(value)-n != (partsOf(p.Size)+7)/8 {
		return false
	}
	p.asked, p.have = int(asked), make([]bool, partsOf(p.Size))
	for i := range p.have {
		p.have[i] = value[n+i/8]>>(i%8)&1 != 0
	}
	p.tellPart()
	return true
}

// Want takes the request of a far site for parts of a file:
//
//	32 octets  hash
//	varint     the first part
//	varint     how many
func (d *Desk) Want(now time.Time, m site.FarMessage, data []byte) {
	bad := func() {
		d.Unfit(now, m)
	}
	if len(data) < 34 {
		bad()
		return
	}
	from, n := binary.Uvarint(data[32:])
	if n <= 0 || from > 1<<24 {
		bad()
		return
	}
	count, n2 := binary.Uvarint(data[32+n:])
	switch {
	case n2 <= 0 || count == 0 || count > mostWindow:
		bad()
		return
	case !d.On:
		d.undelivered(m, site.Nobody)
		return
	case len(d.giving) >= mostGiving:
		d.undelivered(m, site.NoRoom)
		return
	}
	d.asks++
	hash := hex.EncodeToString(data[:32])
	d.giving[d.asks] = giving{m.Site, m.Token, hash, int(from)}
	d.Count("files_asked")
	d.Out.Orders = append(d.Out.Orders, Load{Ask: d.asks, Hash: hash, From: int(from), To: int(from + count)})
}

// Loaded sends a site the parts that it has requested: all in the step in which the request is done, so that a crash repeats none.
//
//	1 octet   0; or 1: the file is no longer here
//	8 octets  of the hash, the first
//	varint    part
//	octets
func (d *Desk) Loaded(now time.Time, ev Loaded) {
	g, ok := d.giving[ev.Ask]
	if !ok {
		return
	}
	delete(d.giving, ev.Ask)
	d.Out.Done = append(d.Out.Done, g.token)
	short, _ := hex.DecodeString(g.hash[:2*shortHash])
	send := func(kind byte, part int, data []byte) {
		b := binary.AppendUvarint(append([]byte{kind}, short...), uint64(part))
		d.Out.Carry = append(d.Out.Carry, site.Carry{Sites: []uint16{g.site}, Message: site.Message{Published: true, Scope: d.Scope, Topic: TopicPart,
			Parts: []site.Part{{Name: TopicPart, Data: append(b, data...)}}, Mark: site.Mark{Precedence: site.Deferred, Expires: now.Add(OfferLife)}}})
	}
	if len(ev.Parts) == 0 {
		d.Count("files_gone")
		send(1, g.from, nil)
	}
	for i, p := range ev.Parts {
		d.Count("file_parts_out")
		send(0, g.from+i, p)
	}
}

// KeyPull begins the key of the parts of a file that are here; the hash follows. Offers have to be restored before.
const KeyPull = "q"

func (d *Desk) remember(key string, value []byte) {
	d.Out.Remember = append(d.Out.Remember, site.Memory{Key: key, Value: value})
}

func (d *Desk) undelivered(m site.FarMessage, why site.Why) {
	d.Out.Undelivered = append(d.Out.Undelivered, site.Undelivered{Token: m.Token, Why: why})
}

func (d *Desk) note(level, text string, attrs ...any) {
	d.Out.Notes = append(d.Out.Notes, site.Note{Level: level, Text: text, Attrs: attrs})
}
