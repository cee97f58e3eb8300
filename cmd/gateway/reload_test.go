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

	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// TestReload: a running gateway applies rules, names, token and log level from its file without a restart, and nothing at all
// if the file has a mistake or a change that needs a restart.
func TestReload(t *testing.T) {
	_, b := two(t)
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	incarnation := b.status(t).IncarnationNumber
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

	check.Contains(t, "the answer", reload(cli.ExitGood), "nothing is different")

	if err := os.WriteFile(filepath.Join(b.dir, "token"), []byte("0123456789abcdef0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rules := strings.Replace(string(first), "[http]\n", "[http]\nnames = \"ship.example\"\ntoken_file = \"token\"\n", 1)
	rules = strings.Replace(rules, "[lan]\n", "[lan]\nview = \"ask\"\n", 1) +
		"[log]\nlevel = \"debug\"\n[[filter]]\naction = \"deny\"\nname = \"secret*\"\n[[message]]\nprecedence = \"flash\"\n"
	write(rules)
	for _, args := range [][]string{{"--dry-run"}, {"--dry-run", "--json"}} {
		said := reload(cli.ExitGood, args...)
		check.Contains(t, "the answer", said, "[[filter]]")
		check.Equal(t, "filters after a dry run", filters(), 0)
	}
	said := reload(cli.ExitGood)
	wants(t, said, "[[filter]]: 1 rule is new", "[[message]]: 1 rule is new", "lan.view: ask, was complete", "http.names: ship.example is new", "log.level: debug, was info", "in force")
	check.Equal(t, "filters", filters(), 1)
	check.Equal(t, "the view", b.status(t).LAN.View, jxtabridge.Ask)
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

	// A change that needs a restart keeps all others out of force; so does a mistake.
	write(strings.Replace(rules, "name = \"secret*\"", "name = \"other*\"", 1) + "[[filter]]\naction = \"local\"\n[delivery]\nwait = \"2h\"\n")
	said = reload(cli.ExitRefused)
	wants(t, said, "delivery.wait", "needs a restart", "nothing was changed")
	wants(t, reload(cli.ExitRefused, "--dry-run"), "delivery.wait", "[[filter]]", "restart the gateway")
	write(strings.Replace(rules, "action = \"deny\"", "action = \"denny\"", 1))
	wants(t, reload(cli.ExitRefused), "denny", "nothing was changed")
	check.Equal(t, "filters after what was refused", filters(), 1)

	// SIGHUP reports the same in the log.
	hup := func(says string) {
		t.Helper()
		said := strings.Count(b.logged(), says)
		if err := b.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		b.until(t, "the log has once more: "+says, func() bool { return strings.Count(b.logged(), says) > said })
	}
	hup("the reload failed; the gateway keeps its configuration")
	write(string(first))
	hup("the configuration was reloaded")
	check.Equal(t, "filters without rules", filters(), 0)
	hup("nothing has changed")

	conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1<<10)); err != nil {
		var late net.Error
		check.True(t, "the connection is still there", errors.As(err, &late) && late.Timeout(), err)
	}
	check.Equal(t, "the start", b.status(t).IncarnationNumber, incarnation)
	var report struct{ Reloads int }
	_, text := b.get("/status")
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "reloads that changed rules", report.Reloads, 2)
	check.Equal(t, "exit code of reload with an argument", runCode(t, "reload", "now"), cli.ExitUsage)
}

func runCode(t *testing.T, args ...string) int {
	t.Helper()
	code, _, _ := run(t, args...)
	return code
}

// TestReloadOfPeersUnderLoad: while messages flow, a third gateway is added, the second gets another address and name, and
// keepalive changes. No connection is closed, no message is lost and none comes twice. The third is removed, added and removed
// again. If it was missing at a start, the journal still has its records, and it comes back with a restart.
func TestReloadOfPeersUnderLoad(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	third := newSite(t, 3, f.b.key())
	third.write(t, filepath.Join(third.dir, "data"), "2 "+f.b.link)
	c := third.start(t)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				f.say()
			}
		}
	}()
	incarnation := f.b.status(t).IncarnationNumber
	reload := func(want int, words ...string) {
		t.Helper()
		code, out, errs := run(t, "reload", "-c", f.b.file)
		check.Equal(t, "exit code of reload, which says "+out+errs, code, want)
		wants(t, out+errs, words...)
	}
	peers := func() int { return len(f.b.status(t).Peers) }
	f.b.more = "keepalive = \"20s\""
	f.b.write(t, filepath.Join(f.b.dir, "data"), "1 "+f.a.link, "3")
	reload(cli.ExitGood, `[[link.peer]] 3: "node3" at no address is new`, "link.keepalive: 20s, was 0s", "in force")
	check.Equal(t, "peers", peers(), 2)
	f.b.until(t, "the new gateway is heard", func() bool { return f.b.status(t).Peers[1].Link == "up" })
	c.until(t, "and hears this one", func() bool { return c.peer(t).Link == "up" })
	for range 3 { // forth and back, while messages flow
		before := len(f.count())
		text, err := os.ReadFile(f.b.file)
		if err != nil {
			t.Fatal(err)
		}
		other := strings.NewReplacer(`name = "node1"`, `name = "hq"`, f.a.link, strings.Replace(f.a.link, "127.0.0.1", "127.0.0.7", 1)).Replace(string(text))
		if err := os.WriteFile(f.b.file, []byte(other), 0o644); err != nil {
			t.Fatal(err)
		}
		reload(cli.ExitGood, `[[link.peer]] 1: "hq" at 127.0.0.7`, "in force")
		check.Equal(t, "name", f.b.status(t).Peers[0].Name, "hq")
		if err := os.WriteFile(f.b.file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		reload(cli.ExitGood, `"node1" at `+f.a.link, "in force")
		f.b.until(t, "messages arrive", func() bool { return len(f.count()) > before+10 })
	}
	close(stop)
	<-stopped
	f.b.until(t, "nothing waits", func() bool {
		p := f.b.status(t).Peers[0]
		return p.Waiting+p.UnderWay == 0 && int(p.Accepted) == f.said
	})
	f.b.until(t, "all have arrived", func() bool { return len(f.count()) == f.said })
	for text, n := range f.count() {
		check.Equal(t, "times that "+text+" was heard", n, 1)
	}
	t.Logf("%d messages said, all heard once", f.said)
	check.Equal(t, "the start", f.b.status(t).IncarnationNumber, incarnation)
	check.True(t, "no connection was closed", f.errored == nil && !strings.Contains(f.b.logged(), "lease ended"), f.errored)

	f.b.write(t, filepath.Join(f.b.dir, "data"), "1 "+f.a.link)
	code, out, _ := run(t, "reload", "--dry-run", "-c", f.b.file)
	check.Equal(t, "exit of a dry run", code, cli.ExitGood)
	wants(t, out, `[[link.peer]] 3: "node3" at no address is gone; 0 messages that wait for it or are under way are cancelled`, "a reload would take all of it")
	check.Equal(t, "peers after the dry run", peers(), 2)
	reload(cli.ExitGood, `[[link.peer]] 3: "node3" at no address is gone`, "in force")
	check.Equal(t, "peers", peers(), 1)
	wants(t, f.b.logged(), "a peer was removed")
	f.b.write(t, filepath.Join(f.b.dir, "data"), "1 "+f.a.link, "3")
	reload(cli.ExitGood, `[[link.peer]] 3: "node3" at no address is new`, "in force")
	f.b.until(t, "the third gateway is heard again", func() bool { return peers() == 2 && f.b.status(t).Peers[1].Link == "up" })
	f.b.write(t, filepath.Join(f.b.dir, "data"), "1 "+f.a.link)
	reload(cli.ExitGood, `is gone`, "in force")
	f.b.stop(t, syscall.SIGTERM)
	f.b = f.b.testSite.start(t)
	f.b.write(t, filepath.Join(f.b.dir, "data"), "1 "+f.a.link, "3")
	reload(cli.ExitRefused, `[[link.peer]] 3: "node3" at no address is new (needs a restart)`, "nothing was changed")
}
