package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// pty opens a pseudo-terminal of a size.
func pty(t *testing.T, columns, rows uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// terminal is the text on a screen that understands only cursor movements and text.
type terminal struct {
	mu    sync.Mutex
	cells [][]rune
	x, y  int
	rest  []byte
	all   int // octets
}

func newTerminal(columns, rows int) *terminal {
	s := &terminal{}
	for range rows {
		s.cells = append(s.cells, []rune(strings.Repeat(" ", columns)))
	}
	return s
}

func (s *terminal) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all += len(b)
	s.rest = append(s.rest, b...)
	for len(s.rest) > 0 {
		n := s.eat()
		if n == 0 {
			break
		}
		s.rest = s.rest[n:]
	}
	return len(b), nil
}

// eat processes one character or sequence, and returns its octets; 0: it is incomplete.
func (s *terminal) eat() int {
	b := s.rest
	if b[0] == 0x1b {
		if len(b) < 2 {
			return 0
		}
		switch b[1] {
		case '[':
			for i := 2; i < len(b); i++ {
				if b[i] >= 0x40 && b[i] <= 0x7e {
					s.control(string(b[2:i]), b[i])
					return i + 1
				}
			}
			return 0
		case ']', 'P':
			for i := 2; i < len(b); i++ {
				if b[i] == 7 || b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\' {
					return i + 1
				}
			}
			return 0
		case '(', ')':
			return min(3, len(b))
		}
		return 2
	}
	if !utf8.FullRune(b) {
		return 0
	}
	r, n := utf8.DecodeRune(b)
	switch {
	case r == '\r':
		s.x = 0
	case r == '\n':
		s.y++
	case r == '\b':
		s.x = max(s.x-1, 0)
	case r >= ' ':
		if s.y < len(s.cells) && s.x < len(s.cells[s.y]) {
			s.cells[s.y][s.x] = r
		}
		s.x++
	}
	return n
}

func (s *terminal) control(args string, what byte) {
	switch what {
	case 'H':
		y, x := 1, 1
		fmt.Sscanf(args, "%d;%d", &y, &x)
		s.x, s.y = x-1, y-1
	case 'J':
		for y := range s.cells {
			for x := range s.cells[y] {
				s.cells[y][x] = ' '
			}
		}
	case 'C':
		n := 1
		fmt.Sscanf(args, "%d", &n)
		s.x += n
	}
}

func (s *terminal) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, row := range s.cells {
		b.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return b.String()
}

// TestTop: a real terminal, a real gateway and its link: top shows both views, follows events, and restores the terminal.
func TestTop(t *testing.T) {
	t.Parallel()
	_, b := two(t)
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	master, slave := pty(t, 120, 40)
	cmd := gatewayCommand("top", "-c", b.file)
	cmd.Env = append(cmd.Environ(), "TERM=xterm-256color", "COLORTERM=", "LANG=C.UTF-8")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	s := newTerminal(120, 40)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			s.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	shows := func(parts ...string) {
		t.Helper()
		check.Until(t, time.Minute, fmt.Sprintf("top shows %q", parts), func() bool {
			text := s.text()
			for _, p := range parts {
				if !strings.Contains(text, p) {
					return false
				}
			}
			return true
		})
	}
	defer func() {
		if t.Failed() {
			t.Log(s.text())
		}
		cmd.Process.Kill()
	}()
	shows("All is well: 1 site answers", "SITE", "up", "Nothing waits.", "1 Now  2 Messages")
	fmt.Fprint(master, "2")
	shows("PRECEDENCE", "None.", "Enter its life")
	fmt.Fprint(master, "1")
	shows("SITE", "sends")
	if code, _, errs := run(t, "silence", "on", "-c", b.file, "--until", "2h"); code != 0 {
		t.Fatal(errs)
	}
	shows("Radio silence", "the silence lasts until", "1h59m")
	b.stop(t, syscall.SIGKILL)
	shows("Not connected")
	b = b.testSite.start(t)
	shows("Radio silence")
	fmt.Fprint(master, "q")
	check.NoError(t, cmd.Wait())
	code, _, errs := run(t, "top", "-c", b.file)
	check.Equal(t, "exit code without a terminal", code, cli.ExitRefused)
	check.Contains(t, "what it says", errs, "needs a terminal")
}
