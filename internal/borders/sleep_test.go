package borders

import "testing"

func TestSleeps(t *testing.T) {
	const head = "package a\nimport (\n\"testing\"\n\"testing/synctest\"\n\"time\"\n)\n"
	for _, tt := range []struct {
		code  string
		fault bool
	}{
		{"func f() { time.Sleep(1) }", true},
		{"func f() { g(time.Sleep) }", true},
		{"func f() { <-time.After(1) }", true},
		{"func f() { _ = <-time.After(1) }", true},
		{"func f() { <-(time.After)(1) }", true},
		{"func f() { <-time.NewTimer(1).C }", true},
		{"func f() { for range time.Tick(1) {} }", true},
		{"func f() { select { case <-time.After(1): } }", true},
		{"func f() { select { case <-time.After(1): case <-done: <-time.After(2) } }", true},
		{"func f() { select { case <-time.After(1): case <-done: } }", false},
		{"func f() { deadline := time.After(1); <-done; _ = deadline }", false},
		{"func f() { synctest.Test(nil, func(*testing.T) { time.Sleep(1); <-time.After(1) }) }", false},
		{"func f() { <-time.After(1); synctest.Wait() }", false},
		{"func f() { synctest.Test(nil, nil); time.Sleep(1) }", true},
	} {
		faults := tree(t, map[string]string{"internal/edge/lan/a_test.go": head + tt.code})[0].sleeps()
		if len(faults) > 1 || (len(faults) == 1) != tt.fault {
			t.Errorf("%s: %v", tt.code, faults)
		}
		if faults := tree(t, map[string]string{"internal/edge/lan/a.go": head + tt.code})[0].sleeps(); len(faults) > 0 {
			t.Errorf("no test: %s: %v", tt.code, faults)
		}
	}
}
