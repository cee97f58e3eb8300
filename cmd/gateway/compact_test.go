package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/commands"
)

func TestCompact(t *testing.T) {
	dir := t.TempDir()
	spec := []byte("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE jxta:MSA>\n<jxta:MSA xml:space=\"default\" xmlns:jxta=\"http://jxta.org\">\n\t\n" +
		"\t<MSID>\n\t\turn:jxta:uuid-0B8C1E6F2D734A5C8E9F10213243546506F1E2D3C4B5A69788796A5B4C3D2E1F06\n\t</MSID>\n\t<Name>\n\t\tJXTASPEC:watch bill cutter\n\t</Name>\n" +
		"\t<Crtr>\n\t\taldis\n\t</Crtr>\n\t<SURI>\n\t\turn:watch bill\n\t</SURI>\n\t<Vers>\n\t\t1.0\n\t</Vers>\n</jxta:MSA>\n")
	track := func(seq int) []byte {
		return fmt.Appendf(nil, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<track xmlns=\"urn:trk\">\n  <id>K-417</id>\n  <seq>%d</seq>\n  <position>\n    <lat>61.2%02d71</lat>\n"+
			"    <lon>4.9%02d38</lon>\n  </position>\n  <movement>\n    <crs>213.4</crs>\n    <spd>%d.5</spd>\n  </movement>\n  <class>\n    <typ>SURF</typ>\n    <idn>FRD</idn>\n  </class>\n</track>\n",
			seq, 3*seq%100, 7*seq%100, 10+seq%3)
	}
	random := make([]byte, 100)
	rand.NewChaCha8([32]byte{31}).Read(random)
	var files []string
	for i, text := range [][]byte{spec, track(31), track(32), track(33), random, nil} {
		files = append(files, filepath.Join(dir, string(rune('a'+i))))
		if err := os.WriteFile(files[i], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(args ...string) (list []operator.Compacted) {
		t.Helper()
		code, out, errs := run(t, append([]string{"compact"}, args...)...)
		if code != 0 || errs != "" {
			t.Fatalf("exit %d: %s", code, errs)
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	alone := read(append([]string{"--json"}, files...)...)
	after := read(append(files, "--json", "--sequence")...)
	if len(alone) != len(files) || len(after) != len(files) {
		t.Fatalf("%d and %d of %d", len(alone), len(after), len(files))
	}
	for i, c := range alone {
		check.Equal(t, "c.File", c.File, files[i])
		check.True(t, "c.CodedOctets <= c.Octets+1", c.CodedOctets <= c.Octets+1, c.CodedOctets, c.Octets+1)
		check.Differ(check.Fatal(t), "len(c.Stages)", len(c.Stages), 0)
		check.Equal(t, "c.Stages[0].CodedOctets", c.Stages[0].CodedOctets, c.Octets+1)
	}
	if alone[0].Codec != "modelled-xml" || alone[0].CodedOctets*6 > alone[0].Octets || alone[4].Codec != "stored" {
		t.Errorf("%+v, %+v", alone[0], alone[4])
	}
	if alone[2].CodedOctets != alone[3].CodedOctets && alone[3].CodedOctets < 15 {
		t.Errorf("alone, but something was learned: %+v", alone[3])
	}
	if after[3].Codec != "learned-xml" || after[3].CodedOctets >= alone[3].CodedOctets {
		t.Errorf("nothing was learned: %+v", after[3])
	}
	if got := read("--json", "--equivalent", files[0]); got[0].CodedOctets > alone[0].CodedOctets {
		t.Errorf("canonical %+v", got[0])
	}
	code, out, _ := run(t, append([]string{"compact"}, files...)...)
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	wants(t, out, "modelled-xml", files[5], "stored")

	if code, _, errs := run(t, "compact", filepath.Join(dir, "none")); code != 1 || errs == "" {
		t.Errorf("no such file: exit %d: %s", code, errs)
	}
	if code, _, _ := run(t, "compact"); code != 2 {
		t.Errorf("no file: exit %d", code)
	}
}

func TestCompactThereAndBack(t *testing.T) {
	dir := t.TempDir()
	file, coded, back := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	const text = "The relief boat is late, wait for her at the outer buoy.\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"compact", file, "-o", coded}, {"compact", "--expand", coded, "-o", back}} {
		if code, out, errs := run(t, args...); code != 0 || out != "" || errs != "" {
			t.Fatalf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
	b, err := os.ReadFile(back)
	check.NoError(t, err)
	check.Equal(t, "what comes back", string(b), text)
	b, err = os.ReadFile(coded)
	check.NoError(t, err)
	check.True(t, "it is smaller", len(b) < len(text), len(b), len(text))
	b[len(b)-2] ^= 4
	check.NoError(t, os.WriteFile(coded, b, 0o600))
	code, out, errs := run(t, "compact", "--expand", coded)
	if code != 1 || out != "" {
		t.Errorf("damaged: exit %d: %s", code, out)
	}
	wants(t, errs, "damaged")
	code, _, errs = run(t, "compact", "--expand", file)
	check.Equal(t, "exit code", code, 1)
	wants(t, errs, "not written by gateway compact -o")
	if code, _, _ := run(t, "compact", "--json", file, "-o", coded); code != 2 {
		t.Errorf("--json with -o: exit %d", code)
	}
}

// TestQuery: the values of files at a place, plain and coded.
func TestQuery(t *testing.T) {
	dir := t.TempDir()
	file, other, coded := filepath.Join(dir, "a.xml"), filepath.Join(dir, "b.json"), filepath.Join(dir, "a.coded")
	check.NoError(t, os.WriteFile(file, []byte(`<event type="a-f-G"><id>7</id></event>`), 0o600))
	check.NoError(t, os.WriteFile(other, []byte(`{"id":8}`), 0o600))
	code, _, errs := run(t, "compact", file, "-o", coded)
	check.Equal(check.Fatal(t), errs, code, 0)
	for _, c := range []struct {
		condition string
		code      int
		fits      []bool
	}{{"xml:/event/@type = a-f-*", 0, []bool{true, false, true}}, {"xml:/event/id = 8", 1, []bool{false, false, false}}, {"json:/id", 0, []bool{false, true, false}}} {
		code, out, errs := run(t, "compact", "--json", "--query", c.condition, file, other, coded)
		check.Equal(t, c.condition+errs, code, c.code)
		var list []operator.Queried
		check.NoError(check.Fatal(t), json.Unmarshal([]byte(out), &list))
		for i, q := range list {
			check.Equal(t, c.condition+" of "+q.File, q.Fits, c.fits[i])
		}
	}
	_, out, _ := run(t, "compact", "--query", "xml:/event/id", file)
	check.Contains(t, "values", out, `fits`)
	check.Contains(t, "values", out, `"7"`)
	for _, args := range [][]string{{"--query", "event"}, {"--query", "xml:/a", "--sequence"}} {
		code, _, _ := run(t, append([]string{"compact", file}, args...)...)
		check.Equal(t, "exit", code, cli.ExitUsage)
	}
}
