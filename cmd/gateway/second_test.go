package main

import (
	"strings"
	"testing"

	"aldis/internal/lab/commands"
	"aldis/internal/operator/cli"
)

// Each command of the list is in the program that the list names; corpus is in both: build and the model are in the second.
func TestWhichProgramHasWhat(t *testing.T) {
	lab := commands.Program().Commands
	listed := map[string]bool{"norm-child": true}
	for _, c := range described(t).Commands() {
		name, _, _ := strings.Cut(c.Name, " ")
		listed[name] = true
		if here := program().Commands[name] != nil || name == "manual" || name == "version"; here == c.Second || c.Second && lab[name] == nil {
			t.Errorf("%s: in gateway %v, by the list in %s %v", name, here, cli.LabName, c.Second)
		}
	}
	for _, p := range []cli.Program{program(), commands.Program()} {
		for name := range p.Commands {
			if !listed[name] {
				t.Errorf("%s has %s, which the list does not name", p.Name, name)
			}
		}
	}
}

// If the second program is not installed, one sentence names the package that has it.
func TestWithoutTheSecondProgram(t *testing.T) {
	for _, args := range [][]string{{"replay", "x.trace"}, {"replay", "-h"}, {"help", "lab"}, {"corpus"}, {"corpus", "build", "-o", "/nowhere/x", "/nowhere/samples"}} {
		cmd := gatewayCommand(args...)
		cmd.Env = append(cmd.Env, "PATH=/nowhere")
		said, _ := cmd.CombinedOutput()
		text := string(said)
		if code := cmd.ProcessState.ExitCode(); code != cli.ExitUsage || strings.Count(text, "\n") != 1 || !strings.Contains(text, "install the package aldis-gateway-lab") {
			t.Errorf("%q: exit %d, %s", args, code, text)
		}
	}
}

// Arguments and exit codes pass through.
func TestSecondProgramTakesOver(t *testing.T) {
	for _, tt := range []struct {
		args string
		code int
		says string
	}{{"replay", 2, "gateway replay: which trace?"}, {"synth -h", 0, "usage: gateway synth"}, {"replay /nowhere", 1, "/nowhere"}} {
		code, out, errs := run(t, strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(out+errs, tt.says) {
			t.Errorf("%s: exit %d, %s%s", tt.args, code, out, errs)
		}
	}
}
