package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/operator/control"
)

// A running gateway, with all its restrictions, rehearses a trace that is sent with the token, and answers meanwhile.
func TestWhatIfOfARunningGateway(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1, "")
	token := filepath.Join(s.dir, "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, bytes.Replace(text, []byte("[http]\n"), []byte("[http]\ntoken_file = \"token\"\n"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	mission := filepath.Join(s.dir, "run1.trace")
	if code, _, errs := run(t, "synth", "blue-game", "--run", "1", "--content", "text", "-o", mission); code != 0 {
		t.Fatal(errs)
	}
	trace, err := os.ReadFile(mission)
	if err != nil {
		t.Fatal(err)
	}
	r := s.start(t)
	ask := func(o control.WhatIfOrder) (w control.WhatIf) {
		t.Helper()
		body, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequest("POST", "http://"+s.http+"/whatif", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer 0123456789abcdef")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&w); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d: %v", resp.StatusCode, err)
		}
		return w
	}
	what := func() (w control.WhatIf) {
		_, text := r.get("/whatif")
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	check.Equal(t, "the state", ask(control.WhatIfOrder{Link: "iridium-dialup", DeadlineS: 60, Trace: string(trace)}).State, "playing")
	if code, _ := r.get("/healthz"); code != 200 {
		t.Errorf("meanwhile /healthz says %d", code)
	}
	await(t, r.id, r.ended, 4*patience, "the rehearsal is over", func() bool { return what().State != "playing" }) // it computes
	w := what()
	check.Equal(t, "the state", w.State+w.Error, "done")
	check.Contains(t, "the verdict", w.Line, "All 57 messages arrive within 60 s on iridium-dialup")
	check.True(t, "octets", w.Then.Octets > 10_000 && w.Then.Octets < 40_000, w.Then)

	ask(control.WhatIfOrder{Link: "iridium-dialup", DeadlineS: 60, Trace: "no trace\n"})
	r.until(t, "it has failed", func() bool { return what().State == "failed" })
	check.Contains(t, "why", what().Error, "not a trace file")
	if strings.Contains(r.logged(), "aldis_trace") {
		t.Error("the log has the trace")
	}
}
