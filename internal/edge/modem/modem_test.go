package modem

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

const patience = 20 * time.Second

// desk is a Desk and its reports.
type desk struct {
	t       *testing.T
	path    string
	refused prometheus.Counter
	reg     *prometheus.Registry
	log     bytes.Buffer
	end     func()

	mu   sync.Mutex
	told []api.Modem
}

func serve(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, path: filepath.Join(t.TempDir(), "m"), refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "x"}), reg: prometheus.NewRegistry()}
	d.reg.MustRegister(d.refused)
	ln, err := net.Listen("unix", d.path)
	check.NoError(check.Fatal(t), err)
	s := Serve(Config{Bearer: 3, Name: "sat", Half: 100 * time.Millisecond, Refused: d.refused, Log: slog.New(slog.NewTextHandler(&d.log, nil)), Tell: func(m api.Modem) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.told = append(d.told, m)
	}}, ln)
	d.end = sync.OnceFunc(s.Close)
	t.Cleanup(d.end)
	return d
}

// last is the last report, and the number of reports.
func (d *desk) last() (api.Modem, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.told) == 0 {
		return api.Modem{}, 0
	}
	return d.told[len(d.told)-1], len(d.told)
}

// speaker is a connection of a modem.
type speaker struct {
	net.Conn
	*bufio.Reader
}

func (s speaker) Read(b []byte) (int, error) { return s.Reader.Read(b) }

func (d *desk) speaker() speaker {
	d.t.Helper()
	c, err := net.Dial("unix", d.path)
	check.NoError(check.Fatal(d.t), err)
	d.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return speaker{c, bufio.NewReader(c)}
}

func (s speaker) say(line string) string {
	fmt.Fprintln(s.Conn, line)
	answer, err := s.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(answer)
}

// Each word is accepted, and its change is reported; a word that changes nothing is not reported. Other words and numbers out of bounds
// are refused, and logged in one line.
func TestWords(t *testing.T) {
	d := serve(t)
	s := d.speaker()
	for _, c := range []struct {
		line string
		ok   bool
		want api.Modem
	}{
		{"up", true, api.Modem{}},
		{"rate 2400", true, api.Modem{Bearer: 3, RateBps: 2400}},
		{"down", true, api.Modem{Bearer: 3, RateBps: 2400, Down: true}},
		{"  queue\t700 ", true, api.Modem{Bearer: 3, RateBps: 2400, Down: true, QueueOctets: 700}},
		{"up\r", true, api.Modem{Bearer: 3, RateBps: 2400}},
		{"rate 0", false, api.Modem{Bearer: 3, RateBps: 2400}},
		{"rate 1000000000000", false, api.Modem{Bearer: 3, RateBps: 2400}},
		{"rate -5", false, api.Modem{Bearer: 3, RateBps: 2400}},
		{"rate 1e3", false, api.Modem{Bearer: 3, RateBps: 2400}},
		{"rate", false, api.Modem{Bearer: 3, RateBps: 2400}},
		{"queue 1152921504606846976", false, api.Modem{Bearer: 3, RateBps: 2400}},
		{"queue 99999999999999999999999", false, api.Modem{Bearer: 3, RateBps: 2400}},
		{"up down", false, api.Modem{Bearer: 3, RateBps: 2400}},
		{"", false, api.Modem{Bearer: 3, RateBps: 2400}},
		{"GET / HTTP/1.1", false, api.Modem{Bearer: 3, RateBps: 2400}},
		{"free", true, api.Modem{Bearer: 3}},
	} {
		answer := s.say(c.line)
		check.Equal(t, fmt.Sprintf("%q is taken", c.line), answer == "ok", c.ok)
		check.True(t, fmt.Sprintf("%q has an answer", c.line), c.ok || strings.HasPrefix(answer, "no "), answer)
		got, _ := d.last()
		check.Equal(t, fmt.Sprintf("what %q comes to", c.line), got, c.want)
	}
	families, err := d.reg.Gather()
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "refused", int(families[0].GetMetric()[0].GetCounter().GetValue()), 10)
	d.end()
	check.Equal(t, "lines about it", strings.Count(d.log.String(), "cannot be taken"), 1)
}

// The reports of a modem end when it leaves, and stay if it has said "hold"; those of another modem that has spoken since are
// not affected.
func TestAModemThatGoes(t *testing.T) {
	d := serve(t)
	s, other := d.speaker(), d.speaker()
	check.Equal(t, "answer", s.say("rate 1200")+s.say("down"), "okok")
	check.Equal(t, "answer", other.say("rate 4800"), "ok")
	s.Close()
	check.Until(t, patience, "what it said is over", func() bool { m, _ := d.last(); return m == api.Modem{Bearer: 3, RateBps: 4800} })
	check.Equal(t, "answer", other.say("hold")+other.say("down"), "okok")
	other.Close()
	third := d.speaker()
	check.Equal(t, "answer", third.say("queue 5"), "ok")
	m, _ := d.last()
	check.Equal(t, "what holds", m, api.Modem{Bearer: 3, RateBps: 4800, Down: true, QueueOctets: 5})
}

// A modem that floods waits; one that sends half a line, or a long one, is disconnected; a fifth modem at a time is refused.
func TestHostileModems(t *testing.T) {
	d := serve(t)
	s := d.speaker()
	began := time.Now()
	const lines = 260
	go func() {
		for i := range lines {
			fmt.Fprintln(s.Conn, []string{"down", "up"}[i%2])
		}
	}()
	for range lines {
		answer, err := s.ReadString('\n')
		check.True(check.Fatal(t), "an answer", err == nil && answer == "ok\n", answer, err)
	}
	check.True(t, "no more than 200 at once and 100 a second", time.Since(began) > 500*time.Millisecond, time.Since(began))
	_, told := d.last()
	check.Equal(t, "told", told, lines)
	for _, text := range []string{"dow", strings.Repeat("x", 65), strings.Repeat("\x00", 100_000)} {
		h := d.speaker()
		go io.WriteString(h.Conn, text)
		rest, _ := io.ReadAll(h)
		check.Equal(t, "answer to half a line", string(rest), "")
	}
	for range 3 { // those that were disconnected may still count for a moment
		check.Until(t, patience, "an answer", func() bool { return d.speaker().say("up") == "ok" })
	}
	check.True(t, "the fifth gets no answer", d.speaker().say("up") != "ok")
	d.end()
	check.True(t, "few lines", strings.Count(d.log.String(), "\n") <= 4, d.log.String())
}
