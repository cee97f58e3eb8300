// Package modem is the socket on which the modem of a bearer, or a program that knows its state, reports: link up or down, rate,
// octets in its queue. docs/modem.md is the protocol: a line in, a line back.
//
// A modem may lie, flood or go away. This package bounds its reports: the length and the rate of lines, the values, the number of
// speakers. A speaker's reports end with its connection, unless it has said "hold".
package modem

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway/api"
	"aldis/internal/ground/due"
)

// Bounds of a modem's reports.
const (
	LeastBps    = 10
	MostBps     = 1_000_000_000
	MostQueue   = 16 << 20 // octets
	mostLine    = 64       // octets, the line feed included
	lineRate    = 100      // lines a second of a speaker, and lineBurst at once; more wait
	lineBurst   = 200
	mostSpeak   = 4 // speakers at once
	logAgain    = time.Minute
	acceptAgain = 100 * time.Millisecond
)

// Config describes the bearer whose modem may report.
type Config struct {
	Bearer  int
	Name    string // for the log
	Tell    func(api.Modem)
	Half    time.Duration      // how long a line that has begun may take, and a reply; 0: ten seconds
	Refused prometheus.Counter // counts refused lines and speakers
	Log     *slog.Logger
}

// Desk listens to the modem of a bearer.
type Desk struct {
	cfg  Config
	ln   net.Listener
	wait sync.WaitGroup

	mu     sync.Mutex
	word   api.Modem   // the report in force, without the queue
	by     [2]net.Conn // the speaker that reported the rate, and the one that reported up or down; nil: none, or its report holds
	speak  []net.Conn
	closed bool
	told   due.Seldom[string]
}

// Serve listens on a unix socket until Close.
func Serve(cfg Config, ln net.Listener) *Desk {
	if cfg.Half == 0 {
		cfg.Half = 10 * time.Second
	}
	d := &Desk{cfg: cfg, ln: ln, told: due.Seldom[string]{Every: logAgain, Most: 16}}
	d.wait.Add(1)
	go func() {
		defer d.wait.Done()
		for {
			c, err := ln.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil:
				<-time.After(acceptAgain)
			default:
				d.enter(c)
			}
		}
	}()
	return d
}

// Close closes the desk. It takes no report back: the loop has stopped.
func (d *Desk) Close() {
	d.mu.Lock()
	d.closed = true
	d.ln.Close()
	for _, c := range d.speak {
		c.Close()
	}
	d.mu.Unlock()
	d.wait.Wait()
}

func (d *Desk) enter(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.speak) == mostSpeak {
		d.refuse("too many speak at once")
		c.Close()
		return
	}
	d.speak = append(d.speak, c)
	d.wait.Add(1)
	go func() {
		defer d.wait.Done()
		d.hear(c)
		c.Close()
		d.leave(c)
	}()
}

// hear handles a speaker's lines until it leaves, leaves a line incomplete, or sends one that is too long.
func (d *Desk) hear(c net.Conn) {
	in, lines, holds := bufio.NewReaderSize(c, mostLine), due.Bucket{}, false
	for {
		c.SetReadDeadline(time.Time{})
		if _, err := in.Peek(1); err != nil {
			return
		}
		c.SetReadDeadline(time.Now().Add(d.cfg.Half))
		line, err := in.ReadSlice('\n')
		if err != nil {
			d.mu.Lock()
			d.refuse("a line that does not end")
			d.mu.Unlock()
			return
		}
		for !lines.Allow(time.Now(), lineRate, lineBurst) {
			<-time.After(time.Second / lineRate)
		}
		answer := "ok\n"
		if err := d.take(c, strings.Fields(string(line)), &holds); err != nil {
			answer = "no " + err.Error() + "\n"
		}
		c.SetWriteDeadline(time.Now().Add(d.cfg.Half))
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// errWord lists the reports that a modem may make.
var errWord = errors.New("say up, down, rate N, queue N, hold or free")

// take handles a line. holds says whether the speaker's reports stay when it leaves.
func (d *Desk) take(c net.Conn, words []string, holds *bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	next, queue, by := d.word, 0, d.by
	owner := c
	if *holds {
		owner = nil
	}
	what, err := strings.Join(words, " "), errWord
	switch {
	case what == "up" || what == "down":
		next.Down, by[1], err = what == "down", owner, nil
	case what == "hold":
		*holds, err = true, nil
		for i := range by {
			if by[i] == c {
				by[i] = nil
			}
		}
	case what == "free":
		next, by, *holds, err = api.Modem{}, [2]net.Conn{}, false, nil
	case len(words) == 2 && words[0] == "rate":
		next.RateBps, err = number(words[1], LeastBps, MostBps)
		by[0] = owner
	case len(words) == 2 && words[0] == "queue":
		queue, err = number(words[1], 0, MostQueue)
	}
	if err != nil {
		d.refuse(err.Error())
		return err
	}
	d.by = by
	d.say(next, queue)
	return nil
}

// number reads a whole number from least to most.
func number(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, errors.New("a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most) + " is wanted")
	}
	return n, nil
}

// say reports a change to the loop. The caller holds mu, so that changes are reported in order.
func (d *Desk) say(next api.Modem, queue int) {
	if next == d.word && queue == 0 {
		return
	}
	if next.Down != d.word.Down && d.told.May(time.Now(), "down "+strconv.FormatBool(next.Down)) {
		d.cfg.Log.Info("the modem of a bearer says whether it is up", "bearer", d.cfg.Name, "up", !next.Down)
	}
	d.word = next
	next.Bearer, next.QueueOctets = d.cfg.Bearer, queue
	d.cfg.Tell(next)
}

// leave drops the reports of a speaker that do not hold.
func (d *Desk) leave(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.speak = slices.DeleteFunc(d.speak, func(s net.Conn) bool { return s == c })
	next := d.word
	if d.by[0] == c {
		next.RateBps, d.by[0] = 0, nil
	}
	if d.by[1] == c {
		next.Down, d.by[1] = false, nil
	}
	if next == d.word || d.closed {
		return
	}
	if d.told.May(time.Now(), "gone") {
		d.cfg.Log.Warn("the modem of a bearer speaks no more; the profile counts", "bearer", d.cfg.Name)
	}
	d.say(next, 0)
}

// refuse counts a refused line or speaker, and logs one now and then. The caller holds mu.
func (d *Desk) refuse(why string) {
	d.cfg.Refused.Inc()
	if d.told.May(time.Now(), "refused") {
		d.cfg.Log.Warn("a modem said what cannot be taken", "bearer", d.cfg.Name, "why", why)
	}
}
