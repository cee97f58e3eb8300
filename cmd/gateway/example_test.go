package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/operator/commands"
)

func TestExample(t *testing.T) {
	s := newSite(t, 2, "")
	s.write(t, filepath.Join(s.dir, "data"), "1 127.0.0.1:7142", "3")
	rules := `
[[filter]]
label = "no charts"
type = "other"
root = "x:Chart"
octets_min = 100
action = "local"
[[filter]]
site = "node3"
type = "pipe"
action = "deny"
[[filter]]
type = "message"
action = "allow"
rate = "10/min"
`
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, append(text, rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	chart := filepath.Join(s.dir, "chart.xml")
	if err := os.WriteFile(chart, []byte("<x:Chart><Name>coast</Name>"+strings.Repeat("<P>1</P>", 20)+"</x:Chart>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what string
		code int
		says []string
	}{
		{chart, 0, []string{`other "coast"`, "root x:Chart", `out to node1: local by rule "no charts"`, "served here, never sent"}},
		{"file=" + chart + ",group=urn:jxta:uuid-AA02", 0, []string{"group uuid-AA02", `local by rule "no charts"`}},
		{"type=pipe,name=x,size=300", 0, []string{"out to node1: allow by default", "out to node3: deny by the rule of line", "its type does not fit", "its site does not fit"}},
		{"type=pipe,site=3,direction=in", 0, []string{"in from node3: deny"}},
		{"type=message", 0, []string{"10/min; what is beyond that is dropped"}},
		{"type=boat", 2, []string{"must be one of peer, group"}},
		{"size=3", 2, []string{"type= is missing"}},
		{"type=pipe,colour=red", 2, []string{`there is no key "colour"`}},
		{"type=pipe,pipe=urn:jxta:uuid-AA03", 2, []string{"is an id of another kind"}},
		{"type=pipe,site=here", 2, []string{"neither name nor id"}},
		{"type=pipe,size=-1", 2, []string{"must be a number of octets"}},
		{"/nowhere.xml", 2, []string{"no such file"}},
		{s.file, 2, []string{"is no XML document"}},
	} {
		code, out, errs := run(t, "check", s.file, "--example", tt.what)
		if tt.code != 0 {
			out = errs
		}
		for _, want := range tt.says {
			if code != tt.code || !strings.Contains(out, want) {
				t.Errorf("%s: exit %d, no %q in\n%s%s", tt.what, code, want, out, errs)
			}
		}
	}
	var r operator.ExampleReport
	_, out, _ := run(t, "check", "-c", s.file, "--example", "type=pipe,direction=out", "--json")
	{
		err := json.Unmarshal([]byte(out), &r)
		in := check.In(t, out)
		check.NoError(check.Fatal(in), err)
		check.Equal(check.Fatal(in), "len(r.Verdicts)", len(r.Verdicts), 2)
		check.Equal(in, "r.Verdicts[1].Action", r.Verdicts[1].Action, "deny")
		check.Equal(in, "r.Verdicts[1].Site", r.Verdicts[1].Site, "node3")
		check.Equal(in, "len(r.Verdicts[0].Passed)", len(r.Verdicts[0].Passed), 3)
	}
	if code, _, errs := run(t, "check", "-c", s.file, "--json"); code != 2 || !strings.Contains(errs, "--json goes with --example") {
		t.Errorf("--json alone: %d %s", code, errs)
	}
}

// The rules in docs/configure.md work as printed there.
func TestExamplesOfTheManual(t *testing.T) {
	manual, err := os.ReadFile("../../docs/configure.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(manual), "\n## Rules\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var rules strings.Builder
	for _, block := range strings.Split(section, "```toml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		rules.WriteString(block + "\n")
	}
	if n := strings.Count(rules.String(), "[[filter]]") + strings.Count(rules.String(), "[[message]]"); n != 9 {
		t.Errorf("%d rules in the manual:\n%s", n, rules.String())
	}
	s := newSite(t, 2, "")
	s.write(t, filepath.Join(s.dir, "data"), "1 127.0.0.1:7142")
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, append(append(text, '\n'), rules.String()...), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := run(t, "check", "-c", s.file); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
	for what, want := range map[string]string{
		"type=spec,name=draft of a plan,size=600": `deny by rule "no drafts"`,
		"root=x:Chart,size=5000":                  `out: local by rule "charts stay here"`,
		"type=question,name=x*":                   "10/min; what is beyond that waits",
		"type=message,element=track,size=200":     "priority by the rule of line",
		"type=message,mime=image/png,size=20000":  "deferred by the rule of line",
		"type=message,element=alarm":              "flash by the rule of line",
		"type=message,element=track,size=2000":    "routine by default",
	} {
		if _, out, errs := run(t, "check", "-c", s.file, "--example", what); !strings.Contains(out, want) {
			t.Errorf("%s: no %q in %s%s", what, want, out, errs)
		}
	}
}

// An example may have a message's data, for rules on content.
func TestExampleContent(t *testing.T) {
	s := newSite(t, 2, "")
	s.write(t, filepath.Join(s.dir, "data"), "1 127.0.0.1:7142", "3")
	const rules = `
[[filter]]
label = "no drafts"
type = "message"
content = "json:/state = draft"
action = "deny"
[[message]]
label = "alarms first"
content = "json:/alarm"
precedence = "flash"
`
	text, err := os.ReadFile(s.file)
	check.NoError(check.Fatal(t), err)
	check.NoError(t, os.WriteFile(s.file, append(text, rules...), 0o600))
	report, order := filepath.Join(s.dir, "report.json"), filepath.Join(s.dir, "order.json")
	check.NoError(t, os.WriteFile(report, []byte(`{"state":"draft","alarm":{"no":7}}`), 0o600))
	check.NoError(t, os.WriteFile(order, []byte(`{"state":"final"}`), 0o600))
	for what, says := range map[string][]string{
		report:          {`deny by rule "no drafts"`, `sent: flash by rule "alarms first" (line `},
		order:           {"allow by default", "its content does not fit", "sent: routine by default"},
		"/nowhere.json": {"no such file"},
	} {
		_, out, errs := run(t, "check", "-c", s.file, "--example", "type=message,data="+what)
		for _, part := range says {
			check.Contains(t, what, out+errs, part)
		}
	}
}

// check says through which gateway a site is reached, and which link an example takes there.
func TestCheckTellsTheHop(t *testing.T) {
	s := newSite(t, 3, "")
	text := fmt.Sprintf("[node]\nid = 3\nname = \"ship1\"\ndata_dir = %q\n[lan]\ntcp = %q\n[[link]]\nname = \"sat\"\nprofile = \"iridium-certus-100\"\nlisten = \"127.0.0.1:7142\"\nkey_file = \"net.key\"\n"+
		"[[link.peer]]\nid = 1\nname = \"hq\"\naddress = \"10.0.0.1:7142\"\n[[link.peer]]\nid = 4\nname = \"ship2\"\nvia = \"hq\"\n", s.dir+"/data", s.lan)
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, out, errs := run(t, "check", "-c", s.file)
	wants(t, out+errs, "via hq when it does not answer")
	_, out, errs = run(t, "check", "-c", s.file, "--example", "type=message,element=track,size=200")
	wants(t, out+errs, "link to hq: sat", "link to ship2: relay by default, the cheapest; of relay via hq at 2 in about 1.3 s")
}
