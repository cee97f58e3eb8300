package xmpp

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/files"
	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/rule"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// Files says how files of HTTP uploads (XEP-0363) are served. Without a URL they are not served, and their addresses cross as text.
type Files struct {
	Domain string // of the upload service, which is this gateway
	URL    string // of the file room, for clients of this LAN, without "/" at its end; "": none
	Most   int64  // octets of a file
	Cross  int64  // octets of a file that crosses
	Bring  int64  // octets of a far site's file that is fetched although nobody has asked for it; 0: none is
}

// uploads are the files that clients here have uploaded, and the files that far sites offer in messages.
type uploads struct {
	*step
	*files.Desk
	f     *Adapter
	asks  map[uint64]stanza.Element // for slots
	ask   uint64
	given map[string]code.File // by the part of their addresses behind the URL of the file room
	order []string             // keys of given, the oldest first
	tidy  time.Time
	told  bool
}

const (
	nsUpload   = "urn:xmpp:http:upload:0"
	mostGiven  = 2000
	mostSlots  = 500 // slots that are requested at the same time
	keyGiven   = "d" // id: hash, name, MIME, size
	keyOffered = "f" // hash: name, MIME, size, site, time
)

func newUploads(f *Adapter) *uploads {
	u := &uploads{step: f.step, f: f, asks: map[uint64]stanza.Element{}, given: map[string]code.File{}}
	cfg := f.cfg.Files
	u.Desk = files.New(files.Config{On: cfg.URL != "", Most: cfg.Cross, Key: "xmpp.max_crossing", Out: &f.step.out, Count: func(what string) { f.trouble.Count(what) },
		May:     func(now time.Time, key string) bool { return f.trouble.May(now, key) },
		Unfit:   func(now time.Time, m site.FarMessage) { f.farTrouble(now, m, code.ErrMalformed) },
		Brings:  func(file *files.File) bool { return file.Size <= cfg.Bring },
		Here:    func(time.Time, *files.File) {},
		Dropped: func(hash string) { f.remember(keyOffered+hash, nil) },
	})
	return u
}

// event takes an event of the file room, or a far gateway's message about a file; false: it is something else.
func (u *uploads) event(now time.Time, ev site.Event) bool {
	if !u.told {
		u.told = true
		u.TellAll()
	}
	switch ev := ev.(type) {
	case files.Reserved:
		u.reserved(ev)
	case files.Uploaded:
		u.uploaded(ev)
	case files.Loaded:
		u.Loaded(now, ev)
	case files.Kept:
		u.Kept(now, ev)
	case files.Finished:
		u.Finished(now, ev)
	case files.Wanted:
		u.Wanted(now, ev)
	case site.FarMessage:
		switch m := ev.Message; {
		case !m.Published || len(m.Parts) != 1:
			return false
		case m.Topic == files.TopicWant:
			u.Want(now, ev, m.Parts[0].Data)
		case m.Topic == files.TopicPart:
			u.Part(now, ev, m.Parts[0].Data)
		default:
			return false
		}
	default:
		return false
	}
	return true
}

// heard answers a client at the upload service.
func (u *uploads) heard(c *component, e *stanza.Element, to jid) {
	asked := e.Kid(nsUpload, "request")
	if e.Name != "iq" || asked == nil || e.Get("type") != "get" {
		if e.Name == "iq" {
			u.f.query(c, e, to)
		}
		return
	}
	size, err := strconv.ParseInt(asked.Get("size"), 10, 64)
	switch {
	case err != nil || size <= 0 || asked.Get("filename") == "" || len(asked.Get("filename")) > stanza.MostPart || len(asked.Get("content-type")) > 128:
		c.write(stanza.Refusal(e, "bad-request", ""))
	case size > u.cfg.Files.Most:
		r := stanza.Refusal(e, "not-acceptable", fmt.Sprintf("a file here has at most %d octets", u.cfg.Files.Most))
		r.Kids[0] = r.Kids[0].With(stanza.New(nsUpload, "file-too-large").With(stanza.New(nsUpload, "max-file-size").Says(strconv.FormatInt(u.cfg.Files.Most, 10))))
		c.write(r)
	case len(u.asks) >= mostSlots:
		c.write(stanza.Refusal(e, "resource-constraint", ""))
	default:
		u.ask++
		u.asks[u.ask] = stanza.New(ns, "iq", "from", e.Get("from"), "to", e.Get("to"), "id", e.Get("id"))
		u.out.Orders = append(u.out.Orders, files.Reserve{Ask: u.ask, Name: asked.Get("filename"), MIME: asked.Get("content-type"), Size: size})
	}
}

// reserved answers the client that has asked for a slot.
func (u *uploads) reserved(ev files.Reserved) {
	e, ok := u.asks[ev.Ask]
	c := u.f.componentOf(u.cfg.Files.Domain)
	if delete(u.asks, ev.Ask); !ok || c == nil {
		return
	}
	if ev.Err != "" {
		c.write(stanza.Refusal(&e, "resource-constraint", ev.Err))
		return
	}
	c.write(stanza.New(ns, "iq", "from", e.Get("to"), "to", e.Get("from"), "id", e.Get("id"), "type", "result").
		With(stanza.New(nsUpload, "slot").With(stanza.New(nsUpload, "put", "url", ev.Put), stanza.New(nsUpload, "get", "url", ev.Get))))
}

// uploaded notes a file that a client has uploaded.
func (u *uploads) uploaded(ev files.Uploaded) {
	raw, err := hex.DecodeString(ev.Hash)
	if err != nil || len(raw) != 32 {
		return
	}
	u.trouble.Count("uploaded")
	u.keep(ev.ID, code.File{Hash: [32]byte(raw), Name: ev.Name, MIME: ev.MIME, Size: uint64(ev.Size)})
	u.remember(keyGiven+ev.ID, appendTexts(nil, string(raw), ev.Name, ev.MIME, strconv.FormatInt(ev.Size, 10)))
}

func (u *uploads) keep(id string, f code.File) {
	u.given[id] = f
	if u.order = append(u.order, id); len(u.order) > mostGiven {
		delete(u.given, u.order[0])
		u.remember(keyGiven+u.order[0], nil)
		u.order = u.order[1:]
	}
}

// file is the file of the file room here that a message offers by its address; nil: it offers none.
func (u *uploads) file(m *code.Message) *code.File {
	at := m.Get(code.URL)
	if at == "" {
		at = m.Body
	}
	rest, ok := strings.CutPrefix(at, u.cfg.Files.URL+"/")
	if id, _, _ := strings.Cut(rest, "/"); ok && u.On {
		if f, is := u.given[id]; is {
			return &f
		}
		if f := u.Of(id); f != nil { // a far site's file, which somebody here passes on
			raw, _ := hex.DecodeString(id)
			return &code.File{Hash: [32]byte(raw), Size: uint64(f.Size), Name: f.Name, MIME: f.MIME}
		}
	}
	return nil
}

// fault says why the file of a message does not cross; "": it does, or there is none.
func (u *uploads) fault(m *code.Message) string {
	if f := u.file(m); f != nil && f.Size > uint64(u.cfg.Files.Cross) {
		return fmt.Sprintf("%s has %d octets: at most %d cross (xmpp.max_crossing)", f.Name, f.Size, u.cfg.Files.Cross)
	}
	return ""
}

// offer replaces the address of a file by the file itself, for far sites.
func (u *uploads) offer(m code.Message) code.Message {
	f := u.file(&m)
	if f == nil {
		return m
	}
	at := m.Get(code.URL)
	m.Fields = append([]code.Field(nil), m.Fields...)
	if m.Drop(code.URL); at == "" || m.Body == at {
		m.Body = ""
	}
	m.File = f
	u.trouble.Count("files_offered_far")
	return m
}

// keeps is the rule that keeps a file from a site; nil: none does.
func (u *uploads) keeps(m *code.Message, from, to string, id uint16) *rule.Rule {
	if m.File != nil {
		if r := rule.Judge(u.cfg.Rules, &rule.Subject{Kind: rule.File, From: from, To: to, Mark: m.Get(code.Label), Site: id, Octets: int(m.File.Size)}); r != nil && r.Local {
			u.trouble.Count("kept_by_rule")
			return r
		}
	}
	return nil
}

// offered replaces a file by the address under which clients here get it.
func (u *uploads) offered(now time.Time, from uint16, m *code.Message) {
	f := m.File
	if f == nil {
		return
	}
	m.File = nil
	text := fmt.Sprintf("%s, %d octets: this LAN has no upload service (xmpp.upload)", f.Name, f.Size)
	if u.On {
		hash := hex.EncodeToString(f.Hash[:])
		text = u.cfg.Files.URL + "/" + hash + "/" + url.PathEscape(f.Name)
		u.Offer(now, files.File{Site: from, Hash: hash, Name: f.Name, MIME: f.MIME, Size: int64(f.Size)})
		u.remember(keyOffered+hash, appendTexts(nil, f.Name, f.MIME, strconv.FormatUint(f.Size, 10), strconv.Itoa(int(from)), strconv.FormatInt(now.UnixMilli(), 10)))
		m.Fields = append(m.Fields, code.Field{Tag: code.URL, Text: text})
	}
	if m.Body == "" {
		m.Body = text
	}
}

func (u *uploads) turn(now time.Time) {
	if u.On && now.After(u.tidy) {
		u.tidy = now.Add(time.Hour)
		u.Purge(now)
	}
}

func (u *uploads) restore(kind, key string, value []byte) error {
	if kind == files.KeyPull {
		u.RestorePull(key, value)
		return nil
	}
	texts, err := textsOf(value, map[string]int{keyGiven: 4, keyOffered: 5}[kind])
	if err != nil {
		return err
	}
	if kind == keyGiven {
		size, err := strconv.ParseUint(texts[3], 10, 63)
		if err != nil || len(texts[0]) != 32 {
			return errShort
		}
		u.keep(key, code.File{Hash: [32]byte([]byte(texts[0])), Name: texts[1], MIME: texts[2], Size: size})
		return nil
	}
	var n [3]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(texts[2+i], 10, 64); err != nil {
			return errShort
		}
	}
	if u.cfg.domainOf(uint16(n[1])) != "" {
		u.Restore(files.File{Site: uint16(n[1]), Hash: key, Name: texts[0], MIME: texts[1], Size: n[0], Heard: time.UnixMilli(n[2])})
	}
	return nil
}
