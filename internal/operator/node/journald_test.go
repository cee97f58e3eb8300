package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// Lines reach a socket in the format of systemd's journal, with their fields; a value with a line end is preceded by its
// length.
func TestJournald(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	check.NoError(check.Fatal(t), err)
	defer conn.Close()
	j, err := newJournald(path, slog.LevelInfo)
	check.NoError(check.Fatal(t), err)
	log := slog.New(limit(keyed{j})).With("node", "ship")
	read := func() string {
		t.Helper()
		b := make([]byte, 64<<10)
		check.NoError(check.Fatal(t), conn.SetReadDeadline(time.Now().Add(30*time.Second)))
		n, err := conn.Read(b)
		check.NoError(check.Fatal(t), err)
		return string(b[:n])
	}
	log.Debug("not at this level")
	log.Warn("a peer has started", "peer", "hq", "since last heard", 98*time.Second, "nobody_knows", time.Time{})
	check.Equal(t, "a line", read(), "MESSAGE=a peer has started\nPRIORITY=4\nSYSLOG_IDENTIFIER=aldis-gateway\nNODE=ship\n"+
		"PEER=hq\nSINCE_LAST_HEARD=1m38s\nEVENT=peer.started\n")
	log.Error("the gateway cannot run", "error", errors.Join(errors.New("one\x1b[2J"), errors.New("two")))
	got := read()
	check.Contains(t, "its priority", got, "PRIORITY=3\n")
	check.True(t, "nothing that a terminal obeys", !strings.Contains(got, "\x1b"), got)
	for key, want := range map[string]string{"peer": "PEER", "2nd": "ND", "_x": "X", "ü": "FIELD", strings.Repeat("a", 99): strings.Repeat("A", 64)} {
		check.Equal(t, "field of "+key, fieldName(key), want)
	}
	// Two lines in one value.
	var b bytes.Buffer
	b.WriteString("A\n")
	b.Write(binary.LittleEndian.AppendUint64(nil, 3))
	b.WriteString("1\n2\n")
	slog.New(&journald{level: slog.LevelInfo, mu: j.mu, conn: j.conn}).Info("x", "a", journalText("1\n2"))
	check.Contains(t, "two lines", read(), b.String())
}

// journalText is a value that forPeople leaves unchanged.
type journalText string

func (s journalText) String() string { return string(s) }
