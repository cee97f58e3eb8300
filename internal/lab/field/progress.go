package field

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// stillFor is the time without a line after which the log prints the standings, so that a reader waits two seconds at the most.
const stillFor = 1500 * time.Millisecond

const lineMax = 160 // characters of a line that the next one overwrites

// progressLog prints the progress of a trial: a line for each event, and the standings of its runs when there is none. On a terminal the
// standings are one line that the next one overwrites.
type progressLog struct {
	mu     sync.Mutex
	w      io.Writer
	begin  time.Time
	last   time.Time // time of the last line
	over   bool      // w is a terminal
	open   bool      // the cursor is behind a line that will be overwritten
	voices []*voice
}

// voice is one run in the log.
type voice struct {
	log     *progressLog
	name    string
	doing   string
	figures func() string // the standing; nil: the last line still holds
	fallen  bool
}

// newProgress begins a log. The caller calls end to stop its goroutine.
func newProgress(w io.Writer) (l *progressLog, end func()) {
	now := time.Now()
	l = &progressLog{w: w, begin: now, last: now, over: terminal(w)}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		t := time.NewTicker(stillFor / 6)
		defer t.Stop()
		for {
			select {
			case now := <-t.C:
				l.beat(now)
			case <-stop:
				return
			}
		}
	}()
	return l, sync.OnceFunc(func() {
		close(stop)
		<-stopped
		l.mu.Lock()
		defer l.mu.Unlock()
		l.clear()
	})
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// voice adds a run.
func (l *progressLog) voice(name string) *voice {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := &voice{log: l, name: name, doing: "waits for its turn"}
	l.voices = append(l.voices, v)
	return v
}

// logf writes a line.
func (v *voice) logf(format string, args ...any) {
	l := v.log
	l.mu.Lock()
	defer l.mu.Unlock()
	v.doing = fmt.Sprintf(format, args...)
	l.last = time.Now()
	l.clear()
	fmt.Fprintf(l.w, "%5.0f s  %-8s %s\n", l.last.Sub(l.begin).Seconds(), v.name, v.doing)
}

// stands gives the log a function that returns the standing; nil: the last line still holds. The log calls it from its own goroutine.
func (v *voice) stands(figures func() string) {
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	v.figures = figures
}

// falls marks the run as over: the log prints no more of it.
func (v *voice) falls() {
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	v.fallen = true
}

// clear removes a line that is to be overwritten.
func (l *progressLog) clear() {
	if l.open {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.open = false
	}
}

// beat prints the standings when no line was printed for a while.
func (l *progressLog) beat(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.last) < stillFor {
		return
	}
	var parts []string
	for _, v := range l.voices {
		switch {
		case v.fallen:
		case v.figures != nil:
			parts = append(parts, v.name+": "+v.figures())
		default:
			parts = append(parts, v.name+": "+v.doing)
		}
	}
	if len(parts) == 0 {
		return
	}
	l.last = now
	line := fmt.Sprintf("%5.0f s  %s", now.Sub(l.begin).Seconds(), strings.Join(parts, " | "))
	if !l.over {
		fmt.Fprintln(l.w, line)
		return
	}
	if s, err := unix.IoctlGetWinsize(int(l.w.(*os.File).Fd()), unix.TIOCGWINSZ); err == nil && s.Col > 1 {
		line = cut(line, int(s.Col)-1)
	}
	fmt.Fprintf(l.w, "\r\x1b[K%s", cut(line, lineMax))
	l.open = true
}

// cut shortens a line to so many characters.
func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}
