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
