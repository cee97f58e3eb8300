package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
	"aldis/internal/operator/cli"
)

// synthTrace is a trace file of a run.
func synthTrace(t *testing.T, run int) (file string, text []byte) {
	t.Helper()
	var b bytes.Buffer
	if _, err := trace.Synth(&b, run, 1, trace.ContentText); err != nil {
		t.Fatal(err)
	}
	return write(t, b.Bytes()), b.Bytes()
}

// call calls a command in this process.
func call(command cli.Command, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = command(args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestReplayCommand(t *testing.T) {
	file, text := synthTrace(t, 3)
	code, out, errs := call(replayCommand, file, "--seed", "7")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	wants(t, out, "Blue Game 2004, run 3", "36 of 36 messages arrived", "764163", "28019", "latency median, s")
	code, out, errs = call(replayCommand, file, "--profile", "iridium-dialup", "--json")
	var res replay.Result
	err := json.Unmarshal([]byte(out), &res)
	must := check.Fatal(check.In(t, errs))
	check.Equal(must, "code", code, 0)
	check.NoError(must, err)
	check.Equal(must, "res.Profile", res.Profile, "iridium-dialup")
	check.Equal(must, "res.Messages.Delivered", res.Messages.Delivered, 36)
	code, out, _ = call(replayCommand, file, "--from", "11m", "--to", "13m")
	if code != 0 || !strings.Contains(out, "8 of 8 messages arrived") {
		t.Errorf("two minutes of it: exit %d\n%s", code, out)
	}

	// Damage: the readable part is played, and the command says where it ends.
	lines := bytes.SplitAfter(text, []byte("\n"))
	half := bytes.Join(lines[:40], nil)
	code, out, errs = call(replayCommand, write(t, half))
	check.Equal(t, "code", code, 1)
	check.Contains(t, "errs", errs, "line 40")
	check.Contains(t, "errs", errs, "cut off")
	check.Contains(t, "out", out, "messages arrived")
	newer := append([]byte(`{"aldis_trace":2,"duration_s":1,"content":"data"}`+"\n"), bytes.Join(lines[1:], nil)...)
	code, out, errs = call(replayCommand, write(t, newer))
	if code != 1 || out != "" || !strings.Contains(errs, "newer version: 2") {
		t.Errorf("newer: exit %d: %s", code, errs)
	}
	bad := bytes.Join([][]byte{bytes.Join(lines[:20], nil), []byte("{\"t\":1e3,\"do\":\"send\"\n"), bytes.Join(lines[20:], nil)}, nil)
	code, _, errs = call(replayCommand, write(t, bad))
	if code != 1 || !strings.Contains(errs, "line 21") {
		t.Errorf("damaged: exit %d: %s", code, errs)
	}
	for _, args := range [][]string{{}, {file, "--from", "2m", "--to", "1m"}, {file, "--content", "prose"}, {file, "--keep", "x"}, {file, "more"}} {
		if code, _, errs := call(replayCommand, args...); code != 2 || errs == "" {
			t.Errorf("%q: exit %d", args, code)
		}
	}
	for _, args := range [][]string{{"/nowhere"}, {file, "--profile", "iridium"}, {file, "--gateways", "/nowhere.toml"}} {
		if code, _, errs := call(replayCommand, args...); code != 1 || errs == "" {
			t.Errorf("%q: exit %d", args, code)
		}
	}
	random := write(t, nil)
	if code, _, errs := call(synthCommand, "blue-game", "--run", "5", "--content", "random", "-o", random); code != 0 {
		t.Fatal(errs)
	}
	hf300, err := os.ReadFile("../../../profiles/hf-300.toml")
	check.NoError(check.Fatal(t), err)
	slow := filepath.Join(t.TempDir(), "slow.toml") // hf-300 itself carries it in the end
	check.NoError(check.Fatal(t), os.WriteFile(slow, bytes.Replace(hf300, []byte("rate_bps = 300 "), []byte("rate_bps = 75 "), 1), 0o600))
	code, out, errs = call(replayCommand, random, "--profile", slow)
	check.Equal(t, "code", code, 1)
	check.Contains(t, "errs", errs, "cannot carry the trace")
	check.Contains(t, "errs", errs, "the link takes 75")
	check.Contains(t, "out", out, "partial")
}

// TestReplayGateways: the settings in configurations count: their profile, names, rules and filters.
func TestReplayGateways(t *testing.T) {
	file, _ := synthTrace(t, 3)
	hq := configuration(t, 1, "end = \"shore\"\n[[link.peer]]\nid = 2\nname = \"ship\"\n[[link.peer]]\nid = 9\nname = \"other\"\n"+
		"[[filter]]\nsite = \"other\"\naction = \"deny\"\n[[filter]]\nsite = \"ship\"\ndirection = \"out\"\ntype = \"message\"\noctets_max = 700\naction = \"deny\"\n")
	ship := configuration(t, 2, "[[compact.rule]]\neffort = \"none\"\n")
	played := func(args ...string) (res replay.Result) {
		t.Helper()
		_, out, errs := call(replayCommand, append([]string{file, "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &res); err != nil {
			t.Fatalf("%v: %s", err, errs)
		}
		return res
	}
	plain := played("--profile", "geo-satcom-128k")
	both := played("--gateways", fmt.Sprint(ship, ",", hq))
	if both.Profile != "geo-satcom-128k" || both.Ledger[0].From != "node2" {
		t.Errorf("profile %s, ledger of %s", both.Profile, both.Ledger[0].From)
	}
	if both.LinkBytes.Up < plain.LinkBytes.Up*5/4 {
		t.Errorf("%d octets to shore without compaction, %d with it", both.LinkBytes.Up, plain.LinkBytes.Up)
	}
	lost := 0
	for _, s := range both.Samples {
		if s.ArrivedS == nil {
			lost++
			if s.Up || s.Octets > 700 {
				t.Errorf("the filter took %+v", s)
			}
		} else if !s.Up && s.Octets <= 700 {
			t.Errorf("the filter let pass %+v", s)
		}
	}
	check.Differ(t, "lost", lost, 0)
	check.Equal(t, "both.Messages.Lost", both.Messages.Lost, lost)
	check.Equal(t, "both.Messages.Refused", both.Messages.Refused, lost)
	check.True(t, "not both.Partial", !both.Partial)
	check.Contains(t, "fmt.Sprint(both.Remarks)", fmt.Sprint(both.Remarks), "refused, by filters")
	if one := played("--gateways", ship); one.LinkBytes.Down < plain.LinkBytes.Down*5/4 || one.Messages.Lost != 0 {
		t.Errorf("one configuration for both: %d octets to the ship, %+v", one.LinkBytes.Down, one.Messages)
	}
	if err := os.WriteFile(hq, []byte("[node]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call(replayCommand, file, "--gateways", hq); code != 1 || !strings.Contains(errs, "node.id") {
		t.Errorf("a bad configuration: exit %d: %s", code, errs)
	}
}
