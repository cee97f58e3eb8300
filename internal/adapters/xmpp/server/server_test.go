package server_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/ground/due"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// world is a server with its journal, and the stanzas that its clients were sent.
type world struct {
	t       *testing.T
	s       *server.Server
	users   []string
	now     time.Time
	journal map[string][]byte
	got     map[site.ConnID][]string // stanzas, and "END" at the end of the connection
	away    []string                 // for far domains
	trouble due.Tally
	last    site.ConnID
}

func newWorld(t *testing.T, users ...string) *world {
	w := &world{t: t, users: users, now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), journal: map[string][]byte{}, got: map[site.ConnID][]string{}, trouble: due.NewTally()}
	w.restart()
	return w
}

// restart is kill -9 of the gateway: all connections are gone, the journal stays.
func (w *world) restart() {
	w.t.Helper()
	w.s = server.New(server.Config{Domain: "ship.example", Users: w.users, Reaches: []string{"hq.example"}}, &w.trouble)
	for _, key := range slices.Sorted(maps.Keys(w.journal)) {
		check.NoError(check.Fatal(w.t), w.s.Restore(key, w.journal[key]))
	}
	w.s.Start(w.now)
	w.take()
}

// take carries out the output of the server.
func (w *world) take() {
	w.s.Turn(w.now)
	out := w.s.Take()
	for _, m := range out.Remember {
		if w.journal[m.Key] = m.Value; m.Value == nil {
			delete(w.journal, m.Key)
		}
	}
	for _, o := range out.Orders {
		s := o.(server.Send)
		w.got[s.Conn] = append(w.got[s.Conn], string(s.XML))
		if s.End {
			w.got[s.Conn] = append(w.got[s.Conn], "END")
		}
	}
	for _, e := range out.Away {
		w.away = append(w.away, string(e.Append(nil, stanza.Component)))
	}
}

func (w *world) step(ev site.Event) {
	w.s.Step(w.now, ev)
	w.take()
}

// elements are the elements in a text.
func elements(t *testing.T, text string) (list []stanza.Element) {
	t.Helper()
	var s stanza.Splitter
	seen := 0
	err := s.Feed([]byte("<stream:stream xmlns='jabber:client' xmlns:stream='"+stanza.Streams+"'>"+text), func(e *stanza.Element, f *stanza.Fault) {
		if seen++; seen > 1 && f == nil {
			list = append(list, *e)
		}
	})
	check.NoError(check.Fatal(t), err)
	return list
}

func (w *world) say(c site.ConnID, format string, args ...any) {
	w.t.Helper()
	for _, e := range elements(w.t, fmt.Sprintf(format, args...)) {
		w.step(server.Said{Conn: c, Element: e})
	}
}

func (w *world) deliver(format string, args ...any) {
	w.t.Helper()
	for _, e := range elements(w.t, fmt.Sprintf(format, args...)) {
		w.s.Deliver(w.now, e.In(stanza.Client, stanza.Component))
		w.take()
	}
}

// came is a client that has proved who it is; login one that is bound and available, with stream management.
func (w *world) came(user string) site.ConnID {
	w.last++
	w.step(server.Came{Conn: w.last, User: user, Seed: fmt.Appendf(nil, "%016d", w.last)})
	return w.last
}

func (w *world) login(user, resource string) site.ConnID {
	c := w.came(user)
	w.say(c, "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>%s</resource></bind></iq><enable xmlns='urn:xmpp:sm:3' resume='true'/><presence/>", resource)
	return c
}

// heard is how many stanzas of a connection hold all of these texts.
func (w *world) heard(c site.ConnID, texts ...string) (n int) {
next:
	for _, got := range w.got[c] {
		for _, text := range texts {
			if !strings.Contains(got, text) {
				continue next
			}
		}
		n++
	}
	return n
}

func (w *world) expect(c site.ConnID, want int, texts ...string) {
	w.t.Helper()
	if got := w.heard(c, texts...); got != want {
		w.t.Errorf("connection %d has %d stanzas with %q, want %d, in\n%s", c, got, texts, want, strings.Join(w.got[c], "\n"))
	}
}

// token is the token of the client's session.
func (w *world) token(c site.ConnID) string {
	for _, got := range w.got[c] {
		if _, rest, ok := strings.Cut(got, "<enabled xmlns='urn:xmpp:sm:3' id='"); ok {
			token, _, _ := strings.Cut(rest, "'")
			return token
		}
	}
	w.t.Fatalf("no stream management in %q", w.got[c])
	return ""
}

// A session outlives its connection, and the gateway: nothing is lost, nothing comes twice, and no handled stanza is asked for again.
func TestResume(t *testing.T) {
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprint("kill ", kill), func(t *testing.T) {
			w := newWorld(t, "anna", "alma")
			anna, alma := w.login("anna", "a"), w.login("alma", "b")
			token := w.token(anna)
			for i := range 3 {
				w.say(alma, "<message to='anna@ship.example/a' type='chat' id='%d'><body>line %d</body></message>", i, i)
			}
			w.say(anna, "<message to='bert@hq.example' type='chat' id='x'><body>out</body></message><r xmlns='urn:xmpp:sm:3'/>")
			w.expect(anna, 1, "<a ", "h='2'")
			sent := 0
			for _, got := range w.got[anna] { // the client has all but the last two
				if strings.HasPrefix(got, "<message") || strings.HasPrefix(got, "<presence") || strings.HasPrefix(got, "<iq") {
					sent++
				}
			}
			sent -= 1 + 2 // the answer to the binding came before
			if kill {
				w.restart()
			} else {
				w.step(server.Gone{Conn: anna})
			}
			w.deliver("<message from='bert@hq.example/x' to='anna@ship.example' type='chat' id='late'><body>late</body></message>")
			w.now = w.now.Add(time.Minute)
			again := w.came("anna")
			w.say(again, "<resume xmlns='urn:xmpp:sm:3' previd='%s' h='%d'/>", token, sent)
			w.expect(again, 1, "<resumed ", "h='2'")
			for i, want := range []int{0, 1, 1} {
				w.expect(again, want, fmt.Sprintf("line %d", i))
			}
			w.expect(again, 1, "<body>late</body>")
			w.say(again, "<a xmlns='urn:xmpp:sm:3' h='%d'/>", sent+3)
			check.Equal(t, "letters", w.s.Stored(), 0)
		})
	}
}
