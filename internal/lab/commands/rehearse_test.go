package commands

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
)

// synthetic writes the trace of a run of the Blue Game.
func synthetic(t *testing.T, run int) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := trace.Synth(&b, run, 1, trace.ContentXML); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.trace")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRehearseCommand(t *testing.T) {
	file := synthetic(t, 3)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(t.TempDir(), "newer.trace")
	if err := os.WriteFile(newer, bytes.Replace(text, []byte(`"aldis_trace":1`), []byte(`"aldis_trace":2`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.trace")
	if err := os.WriteFile(cut, text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	// A link so thin that the trace does not fit.
	thin, err := os.ReadFile("../../../profiles/hf-300.toml")
	if err != nil {
		t.Fatal(err)
	}
	slow := filepath.Join(t.TempDir(), "slow.toml")
	if err := os.WriteFile(slow, bytes.Replace(thin, []byte("rate_bps = 300"), []byte("rate_bps = 20"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		code int
		out  []string
	}{
		{"go", []string{"--profile", "iridium-directip-shore", "--trace", file, "--plays", "2", "--tariff", "credit=0.05,currency=EUR"}, 0, []string{"GO. All 36 messages", "36 of 36", "credits", "EUR"}},
		{"late", []string{"--profile", "hf-2400", "--trace", file, "--plays", "1", "--deadline", "2s", "--alone"}, 1, []string{"LATE. ", "miss 2.0 s", "A deadline of", "What is late"}},
		{"too much", []string{"--profile", slow, "--trace", file, "--plays", "1"}, 1, []string{"times what it takes", "20: ", "Links that would do: ", "Send less"}},
		{"page", []string{"--profile", "vhf-cnr-16k", "--trace", file, "--plays", "1", "--html", "-"}, 0, []string{"<!DOCTYPE html>", "GO. "}},
		{"no trace", []string{"--profile", "hf-2400"}, 2, []string{"which trace"}},
		{"no link", []string{"--trace", file}, 2, []string{"which link"}},
		{"unknown link", []string{"--profile", "semaphore", "--trace", file}, 1, []string{"no such profile"}},
		{"tariff", []string{"--profile", "hf-2400", "--trace", file, "--tariff", "hour=3"}, 2, []string{`"hour=3"`}},
		{"deadline", []string{"--profile", "hf-2400", "--trace", file, "--deadline", "-1s"}, 2, []string{"--deadline"}},
		{"plays", []string{"--profile", "hf-2400", "--trace", file, "--plays", "0"}, 2, []string{"--plays"}},
		{"newer", []string{"--profile", "hf-2400", "--trace", newer}, 1, []string{"newer version", "line 1"}},
		{"cut off", []string{"--profile", "hf-2400", "--trace", cut}, 1, []string{"line "}},
		{"no file", []string{"--profile", "hf-2400", "--trace", file + "x"}, 1, []string{"no such file"}},
		{"help", []string{"-h"}, 0, []string{"usage: gateway rehearse"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if code := rehearseCommand(tt.args, &out, &out); code != tt.code {
				t.Errorf("exit %d, want %d:\n%s", code, tt.code, out.String())
			}
			for _, want := range tt.out {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in:\n%s", want, out.String())
				}
			}
		})
	}
	var out bytes.Buffer
	rehearseCommand([]string{"--profile", slow, "--trace", file, "--plays", "1", "--alone", "--json"}, &out, &out)
	var r replay.Rehearsal
	{
		err := json.Unmarshal(out.Bytes(), &r)
		check.NoError(check.Fatal(t), err)
		check.Differ(t, "r.Verdict", r.Verdict, replay.Go)
		check.Equal(check.Fatal(t), "len(r.Overload)", len(r.Overload), 1)
		check.Equal(t, "r.Overload[0].RateBps", r.Overload[0].RateBps, 20)
		check.True(t, "r.First", r.First != nil)
	}
}

// A rehearsal plays both of two links: it shows by which rule messages took which link, in what time, with what octets and for how much
// money.
func TestRehearseTwoLinks(t *testing.T) {
	file := synthetic(t, 1)
	second := "[[link]]\nname = \"hf\"\nprofile = \"hf-2400\"\nprice = 0.5\nlisten = \"127.0.0.1:7143\"\n[[link.peer]]\nid = 1\naddress = \"10.0.1.1:7142\"\n"
	rules := "[[route]]\nlabel = \"long ones\"\noctets_min = 1000\nlinks = \"hf\"\n[[route]]\nwithin = \"3s\"\n"
	cfg := configuration(t, 2, "[[link.peer]]\nid = 1\nname = \"hq\"\naddress = \"10.0.0.1:7142\"\n")
	text, err := os.ReadFile(cfg)
	check.NoError(check.Fatal(t), err)
	one := strings.Replace(string(text), "[link]\n", "[[link]]\nname = \"sat\"\nprice = 2\n", 1)
	check.True(check.Fatal(t), "there is a [link]", one != string(text), string(text))
	check.NoError(check.Fatal(t), os.WriteFile(cfg, []byte(one+second+rules), 0o600))
	code, out, errs := run(t, "rehearse", "--trace", file, "--gateways", cfg, "--plays", "1", "--deadline", "10m", "--json")
	check.Equal(check.Fatal(t), "exit, and "+errs, code, 0)
	var r replay.Rehearsal
	check.NoError(check.Fatal(t), json.Unmarshal([]byte(out), &r))
	check.Equal(check.Fatal(t), "links", len(r.Bearers), 2)
	messages, links := 0, map[string]string{}
	for _, w := range r.Ways {
		messages += w.Messages
		links[w.Rule] += w.Link + " "
		check.True(t, "a way has octets, seconds and money", w.Octets > 0 && w.MeanS > 0 && w.MaxS >= w.MeanS && w.Money > 0, w)
	}
	check.Equal(t, "messages", messages, r.Messages)
	check.True(t, "long ones go by HF", len(links) == 2 && !strings.Contains(links["long ones"], "sat"), links)
	sum := int64(0)
	for _, b := range r.Bearers {
		check.True(t, "a link has octets and money", b.Octets.Up > 0 && b.Octets.Down > 0 && b.Money > 0, b)
		sum += b.Octets.Up + b.Octets.Down
	}
	check.Equal(t, "octets of both links", float64(sum), r.Cost.Octets.Worst)
	_, out, _ = run(t, "replay", file, "--gateways", cfg)
	wants(t, out, "Octets by link", "sat, ", "hf, hf-2400", "Which link messages took", "long ones")
	code, _, errs = run(t, "replay", file, "--gateways", cfg, "--live")
	check.True(t, "a live replay plays one link", code != 0 && strings.Contains(errs, "plays one link"), errs)
}
