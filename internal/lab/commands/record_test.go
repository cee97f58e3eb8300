package commands

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/lab/trace"
	"aldis/internal/operator/cli"
)

func TestRecordAndSynthCommands(t *testing.T) {
	all := captures(t)
	capture, dir := write(t, all["jxta22-http"]), t.TempDir()
	cut := write(t, all["jxta22-http"][:60000])
	tests := []struct {
		name    string
		command cli.Command
		args    []string
		code    int
		out     string // part of the command's output
		totals  trace.TotalsOf
	}{
		{"record", recordCommand, []string{capture, "-o", "T"}, 0, "5 messages of 1000 octets in, 5 of 4500 out", trace.TotalsOf{MessagesIn: 5, MessagesOut: 5, In: 1000, Out: 4500, Events: 15}},
		{"the other side", recordCommand, []string{capture, "-o", "T", "--edge", "10.88.0.1"}, 0, "out", trace.TotalsOf{MessagesIn: 5, MessagesOut: 5, In: 4500, Out: 1000, Events: 15}},
		{"anonymised", recordCommand, []string{capture, "-o", "T", "--anonymise"}, 0, "15 events", trace.TotalsOf{MessagesIn: 5, MessagesOut: 5, In: 1000, Out: 4500, Events: 15}},
		{"a jammed link", recordCommand, []string{write(t, all["jxta22-tcp-iridium"]), "-o", "T", "--anonymise"}, 0, "the link was jammed: 12 % of all packets were sent again and 2 messages were begun and never ended. The trace has what got through, and when; the applications wanted more", trace.TotalsOf{MessagesOut: 11, Out: 2200, Events: 18}},
		{"cut", recordCommand, []string{cut, "-o", "T"}, 1, "partial", trace.TotalsOf{}},
		{"a capture without packets", recordCommand, []string{write(t, all["jxta22-http"][:24]), "-o", "T"}, 1, "no trace was written: nothing found: the capture has no packets", trace.TotalsOf{}},
		{"nobody of that address", recordCommand, []string{capture, "-o", "T", "--edge", "10.9.9.9"}, 1, "the addresses are 10.88.0.", trace.TotalsOf{}},
		{"no output", recordCommand, []string{capture}, 2, "-o TRACE", trace.TotalsOf{}},
		{"standard input", recordCommand, []string{"-", "-o", "T"}, 2, "twice", trace.TotalsOf{}},
		{"no capture", recordCommand, []string{"record.go", "-o", "T"}, 1, "not a pcap", trace.TotalsOf{}},
		{"no directory", recordCommand, []string{capture, "-o", "/nowhere/x"}, 1, "no such file", trace.TotalsOf{}},
		{"synth", synthCommand, []string{"blue-game", "--run", "3", "-o", "T"}, 0, "28019 octets in", trace.TotalsOf{MessagesIn: 18, MessagesOut: 18, In: 28019, Out: 30856, Events: 50}},
		{"synth, no run", synthCommand, []string{"blue-game"}, 2, "--run", trace.TotalsOf{}},
		{"synth, no experiment", synthCommand, []string{"--run", "3"}, 2, "blue-game", trace.TotalsOf{}},
		{"synth, content", synthCommand, []string{"blue-game", "--run", "3", "--content", "prose"}, 2, "prose", trace.TotalsOf{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(dir, strings.ReplaceAll(tt.name, " ", "-"))
			for i := range tt.args {
				if tt.args[i] == "T" {
					tt.args[i] = file
				}
			}
			var out bytes.Buffer
			if code := tt.command(tt.args, &out, &out); code != tt.code {
				t.Fatalf("exit %d, want %d: %s", code, tt.code, out.String())
			}
			if !strings.Contains(out.String(), tt.out) {
				t.Errorf("%q is not in %s", tt.out, out.String())
			}
			if strings.Contains(tt.out, "no trace was written") {
				if _, err := os.Stat(file); err == nil {
					t.Errorf("%s is there", file)
				}
			}
			if tt.totals.Events == 0 {
				return
			}
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got, err := trace.ReadFile(f); err != nil || got.Totals != tt.totals {
				t.Errorf("%v, %+v, want %+v", err, got.Totals, tt.totals)
			} else if jammed := strings.Contains(tt.out, "jammed"); jammed != (got.Header.Jam != trace.Jam{}) {
				t.Errorf("%+v", got.Header)
			}
		})
	}
}
