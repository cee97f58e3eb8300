package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
)

func TestCompact(t *testing.T) {
	dir := t.TempDir()
	m := compact.NewMaker(31, &compact.Words{Services: []string{"watch bill"}, Units: []string{"cutter"}, Places: []string{"quay"}})
	track := m.Track()
	var files []string
	for i, text := range [][]byte{m.Spec(compact.Pretty), track.XML(), track.XML(), track.XML(), m.Octets(100), nil} {
		files = append(files, filepath.Join(dir, string(rune('a'+i))))
		if err := os.WriteFile(files[i], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(args ...string) (list []compacted) {
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

func TestCorpus(t *testing.T) {
	code, out, errs := run(t, "corpus")
	if code != 0 || errs != "" {
		t.Errorf("exit %d: %s", code, errs)
	}
	wants(t, out, "version 2", "the same")
}
