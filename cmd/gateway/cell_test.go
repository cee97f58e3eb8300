package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// The child of a gateway that runs libnorm is in its cell, and the gateway says so.
func TestNormChildIsInItsCell(t *testing.T) {
	r, _ := two(t)
	r.until(t, "a child is up", func() bool { return r.status(t).Cell != nil })
	cell := r.status(t).Cell
	check.True(t, "cell.Whole", cell.Whole, cell.Missing)
	for _, pid := range children(t, r.cmd.Process.Pid) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"} {
			check.Contains(t, "its status", string(text), want+"\n")
		}
	}
	if _, metrics := r.get("/metrics"); !strings.Contains(metrics, "aldis_norm_cell 1\n") {
		t.Error("no aldis_norm_cell 1 in the metrics")
	}
	code, out, _ := run(t, "status", "-c", r.file)
	check.Equal(t, "exit code of status", code, 0)
	check.Lacks(t, "status", out, "whole sandbox")
}
