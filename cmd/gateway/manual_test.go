package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/operator/cli"
)

// tool runs a program of this machine, and checks for exit code 0 and an empty standard error.
func tool(t *testing.T, name string, args ...string) (stdout string) {
	t.Helper()
	var errs strings.Builder
	cmd := bounded(t, name, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		t.Errorf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// Both formatters of man pages accept each page without a warning, and each page has all flags of its command.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if code, out, errs := run(t, "manual", "man", "--date", "2026-11-22", dir); code != 0 || out+errs != "" {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	commands := described(t).Commands()
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) != 1+len(commands) {
		t.Fatalf("%d pages for %d commands and the program: %v", len(pages), len(commands), err)
	}
	tool(t, "mandoc", append([]string{"-T", "lint", "-W", "warning"}, pages...)...)
	for _, page := range pages {
		tool(t, "man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", page)
	}
	for _, c := range commands {
		page := tool(t, "mandoc", "-T", "ascii", filepath.Join(dir, "gateway-"+strings.ReplaceAll(c.Name, " ", "-")+".1"))
		for strings.Contains(page, "\b") { // a letter over a letter is bold
			at := strings.IndexByte(page, '\b')
			page = page[:at-1] + page[at+1:]
		}
		for _, f := range c.Flags {
			if !strings.Contains(page, "\n       "+f.Typed()) {
				t.Errorf("the page of %s has no %s:\n%s", c.Name, f.Typed(), page)
			}
		}
		if c.About == "" || c.Summary == "" {
			t.Errorf("%s says nothing of itself", c.Name)
		}
	}
}

// completion writes the completion of a shell into a file.
func completion(t *testing.T, shell string) (file string) {
	t.Helper()
	code, out, errs := run(t, "manual", shell)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	file = filepath.Join(t.TempDir(), "_gateway")
	if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// Typed lines, whose last word may be incomplete, and the suggestions that must come.
var typedLines = []struct {
	words []string
	want  string
}{
	{[]string{"st"}, "status"},
	{[]string{"silence", ""}, "on off status"},
	{[]string{"silence", "on", "--an"}, "--announce"},
	{[]string{"pmul", "rec"}, "receive"},
	{[]string{"pmul", "send", "--prio"}, "--priority"},
	{[]string{"lab", "hf-net", "--sil"}, "--silent"},
	{[]string{"replay", "--profile", "vhf"}, "vhf-cnr-16k"},
	{[]string{"help", "sil"}, "silence"},
	{[]string{"profiles", "hf-3"}, "hf-300"},
	{[]string{"check", "/etc/host"}, "/etc/hostname"},
	{[]string{"run", "-c", "/etc/host"}, "/etc/hostname"},
}

func offers(t *testing.T, shell string, words []string, got, want string) {
	t.Helper()
	for _, w := range strings.Fields(want) {
		found := false
		for _, g := range strings.Fields(got) {
			found = found || g == w
		}
		if !found {
			t.Errorf("%s, gateway %s: %q is not offered, but\n%s", shell, strings.Join(words, " "), w, got)
		}
	}
}

func TestBashCompletion(t *testing.T) {
	file := completion(t, "bash")
	tool(t, "bash", "-n", file)
	for _, l := range typedLines {
		script := `source "$0"; COMP_WORDS=(gateway "$@"); COMP_CWORD=$#; _gateway; echo "${COMPREPLY[@]}"`
		offers(t, "bash", l.words, tool(t, "bash", append([]string{"--norc", "-c", script, file}, l.words...)...), l.want)
	}
	split := []string{"replay", "--profile", "=", "vhf"} // bash's own way with --profile=vhf
	script := `source "$0"; COMP_WORDS=(gateway "$@"); COMP_CWORD=$#; _gateway; echo "${COMPREPLY[@]}"`
	offers(t, "bash", split, tool(t, "bash", append([]string{"--norc", "-c", script, file}, split...)...), "vhf-cnr-16k")
}

func TestFishCompletion(t *testing.T) {
	file := completion(t, "fish")
	tool(t, "fish", "--no-execute", file)
	for _, l := range typedLines {
		line := "gateway " + strings.Join(l.words, " ")
		offers(t, "fish", l.words, tool(t, "fish", "--no-config", "-c", "source "+file+"; complete -C '"+line+"'"), l.want)
	}
}

// zsh's own functions need a terminal. The test replaces them, and prints their arguments.
func TestZshCompletion(t *testing.T) {
	file := completion(t, "zsh")
	tool(t, "zsh", "-f", "-n", file)
	script := `_arguments() { print -rl -- "at $CURRENT: $words" "$@" }; _describe() { print -rl -- ${(P)4} }
		words=(gateway "$@"); CURRENT=$(($# + 1)); gateway_words() { source $file }; file=$0; gateway_words`
	for _, tt := range []struct {
		words []string
		want  []string
	}{
		{[]string{"st"}, []string{"status:show peers, queues and octets of the gateway on this machine\n", "help:say more of a command\n"}},
		{[]string{"silence", ""}, []string{"at 2: silence \n", "1:what:(on off status)\n", "--announce[tell each far gateway in one last datagram]\n"}},
		{[]string{"pmul", ""}, []string{"1:what:(send receive)\n"}},
		{[]string{"pmul", "send", "--to", ""}, []string{"at 3: send --to \n", "--to=[recipients, node numbers with commas between]:string: \n", "*:file:_files\n"}},
		{[]string{"replay", ""}, []string{"--profile=[", ": _words_or_files ", " vhf-cnr-16k"}},
		{[]string{"run", ""}, []string{"-c[configuration file]:file:_files\n"}},
		{[]string{"help", ""}, []string{"journal:check, repair"}},
	} {
		out := tool(t, "zsh", append([]string{"-f", "-c", script, file}, tt.words...)...)
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("gateway %s: no %q in\n%s", strings.Join(tt.words, " "), want, out)
			}
		}
	}
}

func TestManualRefuses(t *testing.T) {
	for _, args := range [][]string{{"manual"}, {"manual", "man"}, {"manual", "csh"}, {"manual", "bash", "x"}, {"manual", "--date", "2026-01-01", "bash"}} {
		if code, out, errs := run(t, args...); code != cli.ExitUsage || out != "" || !strings.Contains(errs, "usage: gateway manual") {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
	}
	if code, _, errs := run(t, "manual", "man", "/nowhere"); code != cli.ExitRefused || !strings.Contains(errs, "/nowhere") {
		t.Errorf("a directory that is not there: exit %d, %q", code, errs)
	}
}
