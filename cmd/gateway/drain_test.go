package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// A gateway under load is drained: waiting messages are sent, new ones are refused, and it stops once it is empty. Accepted
// messages have arrived, once.
func TestDrain(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	for range 300 {
		f.say()
	}
	f.b.until(t, "the gateway has taken them", func() bool { return f.b.peer(t).Accepted >= 301 })

	// A gateway that cannot become empty reports it; the order stays, and is taken back.
	if code, _, errs := run(t, "silence", "on", "-c", f.b.file); code != 0 {
		t.Fatal(errs)
	}
	f.say()
	f.b.until(t, "one waits", func() bool { return f.b.peer(t).Accepted >= 302 })
	code, _, errs := run(t, "drain", "--wait", "1ms", "-c", f.b.file)
	check.Equal(t, "exit code in silence", code, cli.ExitRefused)
	wants(t, errs, "messages that wait: ", "node1", "gateway drain --off")
	f.say()
	f.b.until(t, "a message is refused", func() bool { return f.b.peer(t).Refused == 1 })
	_, status, _ := run(t, "status", "-c", f.b.file)
	wants(t, status, "DRAINED")
	code, out, errs := run(t, "drain", "--off", "-c", f.b.file)
	check.Equal(t, "exit code of --off, and "+errs, code, cli.ExitGood)
	wants(t, out, "takes messages of local peers again")
	f.say()
	f.b.until(t, "one is taken again", func() bool { return f.b.peer(t).Accepted == 303 })
	if code, _, errs := run(t, "silence", "off", "-c", f.b.file); code != 0 {
		t.Fatal(errs)
	}

	code, out, errs = run(t, "drain", "--stop", "-c", f.b.file)
	check.Equal(t, "exit code, and "+errs, code, cli.ExitGood)
	wants(t, out, "empty: nothing waits for a far gateway", "stopped")
	check.Equal(t, "exit code of the gateway", f.b.end(t, "drain --stop"), cli.ExitGood)
	f.a.until(t, "all that was taken has arrived", func() bool { return len(f.count()) == 303 })
	for text, n := range f.count() {
		check.Equal(t, "times that "+text+" was heard", n, 1)
	}
	check.Equal(t, "what was refused was heard", f.count()[flowText(303)], 0)
	b := f.b.testSite.start(t)
	check.True(t, "a restart takes messages again", b.status(t).Drain == nil)
	for _, args := range [][]string{{"now"}, {"--off", "--stop"}, {"--wait", "-1s"}} {
		check.Equal(check.In(t, args), "exit code", runCode(t, append([]string{"drain", "-c", b.file}, args...)...), cli.ExitUsage)
	}
}

// If a process keeps the sockets, that process is stopped too. A page without the token can give neither order.
func TestDrainStopsTheKeeper(t *testing.T) {
	s := newSite(t, 2, "")
	r := s.startCommand(t, gatewayCommand("run", "-c", s.file, "--keep-socket"))
	for _, path := range []string{"/drain", "/backup"} {
		answer, err := http.Post("http://"+s.http+path, "application/json", strings.NewReader(`{"on":true}`))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		check.Equal(t, "status of "+path+" over HTTP", answer.StatusCode, http.StatusForbidden)
	}
	code, _, errs := run(t, "drain", "--stop", "--json", "-c", s.file)
	check.Equal(t, "exit code, and "+errs, code, cli.ExitGood)
	r.end(t, "drain --stop")
	check.True(t, "the keeper ended by itself", r.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL)
}
