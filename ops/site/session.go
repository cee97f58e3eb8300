package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// step is a line that is typed, and what it prints.
type step struct {
	typed  string
	beside bool   // it goes on beside the next ones
	until  string // the line is typed again until it prints this
	output string
	took   time.Duration
}

// script is the session of the tour: two sites on one machine, from nothing to a judged mission.
func script() []step {
	return []step{
		{typed: "gateway init -o hq.toml --new-key --ashore --id 1 --name hq --lan 127.0.0.1:9711 --link 127.0.0.1:7143 --data hq-data \\\n    --profile iridium-directip-shore --peer 2,ship"},
		{typed: "gateway init -o ship.toml --key net.key --id 2 --name ship --lan 127.0.0.1:9701 --link 127.0.0.1:7142 --data ship-data \\\n    --profile iridium-directip-shore --peer 1,hq,127.0.0.1:7143"},
		{typed: "sed -i s/9142/9143/ ship.toml   # both are on this machine: another port for the page"},
		{typed: "gateway check -c ship.toml"},
		{typed: "gateway run -c hq.toml 2>hq.log &", beside: true},
		{typed: "gateway run -c ship.toml 2>ship.log &", beside: true},
		{typed: "gateway status -c ship.toml", until: " up "},
		{typed: "gateway synth blue-game --run 1 -o run1.trace"},
		{typed: "gateway rehearse --profile iridium-dialup --trace run1.trace --deadline 60s | head -14"},
	}
}

const sessionBound = 2 * time.Minute

// play types the session in a directory of its own, with the gateway that was built.
func play(gateway string, steps []step) (played []step, err error) {
	gateway, err = filepath.Abs(gateway)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "session-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, end := context.WithTimeout(context.Background(), sessionBound)
	defer end()
	var beside []*exec.Cmd
	defer func() {
		for _, c := range beside {
			_ = c.Process.Signal(os.Interrupt)
			_ = c.Wait()
		}
	}()
	shell := func(line string) *exec.Cmd {
		c := exec.CommandContext(ctx, "sh", "-c", line)
		c.Dir, c.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(gateway)+":"+os.Getenv("PATH"), "COLUMNS=110")
		return c
	}
	for _, s := range steps {
		begin := time.Now()
		if s.beside {
			c := shell("exec " + strings.TrimSuffix(s.typed, "&"))
			if err := c.Start(); err != nil {
				return nil, err
			}
			beside, played = append(beside, c), append(played, s)
			continue
		}
		for {
			out, err := shell(s.typed).CombinedOutput()
			if s.until == "" && err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", s.typed, err, out)
			}
			s.output = strings.ReplaceAll(string(out), dir+"/", "")
			if strings.Contains(s.output, s.until) {
				break
			}
			select {
			case <-ctx.Done():
				return nil, errors.Join(fmt.Errorf("%s never says %q: %s", s.typed, s.until, s.output), logs(dir))
			case <-time.After(200 * time.Millisecond):
			}
		}
		s.took = time.Since(begin)
		played = append(played, s)
	}
	return played, nil
}

// logs are those of the gateways, when they did not do what they should.
func logs(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, p := range paths {
		b, rerr := os.ReadFile(p)
		err = errors.Join(err, rerr, fmt.Errorf("%s: %s", filepath.Base(p), b))
	}
	return err
}

// recorded is the session as a page shows it: line by line, in the time that it took, with pauses for reading at most short.
func recorded(steps []step) string {
	const typing, longest = 0.8, 3.0
	var b strings.Builder
	at := 0.5
	b.WriteString("<pre class=\"session\" aria-label=\"Recorded terminal session\">")
	for _, s := range steps {
		fmt.Fprintf(&b, "<span style=\"--at:%.1fs\">$ <b>%s</b>\n</span>", at, html.EscapeString(s.typed))
		at += typing + min(s.took.Seconds(), longest)
		if s.output != "" {
			fmt.Fprintf(&b, "<span style=\"--at:%.1fs\">%s</span>", at, inPage(s.output))
			at += 1.5
		}
	}
	b.WriteString("</pre>")
	return b.String()
}

// inPage is an output for a block of raw HTML in Markdown, which an empty line would end.
func inPage(s string) string {
	return strings.ReplaceAll(html.EscapeString(strings.TrimRight(s, "\n"))+"\n", "\n\n", "\n&#8203;\n")
}

// cast is the session as a file that asciinema plays.
func cast(steps []step) []byte {
	var b bytes.Buffer
	b.WriteString(`{"version": 2, "width": 130, "height": 40, "title": "Aldis: from nothing to two gateways"}` + "\n")
	at := 0.5
	say := func(text string) {
		fmt.Fprintf(&b, "[%.2f, \"o\", %s]\n", at, quoted(strings.ReplaceAll(text, "\n", "\r\n")))
	}
	for _, s := range steps {
		say("$ ")
		for _, r := range s.typed {
			at += 0.02
			say(string(r))
		}
		at += 0.3
		say("\n")
		at += min(s.took.Seconds(), 3)
		say(s.output)
		at += 1.2
	}
	return b.Bytes()
}
