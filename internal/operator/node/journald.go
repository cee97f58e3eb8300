package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
)

// journaldSocket is the socket on which systemd's journal accepts lines with fields (systemd's "Native Journal Protocol").
const journaldSocket = "/run/systemd/journal/socket"

// journaldMost is the most octets of one value: a datagram holds some 200 kB.
const journaldMost = 16 << 10

// journald sends each line to systemd's journal, with its attributes as fields: EVENT=peer.started, PEER=hq. journalctl
// EVENT=peer.started finds it.
type journald struct {
	level slog.Leveler
	mu    *sync.Mutex
	conn  net.Conn
	with  []slog.Attr
}

// newJournald connects to the journal.
func newJournald(socket string, level slog.Leveler) (*journald, error) {
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return nil, err
	}
	return &journald{level: level, mu: &sync.Mutex{}, conn: conn}, nil
}

// Enabled says whether the level is logged.
func (j *journald) Enabled(_ context.Context, l slog.Level) bool { return l >= j.level.Level() }

// WithAttrs returns the handler for records that have these attributes too.
func (j *journald) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *j
	with.with = append(append([]slog.Attr(nil), j.with...), attrs...)
	return &with
}

// WithGroup does nothing: the gateway's lines have no groups.
func (j *journald) WithGroup(string) slog.Handler { return j }

// Handle sends a record to journald.
func (j *journald) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	field := func(name, value string) {
		if len(value) > journaldMost {
			value = value[:journaldMost]
		}
		b.WriteString(name)
		if !strings.Contains(value, "\n") {
			b.WriteString("=" + value + "\n")
			return
		}
		b.WriteString("\n")
		b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(value))))
		b.WriteString(value + "\n")
	}
	field("MESSAGE", r.Message)
	field("PRIORITY", strconv.Itoa(syslogPriority(r.Level)))
	field("SYSLOG_IDENTIFIER", "aldis-gateway")
	attr := func(a slog.Attr) bool {
		a = forPeople(nil, a)
		if a.Key != "" {
			field(fieldName(a.Key), a.Value.String())
		}
		return true
	}
	for _, a := range j.with {
		attr(a)
	}
	r.Attrs(attr)
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err := j.conn.Write(b.Bytes())
	return err
}

// syslogPriority is the priority of a level: 3 error, 4 warning, 6 info, 7 debug.
func syslogPriority(l slog.Level) int {
	switch {
	case l >= slog.LevelError:
		return 3
	case l >= slog.LevelWarn:
		return 4
	case l >= slog.LevelInfo:
		return 6
	}
	return 7
}

// fieldName is a key in the form that the journal accepts: capitals, digits and underscores, beginning with a letter, 64 at
// most.
func fieldName(key string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
	name = strings.TrimLeft(name, "_0123456789")
	if name == "" {
		name = "FIELD"
	}
	return name[:min(len(name), 64)]
}
