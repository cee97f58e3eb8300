package primer

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
)

//go:embed english.txt
var englishText string

//go:embed prose.txt
var proseText string

// ProseLines are sentences of this project's documents: plain English of another kind.
var ProseLines = strings.Split(strings.TrimSpace(proseText), "\n")

// EnglishLines are sentences of our own, as people write them to each other in the field.
var EnglishLines = strings.Split(strings.TrimSpace(englishText), "\n")

// Sentence is what somebody says.
func (m *Field) Sentence() string {
	switch m.Rand.IntN(10) {
	case 0, 1, 2:
		return m.composed()
	case 3:
		return EnglishLines[m.Rand.IntN(len(EnglishLines))] + " " + m.composed()
	}
	return EnglishLines[m.Rand.IntN(len(EnglishLines))]
}

// composed puts a sentence together.
func (m *Field) composed() string {
	number := func() string { return fmt.Sprint(1 + m.Rand.IntN(40)) }
	hour := func() string { return fmt.Sprintf("%02d%02d", m.Rand.IntN(24), m.Rand.IntN(4)*15) }
	thing := func() string {
		return m.Pick([]string{"the boat", "a small boat", "the vessel", "a fishing vessel", "the patrol", "one vehicle", "two trucks", "a helicopter", "the convoy", "the team", "the tanker", "an unknown contact", "the pilot", "a swimmer", "the drone", "a group of people", "the supply truck", "the ambulance"})
	}
	where := func() string {
		return m.Pick([]string{"at the gate", "near the bridge", "north of the village", "south of the river", "by the pier", "at the checkpoint", "off the cape", "in the harbour", "on the beach", "along the coast", "west of the island", "at the crossing", "in sector " + number(), "at grid " + m.digits(8), "in " + m.Pick(m.Words.Places), "two miles from the entrance"})
	}
	when := func() string {
		return m.Pick([]string{"at " + hour(), "since " + hour(), "by " + hour(), "in " + number() + " minutes", "in an hour", "before dark", "this morning", "tonight", "tomorrow", "now", "at first light", "about " + number() + " minutes ago"})
	}
	does := func() string {
		return m.Pick([]string{"is moving", "has stopped", "is waiting", "has arrived", "was seen", "was lost", "is heading north", "is heading south", "is coming closer", "is leaving", "does not answer", "asks for help", "needs fuel", "is on station", "has been delayed", "reports no contact", "is clear", "will be there"})
	}
	switch m.Rand.IntN(9) {
	case 0:
		return fmt.Sprintf("%s %s %s %s.", upperFirst(thing()), does(), where(), when())
	case 1:
		return fmt.Sprintf("%s %s %s.", upperFirst(thing()), does(), where())
	case 2:
		return fmt.Sprintf("%s, this is %s, %s %s %s, over.", m.call(), m.call(), thing(), does(), where())
	case 3:
		return fmt.Sprintf("Contact bearing %03d, range %s miles, course %03d, speed %s knots.", m.Rand.IntN(360), number(), m.Rand.IntN(360), number())
	case 4:
		return fmt.Sprintf("Request %s %s %s.", m.Pick([]string{"fuel", "water", "food", "a doctor", "spare parts", "pickup", "support", "a tow", "an update", "the weather", "rounds", "permission to enter"}), where(), when())
	case 5:
		return fmt.Sprintf("We are %s and %s %s.", where(), m.Pick([]string{"wait for", "can see", "cannot see", "have lost", "will meet", "are looking for"}), thing())
	case 6:
		return fmt.Sprintf("Please send %s %s to %s.", m.Pick([]string{"a picture", "your position", "the report", "the new chart", "your status", "the list", "two men", "the grid"}), when(), m.call())
	case 7:
		return fmt.Sprintf("%s %s %s, %s %s.", upperFirst(thing()), does(), when(), m.Pick([]string{"stay", "hold", "meet", "wait", "keep watch"}), where())
	}
	return fmt.Sprintf("ETA %s, %s persons on board, %s percent fuel.", hour(), number(), number())
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Chat is what people write to each other, a line or two.
func (m *Field) Chat() func() []byte {
	shape := m.Rand.IntN(8)
	name := m.call()
	return func() []byte {
		s := m.Sentence()
		switch shape {
		case 0:
			s = name + ": " + s
		case 1:
			s = m.clock().Format("15:04") + " " + s
		case 2:
			s += "\n" + m.Sentence()
		}
		return []byte(s)
	}
}

// NFFI is a track of NATO's friendly force information.
func (m *Field) NFFI() func() []byte {
	write, at, p := m.layout(), m.clock(), m.place()
	p.places = 4 + m.Rand.IntN(3)
	country := m.Pick([]string{"NOR", "DEU", "GBR", "USA", "FRA", "POL", "DNK", "NLD", "ESP", "ITA", "CAN", "EST"})
	system, id, name := m.call(), m.digits(3+m.Rand.IntN(3)), m.call()
	symbol := m.Pick([]string{"SFGPUCI----D---", "SFGPUCA----E---", "SFGPUCF----F---", "SFGPUCR----C---", "SFGPU------A---", "SFGPEVC---------", "SFSPCLFF-------", "SFAPMH---------", "SFGPUCIZ---D---", "SFGPUSM----E---"})
	track, message := "track", "NFFIMessage"
	attr := m.Pick([]string{` xmlns="urn:nato:nffi" version="1.3"`, ` xmlns="urn:nato:nffi"`, ` xmlns="http://www.nato.int/nffi/1.3"`, ` version="1.3" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns="urn:nato:nffi"`})
	shape := m.Rand.IntN(4)
	return func() []byte {
		at = at.Add(m.seconds(10, 120).Round(time.Second))
		source := tree("trackSource", tree("sourceSystem", leaf("country", country), leaf("system", system), leaf("subsystem", fmt.Sprint(1+m.Rand.IntN(3)))), leaf("transponderId", id))
		var records []node
		for range 1 + shape/3*m.Rand.IntN(3) {
			lat, lon := p.move(m)
			position := tree("positionalData", source, leaf("dateTime", at.Format([]string{"20060102150405", "20060102150405", isoSeconds, isoMillis}[shape])),
				tree("coordinates", leaf("latitude", lat), leaf("longitude", lon), leaf("altitude", m.upTo(400, m.Rand.IntN(2)))),
				tree("velocity", leaf("bearing", fmt.Sprint(m.Rand.IntN(360))), leaf("speed", m.upTo(25, 1))), leaf("reliability", m.Pick([]string{"A1", "A2", "B2", "C3", "F6"})))
			identity := tree("identificationData", leaf("unitSymbol", symbol), leaf("unitShortName", name))
			kids := []node{position, identity}
			if m.Rand.IntN(3) > 0 {
				kids = append(kids, tree("operStatusData", leaf("footprint", fmt.Sprint(m.Rand.IntN(20)*10)), leaf("strength", fmt.Sprint(m.Rand.IntN(100))), leaf("status", m.Pick([]string{"OPR", "NOP", "SOPS", "NKN"}))))
				if m.Rand.IntN(2) == 0 {
					kids[2].kids = append(kids[2].kids[:1], kids[2].kids[2])
				}
			}
			if m.Rand.IntN(4) == 0 {
				kids = append(kids, tree("deviceSpecificData", leaf("freeText", m.Sentence())))
			}
			records = append(records, node{name: track, kids: kids})
		}
		return write(node{name: message, attr: attr, kids: records})
	}
}

func (m *Field) host() string {
	n := strings.ToLower(strings.Fields(m.invent())[0])
	return m.Pick([]string{"", "mail.", "chat.", "xmpp.", "im.", "ops."}) + n + "." + m.Pick([]string{"mil", "example", "net", "org", "local", "int", "no", "lan"})
}

func (m *Field) nick() string {
	s := strings.ToLower(strings.ReplaceAll(m.call(), " ", ""))
	if m.Rand.IntN(3) == 0 {
		s = strings.ToLower(strings.ReplaceAll(m.person(), " ", "."))
	}
	return s
}

// XMPP is a conversation in stanzas (RFC 6121), with what clients add.
func (m *Field) XMPP() func() []byte {
	from, to, host := m.nick(), m.nick(), m.host()
	client := m.Pick([]string{"gajim.", "Conversations.", "dino.", "psi-", "Pidgin", "Swift-", "mobile-", ""}) + m.lower(4+m.Rand.IntN(8))
	at, room, shape := m.clock(), m.Rand.IntN(4) == 0, m.Rand.IntN(6)
	thread, typ := m.uuid(), "chat"
	if room {
		to, typ = to+"@conference."+host, "groupchat"
	} else {
		to += "@" + host
	}
	ns := m.Pick([]string{` xmlns="jabber:client"`, "", ""})
	single := m.Rand.IntN(4) == 0
	return func() []byte {
		at = at.Add(m.seconds(5, 200))
		id := m.uuid()
		if shape == 1 {
			id = m.lower(5 + m.Rand.IntN(8))
		}
		var s string
		jid := from + "@" + host + "/" + client
		switch k := m.Rand.IntN(12); {
		case k == 0:
			s = fmt.Sprintf(`<presence%s from="%s" to="%s"><show>%s</show><status>%s</status><c xmlns="http://jabber.org/protocol/caps" hash="sha-1" node="https://%s" ver="%s="/></presence>`, ns, jid, to, m.Pick([]string{"away", "dnd", "xa", "chat"}), escape(m.Sentence()), m.host(), m.lower(27))
		case k == 1:
			s = fmt.Sprintf(`<iq%s from="%s" to="%s" type="%s" id="%s"><ping xmlns="urn:xmpp:ping"/></iq>`, ns, jid, host, m.Pick([]string{"get", "set", "result"}), id)
		case k == 2:
			s = fmt.Sprintf(`<message%s from="%s" to="%s" id="%s"><received xmlns="urn:xmpp:receipts" id="%s"/></message>`, ns, jid, to, id, m.uuid())
		default:
			attrs := []string{fmt.Sprintf(`from="%s"`, jid), fmt.Sprintf(`to="%s"`, to), fmt.Sprintf(`type="%s"`, typ), fmt.Sprintf(`id="%s"`, id)}
			switch shape {
			case 1, 2:
				attrs = []string{attrs[1], attrs[3], attrs[2], attrs[0]}
			case 3:
				attrs = []string{attrs[2], attrs[1], attrs[3], attrs[0]}
			}
			extras := []string{`<active xmlns="http://jabber.org/protocol/chatstates"/>`, `<request xmlns="urn:xmpp:receipts"/>`, fmt.Sprintf(`<origin-id xmlns="urn:xmpp:sid:0" id="%s"/>`, id), `<markable xmlns="urn:xmpp:chat-markers:0"/>`,
				fmt.Sprintf(`<delay xmlns="urn:xmpp:delay" from="%s" stamp="%s"/>`, host, at.Format(isoMillis)), fmt.Sprintf(`<stanza-id xmlns="urn:xmpp:sid:0" id="%s" by="%s"/>`, m.digits(16), to), `<store xmlns="urn:xmpp:hints"/>`}
			var tail string
			for i, e := range extras {
				if (i < 3 && m.Rand.IntN(3) > 0) || m.Rand.IntN(6) == 0 {
					tail += e
				}
			}
			th := fmt.Sprintf("<thread>%s</thread>", thread)
			if m.Rand.IntN(2) == 0 {
				th = ""
			}
			s = fmt.Sprintf(`<message%s %s><body>%s</body>%s%s</message>`, ns, strings.Join(attrs, " "), escape(m.Sentence()), th, tail)
		}
		if single && !strings.Contains(s, "'") {
			s = strings.ReplaceAll(s, `"`, "'")
		}
		return []byte(s)
	}
}

// Mail is a message with its headers (RFC 5322).
func (m *Field) Mail() func() []byte {
	a, b, host, other := m.person(), m.person(), m.host(), m.host()
	address := func(name, host string) string {
		n := strings.ToLower(strings.ReplaceAll(name, " ", []string{".", "_", ""}[len(name)%3]))
		return n + "@" + host
	}
	if m.Rand.IntN(2) == 0 {
		other = host
	}
	subject, at, shape, end := strings.TrimRight(m.Sentence(), "."), m.clock(), m.Rand.IntN(4), "\r\n"
	if m.Rand.IntN(6) == 0 {
		end = "\n"
	}
	zone := m.Pick([]string{"+0000", "+0100", "+0200", "-0500", "+0000"})
	agent := m.Pick([]string{"User-Agent: Mozilla Thunderbird", "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:" + fmt.Sprint(60+m.Rand.IntN(70)) + ".0) Thunderbird/" + fmt.Sprint(60+m.Rand.IntN(70)) + "." + fmt.Sprint(m.Rand.IntN(9)), "X-Mailer: Microsoft Outlook 16.0", "X-Mailer: Apple Mail (2.3445)", "User-Agent: K-9 Mail for Android"})
	return func() []byte {
		at = at.Add(m.seconds(300, 7200))
		date := at.Format("Mon, 02 Jan 2006 15:04:05 ") + zone
		from, to := address(a, host), address(b, other)
		id := m.Pick([]string{m.uuid(), m.lower(16), at.Format("20060102150405") + "." + m.digits(5), strings.ToUpper(m.lower(12))})
		received := "Received: from " + m.Pick([]string{host, "[" + hostAddress(m) + "]", "localhost (localhost [127.0.0.1])", host + " (" + host + " [" + hostAddress(m) + "])"}) + end + "\tby " + other + m.Pick([]string{" with ESMTPSA id ", " (Postfix) with ESMTP id ", " with ESMTP id ", " with LMTP id "}) + strings.ToUpper(m.lower(10)) + end + "\tfor <" + to + ">; " + date
		if shape == 1 {
			received = strings.ReplaceAll(received, end+"\tby", " by")
		}
		re := m.Pick([]string{"", "Re: ", "Re: ", "Fwd: ", "FW: "})
		h := []string{"Return-Path: <" + from + ">", received, "Date: " + date, "From: " + a + " <" + from + ">", "To: " + b + " <" + to + ">", "Subject: " + re + subject, "Message-ID: <" + id + "@" + host + ">"}
		if shape == 2 {
			h = []string{"From: " + a + " <" + from + ">", "To: <" + to + ">", "Subject: " + re + subject, "Date: " + date, "Message-ID: <" + id + "@" + host + ">"}
		}
		if strings.HasPrefix(re, "Re") && m.Rand.IntN(2) == 0 {
			old := "<" + m.uuid() + "@" + other + ">"
			h = append(h, "In-Reply-To: "+old, "References: "+old)
		}
		if shape == 3 {
			h = append(h, "Cc: "+m.person()+" <"+address(m.person(), other)+">", "X-Priority: "+fmt.Sprint(1+m.Rand.IntN(5)))
		}
		mime := []string{"MIME-Version: 1.0", "Content-Type: text/plain; charset=" + m.Pick([]string{"UTF-8; format=flowed", "UTF-8", "utf-8", "us-ascii", "\"UTF-8\"", "ISO-8859-1"}), "Content-Transfer-Encoding: " + m.Pick([]string{"7bit", "8bit", "quoted-printable"})}
		if m.Rand.IntN(2) == 0 {
			mime = append(mime, "Content-Language: "+m.Pick([]string{"en-US", "en-GB"}))
		}
		if shape&1 == 0 {
			h = append(append(h, agent), mime...)
		} else {
			h = append(append(h, mime...), agent)
		}
		text := strings.Join(h, end) + end + end
		text += m.Pick([]string{"Hello " + strings.Fields(b)[0], "Hi " + strings.Fields(b)[0], "Dear " + b, "Sir", "All", strings.Fields(b)[0]}) + "," + end + end
		for i := range 2 + m.Rand.IntN(6) {
			text += m.Sentence() + m.Pick([]string{" ", " ", end, end + end})
			if i > 4 && m.Rand.IntN(2) == 0 {
				text += end
			}
		}
		text += end + m.Pick([]string{"Regards", "Best regards", "Kind regards", "Thanks", "V/r", "Cheers", "Best wishes", "Yours sincerely"}) + m.Pick([]string{"", ","}) + end + m.Pick([]string{a, strings.Fields(a)[0], a + end + m.Pick(m.Words.Titles)}) + end
		return []byte(text)
	}
}
