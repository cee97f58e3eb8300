package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/lab/teach"
	"aldis/internal/operator/commands"
)

// TestCorpusBuild makes a corpus from a directory, from lines, from a capture and from a trace, and codes with it.
func TestCorpusBuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		check.NoError(check.Fatal(t), os.MkdirAll(filepath.Dir(file), 0o700))
		check.NoError(check.Fatal(t), os.WriteFile(file, text, 0o600))
		return file
	}
	message := func(i int) []byte {
		return fmt.Appendf(nil, "##DRAUGHT fore=%d.%d aft=%d.%d list=%d port trim by the head?no surveyor=James Quoin##", i%9, i%7, i%8, i%3, i%5)
	}
	var lines bytes.Buffer
	for i := range 120 {
		put(fmt.Sprintf("samples/sub%d/%d.txt", i%3, i), message(i))
		fmt.Fprintf(&lines, "%s\r\n", message(i))
	}
	put("samples/.hidden", []byte("nobody reads this"))
	build := func(args ...string) (r teach.Report, file string) {
		t.Helper()
		file = filepath.Join(dir, "net.corpus")
		code, out, errs := run(t, append([]string{"corpus", "build", "--json", "-o", file}, args...)...)
		check.Equal(check.Fatal(t), errs, code, 0)
		check.NoError(check.Fatal(t), json.Unmarshal([]byte(out), &r))
		return r, file
	}
	of := func(file string) string { b, _ := os.ReadFile(file); return string(b) }
	r, file := build(filepath.Join(dir, "samples"))
	whole := of(file)
	check.Equal(check.Fatal(t), "kinds", len(r.Kinds), 1)
	check.True(t, "it gains", r.Kinds[0].After*2 < r.Kinds[0].Before, r.Kinds[0])
	check.Equal(check.Fatal(t), "names", len(r.Private), 1)
	check.Equal(t, "name", r.Private[0].What, "personal name")
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(lines.Bytes())
	z.Close()
	_, file = build("--lines", put("log.gz", zipped.Bytes()))
	check.True(t, "the same corpus of lines", of(file) == whole)
	r, file = build("--mask", filepath.Join(dir, "samples"))
	check.True(t, "masked", r.Masked && !bytes.Contains([]byte(of(file)), []byte("Quoin")))
	plainCost, out, _ := run(t, "compact", "--json", put("new", message(400)))
	check.Equal(t, "exit", plainCost, 0)
	var before, after []operator.Compacted
	check.NoError(t, json.Unmarshal([]byte(out), &before))
	_, out, _ = run(t, "compact", "--json", "--corpus", file, filepath.Join(dir, "new"))
	check.NoError(t, json.Unmarshal([]byte(out), &after))
	check.True(t, "coded by it", after[0].Codec == "taught" && after[0].CodedOctets*2 < before[0].CodedOctets, after, before)

	code, out, errs := run(t, "corpus", "show", "--text", file)
	check.Equal(t, errs, code, 0)
	check.Contains(t, "shown", out, "lines DRAUGHT")
	check.Contains(t, "shown", out, "##DRAUGHT fore=")
	code, out, errs = run(t, "corpus", "build", "-o", file, filepath.Join(dir, "samples"))
	check.Equal(t, errs, code, 0)
	check.Contains(t, "said", out, "warning: personal name in ")

	trace := filepath.Join(dir, "run.trace")
	code, _, errs = run(t, "synth", "blue-game", "--run", "1", "-o", trace)
	check.Equal(check.Fatal(t), errs, code, 0)
	r, _ = build(trace)
	check.True(t, "a trace has samples", len(r.Kinds) > 0 && r.Messages > 0)
	r, _ = build("../../internal/lab/trace/testdata")
	check.True(t, "so have captures", r.Messages > 0)

	noise := rand.NewChaCha8([32]byte{1})
	for i := range 8 {
		octets := make([]byte, 90)
		noise.Read(octets)
		put(fmt.Sprintf("noise/%d", i), octets)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"build", dir}, "-o FILE"}, {[]string{"build", "-o", file}, "needs samples"}, {[]string{"build", "-o", file, dir + "/none"}, "no such file"},
		{[]string{"build", "-o", file, put("empty", nil)}, "no sample"},
		{[]string{"build", "-o", file, filepath.Join(dir, "noise")}, "samples are of no use"},
		{[]string{"show"}, "name the file"}, {[]string{"show", filepath.Join(dir, "new")}, "no corpus of a network"}, {[]string{"make"}, "none of build, show, send"},
	} {
		code, _, errs := run(t, append([]string{"corpus"}, c.args...)...)
		check.True(t, fmt.Sprint(c.args), code != 0)
		check.Contains(t, fmt.Sprint(c.args), errs, c.says)
	}
}
