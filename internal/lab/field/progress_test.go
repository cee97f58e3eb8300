package field

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/report"
)

// When no line is printed for a while the log prints the standings of all runs that are not over, and then is quiet for as long again.
func TestProgressWithoutNews(t *testing.T) {
	var out bytes.Buffer
	l := &progressLog{w: &out}
	with, without := l.voice("gateway"), l.voice("unaided")
	with.logf("took %d", 1)
	l.mu.Lock()
	l.begin, l.last = epoch, epoch
	l.mu.Unlock()
	l.beat(epoch.Add(stillFor - time.Millisecond))
	check.Equal(t, "lines before it is time", strings.Count(out.String(), "\n"), 1)
	l.beat(epoch.Add(stillFor))
	l.beat(epoch.Add(stillFor + time.Millisecond))
	with.stands(func() string { return "3 of 4" })
	l.beat(epoch.Add(3 * stillFor))
	without.falls()
	l.beat(epoch.Add(5 * stillFor))
	with.falls()
	l.beat(epoch.Add(9 * stillFor))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
	check.Equal(t, "lines", len(lines), 3)
	check.Equal(t, "first", strings.TrimSpace(lines[0]), "2 s  gateway: took 1 | unaided: waits for its turn")
	check.Equal(t, "second", strings.TrimSpace(lines[1]), "4 s  gateway: 3 of 4 | unaided: waits for its turn")
	check.Equal(t, "third", strings.TrimSpace(lines[2]), "8 s  gateway: 3 of 4")
}

// scripts/progress shows the last line of a command while it runs, ends with its exit code, and then shows all its output.
func TestProgressOfACommand(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	if out, err := exec.Command("mkfifo", gate).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v %s", err, out)
	}
	cmd := exec.Command("../../../scripts/progress", "waiting", "sh", "-c", `echo began; echo second; read x <"$1"; exit 3`, "sh", gate)
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; n < 2 && lines.Scan(); n++ {
		if !strings.HasPrefix(lines.Text(), "waiting: ") || !strings.HasSuffix(lines.Text(), " s, second") {
			t.Errorf("it says %q", lines.Text())
		}
	}
	f, err := os.OpenFile(gate, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	for lines.Scan() {
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("it ends with %v", err)
	}
	check.Equal(t, "what the command said", wrong.String(), "began\nsecond\n")
}

// The page has the scoreboard's figures, of both runs or of one.
func TestGamePage(t *testing.T) {
	three, ninety := 3.0, 90.5
	with := &Run{MessagesSent: 59, MessagesDelivered: 59, LinkBytes: UpDown{Up: 3000, Down: 3498}, Start: Start{DiscoveryS: &three}, Latency: Latency{Median: &three},
		picture: &picture{latencies: []float64{2, 1}, octets: [][2]float64{{0, 10}, {1, 6498}}}}
	without := &Run{MessagesSent: 40, MessagesDelivered: 3, LinkBytes: UpDown{Up: 100000, Down: 79999}, Latency: Latency{Median: &ninety}, picture: &picture{}}
	r := &Result{Profile: "iridium-<directip>", Peers: "jxse27", Transport: "tcp", DurationS: 150, RateS: 5, Size: 200, Ships: 1,
		Runs: map[string]*Run{"gateway": with, "unaided": without}}
	text := func(p report.Page) string {
		var b strings.Builder
		if err := errors.Join(p.HTML(&b), p.Text(&b)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	page := text(r.Page())
	for _, want := range []string{
		"With gateways 59 of 59 messages arrived, for 6,498 octets on the link. JXTA alone: 3 of 40, for 179,999 octets.",
		"HQ and a ship over iridium-&lt;directip&gt;", `class="verdict good"`, "JXTA alone: never", "90.5 s", "<path class=\"l0\"",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	with.MessagesDelivered--
	delete(r.Runs, "unaided")
	page = text(r.Page())
	if !strings.Contains(page, `class="verdict bad"`) || strings.Contains(page, "JXTA alone") {
		t.Errorf("with one run, and a message lost:\n%s", page)
	}
}
