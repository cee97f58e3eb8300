package commands

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

// chatter is a short trace: two peers, a few small messages each way, each answered four seconds later.
func chatter(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	f := trace.NewFileWriter(&b, trace.Header{Source: "chatter", Duration: 200, Content: "data"})
	ship, shore := f.Peer(0, "", "", "ship", true), f.Peer(0, "", "", "shore", false)
	pipes := []string{f.Pipe(0, "uuid-59616261646162614E5047205032503300000000000000000000000000000A0104", "propagate"),
		f.Pipe(0, "uuid-59616261646162614E5047205032503300000000000000000000000000000A0204", "propagate")}
	for i, peer := range []string{ship, shore} {
		f.Write(trace.Line{Do: trace.EventPublish, Peer: peer, Pipe: pipes[i], Name: peer, Octets: 600})
	}
	for i, peer := range []string{ship, shore} {
		f.Write(trace.Line{T: 1, Do: trace.EventOpen, Peer: peer, Pipe: pipes[i], Listen: true})
	}
	for n := range 8 {
		for i, peer := range []string{ship, shore} {
			body := []byte(strings.Repeat("contact bearing 213; ", 1+n%3))
			f.Write(trace.Line{T: 20 + 20*float64(n) + 8*float64(i), Do: trace.EventSend, Peer: peer, Pipe: pipes[1-i], Octets: len(body),
				Parts: []trace.PartOf{trace.PartWith("trk:body", "", body)}})
		}
	}
	if _, err := f.End(200, false); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "chatter.trace")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Better settings are found for acknowledgements that just miss their ride, on one core as on all; the written file is a profile.
func TestTuneCommand(t *testing.T) {
	file := chatter(t)
	out := filepath.Join(t.TempDir(), "tuned.toml")
	source, err := profile.Source("iridium-directip-shore")
	if err != nil {
		t.Fatal(err)
	}
	calm := filepath.Join(t.TempDir(), "calm.toml") // without loss: a few messages suffice
	if err := os.WriteFile(calm, bytes.Replace(source, []byte("loss_percent = 1.0"), []byte("loss_percent = 0"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	var results [2]string
	for i, cores := range []int{runtime.NumCPU(), 1} {
		before := runtime.GOMAXPROCS(cores)
		var b, errs bytes.Buffer
		code := tuneCommand([]string{"--profile", calm, "--trace", file, "--out", out, "--seed", "3", "--json"}, &b, &errs)
		runtime.GOMAXPROCS(before)
		if results[i] = b.String(); code != 0 {
			t.Fatalf("exit %d: %s%s", code, b.String(), errs.String())
		}
	}
	if results[0] != results[1] {
		t.Errorf("on all cores:\n%s\non one:\n%s", results[0], results[1])
	}
	var r replay.Tuning
	{
		err := json.Unmarshal([]byte(results[0]), &r)
		check.NoError(check.Fatal(t), err)
		check.Differ(t, "len(r.Steps)", len(r.Steps), 0)
		check.True(t, "r.Unseen.OctetsPct <= 2", r.Unseen.OctetsPct <= 2, r.Unseen.OctetsPct)
		check.True(t, "r.Unseen.P95Pct <= 2", r.Unseen.P95Pct <= 2, r.Unseen.P95Pct)
		check.Equal(t, "r.Unseen.Lost", r.Unseen.Lost, 0)
		check.True(t, "not r.Cut", !r.Cut)
	}
	tuned, err := profile.Load(out, os.ReadFile)
	if err != nil || tuned.Name != "iridium-directip-shore-tuned" {
		t.Errorf("%q, %v", tuned.Name, err)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.HasPrefix(string(text), "# Tuned: gateway tune --profile "+calm+" --trace ") || !strings.Contains(string(text), "seed 3") {
		t.Errorf("%v\n%s", err, text)
	}
	s := configuration(t, 1, "") // and check accepts it
	config, err := os.ReadFile(s)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(config), "profile = ")
	if at < 0 {
		t.Fatalf("no profile in\n%s", config)
	}
	end := at + strings.IndexByte(string(config[at:]), '\n')
	if err := os.WriteFile(s, []byte(string(config[:at])+`profile = "`+out+`"`+string(config[end:])), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, o, errs := run(t, "check", "-c", s); code != 0 || !strings.Contains(o, "iridium-directip-shore-tuned") {
		t.Errorf("check: exit %d\n%s%s", code, o, errs)
	}
}

func TestTuneCommandRefuses(t *testing.T) {
	file := chatter(t)
	tests := []struct {
		name string
		args []string
		code int
		out  string
	}{
		{"no link", []string{"--trace", file}, 2, "which link"},
		{"no trace", []string{"--profile", "hf-2400"}, 2, "which trace"},
		{"unknown link", []string{"--profile", "semaphore", "--trace", file}, 1, "no such profile"},
		{"no file", []string{"--profile", "hf-2400", "--trace", file + "x"}, 1, "no such file"},
		{"no trace file", []string{"--profile", "hf-2400", "--trace", "tune.go"}, 1, "not a trace file"},
		{"no time", []string{"--profile", "hf-2400", "--trace", file, "--time-limit", "1ns"}, 1, "the time limit ended the search"},
		{"one capture", []string{"--profile", "hf-2400", "--fit", "a.pcap"}, 2, "two captures, with a comma between"},
		{"captures and traces", []string{"--profile", "hf-2400", "--fit", "a,b", "--trace", file}, 2, "one of them"},
		{"no capture", []string{"--profile", "hf-2400", "--fit", "tune.go,tune.go"}, 1, "not a pcap"},
		{"captures of nothing", []string{"--profile", "hf-2400", "--fit", capture(t, 0) + "," + capture(t, 0)}, 1, "no packet is in both captures"},
		{"captures of little", []string{"--profile", "hf-2400", "--fit", capture(t, 3) + "," + capture(t, 3)}, 1, "too few packets"},
		{"help", []string{"-h"}, 0, "usage: gateway tune"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if code := tuneCommand(tt.args, &out, &out); code != tt.code || !strings.Contains(out.String(), tt.out) {
				t.Errorf("exit %d, want %d with %q:\n%s", code, tt.code, tt.out, out.String())
			}
		})
	}
}
