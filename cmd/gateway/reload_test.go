package main

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// TestReload: a running gateway takes rules, names, token and log level from its file without a restart, and nothing at
// all when the file has a mistake or wants what it cannot take.
func TestReload(t *testing.T) {
	_, b := two(t)
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	boot := b.status(t).BootNumber
	first, err := os.ReadFile(b.file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(b.file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := net.Dial("tcp", b.lan) // of a peer that says nothing yet
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reload := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := run(t, append([]string{"reload", "-c", b.file}, args...)...)
		check.Equal(t, "exit code of reload, which says "+out+errs, code, want)
		return out + errs
	}
	filters := func() int { return len(b.status(t).Filters) }

	check.Contains(t, "the answer", reload(exitGood), "nothing is different")

	if err := os.WriteFile(filepath.Join(b.dir, "token"), []byte("0123456789abcdef0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rules := strings.Replace(string(first), "[http]\n", "[http]\nnames = \"ship.example\"\ntoken_file = \"token\"\n", 1) +
		"[log]\nlevel = \"debug\"\n[[filter]]\naction = \"deny\"\nname = \"secret*\"\n[[message]]\nprecedence = \"flash\"\n"
	write(rules)
	for _, args := range [][]string{{"--dry-run"}, {"--dry-run", "--json"}} {
		said := reload(exitGood, args...)
		check.Contains(t, "the answer", said, "[[filter]]")
		check.Equal(t, "filters after a dry run", filters(), 0)
	}
	said := reload(exitGood)
	wants(t, said, "[[filter]]: 1 rule is new", "[[message]]: 1 rule is new", "http.names: ship.example is new", "log.level: DEBUG", "in force")
	check.Equal(t, "filters", filters(), 1)
	asked := func(host, token, body string) int {
		t.Helper()
		req, err := http.NewRequest("POST", "http://"+b.http+"/reload", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	check.Equal(t, "with the new token, under the new name", asked("ship.example", "0123456789abcdef0123", `{"dry_run":true}`), 200)
	check.Equal(t, "with another token", asked("ship.example", "0123456789abcdef0124", `{}`), 403)
	check.Equal(t, "under another name", asked("evil.example", "0123456789abcdef0123", `{}`), 421)
	check.Equal(t, "with another body", asked("ship.example", "0123456789abcdef0123", `{"file":"/etc/passwd"}`), 400)

	// What needs a restart keeps all the rest from counting; so does a mistake.
	write(strings.Replace(rules, "name = \"secret*\"", "name = \"other*\"", 1) + "[[filter]]\naction = \"local\"\n[[link.peer]]\nid = 77\n")
	said = reload(exitRefused)
	wants(t, said, "[[link.peer]] 77", "needs a restart", "nothing was changed")
	wants(t, reload(exitRefused, "--dry-run"), "[[link.peer]] 77", "[[filter]]", "restart the gateway")
	write(strings.Replace(rules, "action = \"deny\"", "action = \"denny\"", 1))
	wants(t, reload(exitRefused), "denny", "nothing was changed")
	check.Equal(t, "filters after what was refused", filters(), 1)

	// SIGHUP says the same in the log.
	hup := func(says string) {
		t.Helper()
		if err := b.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		b.until(t, "the log has: "+says, func() bool { return strings.Contains(b.logged(), says) })
	}
	hup("the configuration was not read again")
	write(string(first))
	hup("the configuration was read again")
	check.Equal(t, "filters without rules", filters(), 0)
	hup("nothing is different")

	conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1<<10)); err != nil {
		var late net.Error
		check.True(t, "the connection is still there", errors.As(err, &late) && late.Timeout(), err)
	}
	check.Equal(t, "the start", b.status(t).BootNumber, boot)
	var report struct{ Reloads int }
	_, text := b.get("/status")
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "reloads that changed rules", report.Reloads, 2)
	check.Equal(t, "exit code of reload with an argument", runCode(t, "reload", "now"), exitUsage)
}

func runCode(t *testing.T, args ...string) int {
	t.Helper()
	code, _, _ := run(t, args...)
	return code
}
