package xmpp

import (
	"strings"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/stanza"
)

// Namespaces of elements in stanzas.
const (
	ns           = stanza.Component
	nsPing       = "urn:xmpp:ping" // XEP-0199
	nsStanzas    = stanza.Stanzas
	nsInfo       = "http://jabber.org/protocol/disco#info"  // XEP-0030
	nsItems      = "http://jabber.org/protocol/disco#items" // XEP-0030
	nsReceipts   = "urn:xmpp:receipts"                      // XEP-0184
	nsMarkers    = "urn:xmpp:chat-markers:0"                // XEP-0333
	nsCorrect    = "urn:xmpp:message-correct:0"             // XEP-0308
	nsReply      = "urn:xmpp:reply:0"                       // XEP-0461
	nsReactions  = "urn:xmpp:reactions:0"                   // XEP-0444
	nsRetract    = "urn:xmpp:message-retract:1"             // XEP-0424
	nsFallback   = "urn:xmpp:fallback:0"                    // XEP-0428
	nsOOB        = "jabber:x:oob"                           // XEP-0066
	nsLabel      = "urn:xmpp:sec-label:0"                   // XEP-0258
	nsDelay      = "urn:xmpp:delay"                         // XEP-0203
	stampOfDelay = "2006-01-02T15:04:05Z"
	nsRoom       = "http://jabber.org/protocol/muc" // XEP-0045
	nsRoomUser   = nsRoom + "#user"
	nsRoomOwner  = nsRoom + "#owner"
	nsForm       = "jabber:x:data"                     // XEP-0004
	nsInvite     = "jabber:x:conference"               // XEP-0249
	nsPubSub     = "http://jabber.org/protocol/pubsub" // XEP-0060
	nsEvent      = nsPubSub + "#event"
	nsCaps       = "http://jabber.org/protocol/caps" // XEP-0115
	nsNick       = "http://jabber.org/protocol/nick" // XEP-0172
)

// said is the content of a message stanza of a client.
type said struct {
	code.Message
	ref      string // id of the message that it is about; "": none
	became   []code.Outcome
	ended    []string // ids of the messages with these outcomes
	stripped int      // elements that do not cross
}

var kindOf = map[string]code.Kind{"chat": code.Chat, "": code.Normal, "normal": code.Normal, "headline": code.Headline, "groupchat": code.Group}
var typeOf = map[code.Kind]string{code.Chat: "chat", code.Normal: "normal", code.Headline: "headline", code.Group: "groupchat"}

// about are the elements that refer to an earlier message by their attribute id.
var about = map[[2]string]code.About{{nsCorrect, "replace"}: code.Corrects, {nsReply, "reply"}: code.Replies,
	{nsReactions, "reactions"}: code.ReactsTo, {nsRetract, "retract"}: code.Retracts}

// saidIn takes a message stanza apart.
func saidIn(e *stanza.Element) (s said) {
	s.Kind = kindOf[e.Get("type")]
	add := func(tag code.Tag, text string) {
		if text != "" && len(s.Fields) < code.MaxFields {
			s.Fields = append(s.Fields, code.Field{Tag: tag, Text: text})
		}
	}
	add(code.Lang, e.Get("xml:lang"))
	body := false
	for i := range e.Kids {
		k := &e.Kids[i]
		if a := about[[2]string{k.Space, k.Name}]; a != code.Nothing && k.Get("id") != "" && s.About == code.Nothing {
			s.About, s.ref = a, k.Get("id")
			switch a {
			case code.Replies:
				add(code.ReplyTo, k.Get("to"))
			case code.ReactsTo:
				for j := range k.Kids {
					add(code.Reaction, k.Kids[j].Inside())
				}
			}
			continue
		}
		switch [2]string{k.Space, k.Name} {
		case [2]string{ns, "body"}:
			if !body {
				body, s.Body = true, k.Inside()
			}
		case [2]string{ns, "subject"}:
			add(code.Subject, k.Inside())
		case [2]string{ns, "thread"}:
			add(code.Thread, k.Inside())
			add(code.Parent, k.Get("parent"))
		case [2]string{nsReceipts, "request"}:
			s.Ask = true
		case [2]string{nsMarkers, "markable"}:
			s.Markable = true
		case [2]string{nsReceipts, "received"}:
			s.became, s.ended = append(s.became, code.Outcome{Became: code.Received}), append(s.ended, k.Get("id"))
		case [2]string{nsMarkers, "displayed"}:
			s.became, s.ended = append(s.became, code.Outcome{Became: code.Displayed}), append(s.ended, k.Get("id"))
		case [2]string{nsFallback, "fallback"}:
			if b := k.Kid(nsFallback, "body"); b != nil && b.Get("start") != "" && k.Get("for") == nsReply {
				add(code.Fallback, b.Get("start")+" "+b.Get("end"))
			}
		case [2]string{nsOOB, "x"}:
			add(code.URL, k.Kid(nsOOB, "url").Inside())
			add(code.URLText, k.Kid(nsOOB, "desc").Inside())
		case [2]string{nsLabel, "securitylabel"}:
			if d := k.Kid(nsLabel, "displaymarking"); d != nil {
				add(code.Label, d.Inside())
				add(code.LabelColors, strings.TrimSpace(d.Get("fgcolor")+" "+d.Get("bgcolor")))
			}
		case [2]string{nsDelay, "delay"}:
			add(code.Delay, k.Get("stamp"))
		case [2]string{nsInvite, "x"}:
			add(code.Invite, k.Get("jid"))
		case [2]string{nsNick, "nick"}:
			add(code.Nick, k.Inside())
		default:
			if k.Name != "" {
				s.stripped++
			}
		}
	}
	return s
}

// empty says whether nothing in it crosses.
func (s *said) empty() bool {
	return s.Body == "" && s.About == code.Nothing && s.Get(code.Subject) == "" && s.Get(code.URL) == "" && s.Get(code.Invite) == ""
}

// elementOf is the stanza of a message; ref is the id of the message that it is about.
func elementOf(m *code.Message, from, to, id, ref string) stanza.Element {
	e := stanza.New(ns, "message", "from", from, "to", to, "id", id, "type", typeOf[m.Kind], "xml:lang", m.Get(code.Lang))
	add := func(k stanza.Element) { e = e.With(k) }
	if text := m.Get(code.Subject); text != "" {
		add(stanza.New(ns, "subject").Says(text))
	}
	if m.Body != "" {
		add(stanza.New(ns, "body").Says(m.Body))
	}
	if text := m.Get(code.Thread); text != "" {
		add(stanza.New(ns, "thread", "parent", m.Get(code.Parent)).Says(text))
	}
	if m.Ask {
		add(stanza.New(nsReceipts, "request"))
	}
	if m.Markable {
		add(stanza.New(nsMarkers, "markable"))
	}
	switch m.About {
	case code.Corrects:
		add(stanza.New(nsCorrect, "replace", "id", ref))
	case code.Replies:
		add(stanza.New(nsReply, "reply", "id", ref, "to", m.Get(code.ReplyTo)))
	case code.Retracts:
		add(stanza.New(nsRetract, "retract", "id", ref))
	case code.ReactsTo:
		r := stanza.New(nsReactions, "reactions", "id", ref)
		for _, f := range m.Fields {
			if f.Tag == code.Reaction {
				r = r.With(stanza.New(nsReactions, "reaction").Says(f.Text))
			}
		}
		add(r)
	}
	if start, end, ok := strings.Cut(m.Get(code.Fallback), " "); ok {
		add(stanza.New(nsFallback, "fallback", "for", nsReply).With(stanza.New(nsFallback, "body", "start", start, "end", end)))
	}
	if url := m.Get(code.URL); url != "" {
		x := stanza.New(nsOOB, "x").With(stanza.New(nsOOB, "url").Says(url))
		if text := m.Get(code.URLText); text != "" {
			x = x.With(stanza.New(nsOOB, "desc").Says(text))
		}
		add(x)
	}
	if label := m.Get(code.Label); label != "" {
		fore, back, _ := strings.Cut(m.Get(code.LabelColors), " ")
		add(stanza.New(nsLabel, "securitylabel").With(stanza.New(nsLabel, "displaymarking", "fgcolor", fore, "bgcolor", back).Says(label)))
	}
	if at := m.Get(code.Delay); at != "" {
		add(stanza.New(nsDelay, "delay", "stamp", at))
	}
	if room := m.Get(code.Invite); room != "" {
		add(stanza.New(nsInvite, "x", "jid", room))
	}
	if nick := m.Get(code.Nick); nick != "" {
		add(stanza.New(nsNick, "nick").Says(nick))
	}
	return e
}

// conditionOf is the reason in an error stanza.
func conditionOf(e *stanza.Element) code.Reason {
	if k := e.Kid(ns, "error"); k != nil {
		for i := range k.Kids {
			if c := &k.Kids[i]; c.Space == nsStanzas && c.Name != "text" {
				return code.ReasonOf(c.Name)
			}
		}
	}
	return code.ReasonOf("undefined-condition")
}
