package jxta

import (
	"strings"
	"unicode/utf8"
)

// MaxWelcome bounds a welcome line, CR LF included (wire 2.1).
const MaxWelcome = 4096

// AppendWelcome appends the line with its CR LF. An empty Version means 1.1.
func AppendWelcome(b []byte, w Welcome) ([]byte, error) {
	for _, f := range []string{w.Dest, w.Public, w.Peer} {
		if f == "" || strings.ContainsAny(f, " \t\r\n") {
			return b, fail("welcome", "field", ErrSyntax)
		}
	}
	flag := " 0 "
	if w.NoPropagate {
		flag = " 1 "
	}
	start := len(b)
	b = append(b, "JXTAHELLO "+w.Dest+" "+w.Public+" "+w.Peer+flag...)
	switch w.Version {
	case "", "1.1":
		b = append(b, "1.1\r\n"...)
	case "3.0":
		b = append(b, '0'+min(w.MsgVersion, 9))
		b = append(b, " 3.0\r\n"...)
	default:
		return b[:start], fail("welcome", "version", ErrMismatch)
	}
	if len(b)-start > MaxWelcome {
		return b[:start], fail("welcome", "line", ErrTooLong)
	}
	return b, nil
}

// ParseWelcome reads a line, with or without its line end. Versions other than 1.1 and 3.0 are refused: no peer has
// been seen to use them.
func ParseWelcome(line []byte) (Welcome, error) {
	if len(line) > MaxWelcome {
		return Welcome{}, fail("welcome", "line", ErrTooLong)
	}
	s := strings.TrimRight(string(line), "\r\n")
	if !utf8.ValidString(s) {
		return Welcome{}, fail("welcome", "line", ErrSyntax)
	}
	f := strings.Fields(s)
	if len(f) < 5 || f[0] != "JXTAHELLO" {
		return Welcome{}, fail("welcome", "JXTAHELLO", ErrMismatch)
	}
	w := Welcome{Dest: f[1], Public: f[2], Peer: f[3], Version: f[len(f)-1]}
	if _, err := ParseURN(w.Peer); err != nil {
		return Welcome{}, err
	}
	switch {
	case w.Version == "1.1" && len(f) == 6:
	case w.Version == "3.0" && len(f) == 7:
		if len(f[5]) != 1 || f[5][0] < '0' || f[5][0] > '9' {
			return Welcome{}, fail("welcome", "msgversion", ErrMismatch)
		}
		w.MsgVersion = f[5][0] - '0'
	default:
		return Welcome{}, fail("welcome", "version", ErrMismatch)
	}
	switch f[4] {
	case "0":
	case "1":
		w.NoPropagate = true
	default:
		return Welcome{}, fail("welcome", "noprop", ErrMismatch)
	}
	return w, nil
}
