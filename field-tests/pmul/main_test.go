package main

import (
	"errors"
	"strings"
	"testing"
)

// TestTables: medians, ranges, runs that did not finish and runs that were not played.
func TestTables(t *testing.T) {
	r := func(transport string, seed uint64, complete int, seconds float64) result {
		return result{run: run{"hf-2400", transport, 200, seed}, Complete: complete, Seconds: seconds, Limit: 2, Data: 300 + int64(seed), Return: 52, Version: "gateway v1"}
	}
	all := []result{r("p_mul", 1, 4, 2.5), r("p_mul", 2, 4, 9), r("p_mul", 3, 4, 3), r("uftp", 1, 4, 37), r("uftp", 2, 2, 0), r("uftp", 3, 1, 0),
		{run: run{"hf-2400", "tcp", 200, 1}, err: errors.New("no file")}}
	text := tables(all)
	for _, want := range []string{
		"P_Mul is that of gateway v1.",
		"| 200 | p_mul | 3/3 | 3.0 (2.5-9.0) | 1.50 | 302 (301-303) | 52 |",
		"| 200 | uftp | 1/3 | never (37.0-never) |",
		"| 200 | tcp | not played |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// TestReady: everything missing is named with the remedy.
func TestReady(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := ready("/nowhere/gateway")
	if err == nil {
		t.Fatal("ready without anything")
	}
	for _, want := range []string{"make build", "apt-get install uftp", "apt-get install iproute2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestReceived(t *testing.T) {
	for _, tt := range []struct{ line, what, name string }{
		{`{"event":"ready"}`, "ready", ""},
		{`{"event":"received","from":"10.79.0.1","file":"/x/y"}`, "file", "/x/y"},
		{`{"event":"progress","has":3}`, "", ""},
		{"ready", "ready", ""},
		{"file /x/y", "file", "/x/y"},
	} {
		if what, name := received(tt.line); what != tt.what || name != tt.name {
			t.Errorf("%s: %q, %q", tt.line, what, name)
		}
	}
}
