package teach

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
)

// Messages of other authors: DIR has taught/KIND/* and judged/KIND/*, each file a message, with different sources in the two. Without DIR
// the samples of the other tests are used.
var wordsDir = flag.String("words", "", "`directory` with taught/KIND and judged/KIND, a message a file: what these cost is printed as a table")

// mostJudged is how many messages of a kind are judged.
const mostJudged = 60

// wordsRow is the cost of the first messages of a kind: means in octets, ours including the octet that names the codec.
type wordsRow struct {
	kind                            string
	n                               int
	octets, ours, taught            float64
	brotli, zstd, zstdWithItsSample float64 // 0: the command is not here
}

func (r wordsRow) String() string {
	figure := func(v float64) string {
		if v == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("| %s | %d | %.1f | %s | %s | %s | **%.1f** | **%.1f** |", r.kind, r.n, r.octets, figure(r.brotli), figure(r.zstd), figure(r.zstdWithItsSample), r.ours, r.taught)
}

func messagesIn(t *testing.T, dir string) (list [][]byte) {
	files, err := os.ReadDir(dir)
	check.NoError(check.Fatal(t), err)
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		check.NoError(check.Fatal(t), err)
		list = append(list, text)
	}
	return list
}

// TestWordsOfStrangers: every message comes back, and a corpus of its kind makes no kind dearer.
func TestWordsOfStrangers(t *testing.T) {
	dir := *wordsDir
	if dir == "" {
		dir = t.TempDir()
		for i, s := range samplesOf(3, 60) {
			to := filepath.Join(dir, []string{"taught", "judged"}[i/3%2], []string{"bilge", "larder", "noise"}[i%3])
			check.NoError(check.Fatal(t), os.MkdirAll(to, 0o755))
			check.NoError(check.Fatal(t), os.WriteFile(filepath.Join(to, fmt.Sprint(i)), s.Text, 0o600))
		}
	}
	kinds, err := os.ReadDir(filepath.Join(dir, "judged"))
	check.NoError(check.Fatal(t), err)
	var rows []wordsRow
	for _, kind := range kinds {
		r := wordsOf(t, dir, kind.Name())
		t.Log(r)
		check.True(t, kind.Name()+" is no dearer taught", r.taught <= r.ours, r.taught, r.ours)
		rows = append(rows, r)
	}
	check.True(t, "kinds", len(rows) >= 3)
	var toBrotli, below, taughtBelow float64
	for _, r := range rows {
		if r.brotli > 0 && r.zstd > 0 {
			toBrotli += r.ours / r.brotli / float64(len(rows))
			below += float64(btoi(r.ours <= r.zstdWithItsSample))
			taughtBelow += float64(btoi(r.taught <= r.zstdWithItsSample))
		}
	}
	t.Logf("of brotli's octets %.3f; below zstd with a dictionary of the kind: %.0f of %d, taught %.0f", toBrotli, below, len(rows), taughtBelow)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func wordsOf(t *testing.T, dir, kind string) wordsRow {
	taught, judged := messagesIn(t, filepath.Join(dir, "taught", kind)), messagesIn(t, filepath.Join(dir, "judged", kind))
	judged = judged[:min(len(judged), mostJudged)]
	var samples []Sample
	for _, text := range taught {
		samples = append(samples, Sample{Text: text, From: kind})
	}
	plain, with := compact.Coder{}, compact.Coder{}
	if file, _, err := Build(samples, Options{}); err == nil {
		f, err := compact.ReadCorpus(file)
		check.NoError(check.Fatal(t), err)
		with.Network = f.Learn()
	}
	r := wordsRow{kind: kind, n: len(judged)}
	n := float64(len(judged))
	for _, text := range judged {
		r.octets += float64(len(text)) / n
		for c, sum := range map[*compact.Coder]*float64{&plain: &r.ours, &with: &r.taught} {
			code, codec := c.Append(nil, text)
			back, err := c.Expand(codec, code, len(text))
			check.True(check.Fatal(t), kind+" comes back", err == nil && bytes.Equal(back, text), codec, err)
			*sum += float64(1+len(code)) / n
		}
	}
	if *wordsDir != "" {
		r.brotli, r.zstd, r.zstdWithItsSample = others(t, taught, judged)
	}
	return r
}

// others is the sizes of messages packed by brotli and zstd, zstd also with the best of three dictionaries made from the taught messages.
func others(t *testing.T, taught, judged [][]byte) (brotli, zstd, best float64) {
	dir := t.TempDir()
	write := func(sub string, list [][]byte) (files []string) {
		check.NoError(check.Fatal(t), os.MkdirAll(filepath.Join(dir, sub), 0o755))
		for i, text := range list {
			files = append(files, filepath.Join(dir, sub, fmt.Sprint(i)))
			check.NoError(check.Fatal(t), os.WriteFile(files[i], text, 0o600))
		}
		return files
	}
	files, samples := write("judged", judged), write("taught", taught)
	mean := func(end string, less func(b []byte) int, args ...string) (octets float64) {
		if exec.Command(args[0], append(args[1:], files...)...).Run() != nil {
			return 0
		}
		for _, f := range files {
			b, err := os.ReadFile(f + end)
			check.NoError(check.Fatal(t), err)
			octets += float64(len(b)-less(b)) / float64(len(files))
		}
		return octets
	}
	brotli = mean(".br", func([]byte) int { return 0 }, "brotli", "-q", "11", "-w", "22", "-k", "-f")
	with := func(args ...string) float64 {
		return mean(".zst", zstdFrame, append([]string{"zstd", "-19", "-q", "-f", "--no-check", "--no-dictID"}, args...)...)
	}
	zstd = with()
	raw := filepath.Join(dir, "raw")
	check.NoError(check.Fatal(t), os.WriteFile(raw, bytes.Join(taught, nil)[:min(128<<10, len(bytes.Join(taught, nil)))], 0o600))
	best = with("-D", raw)
	for _, size := range []string{"16384", "110000"} {
		dict := filepath.Join(dir, "dict"+size)
		if exec.Command("zstd", append([]string{"-q", "--train", "--maxdict=" + size, "-o", dict}, samples...)...).Run() == nil {
			best = min(best, with("-D", dict))
		}
	}
	return brotli, zstd, best
}

// zstdFrame is how many octets of a frame no link would carry: its mark and the size of the text (RFC 8878, 3.1.1).
func zstdFrame(b []byte) int {
	if len(b) < 5 || binary.LittleEndian.Uint32(b) != 0xfd2fb528 {
		return 0
	}
	size := []int{0, 2, 4, 8}[b[4]>>6]
	if size == 0 {
		size = int(b[4] >> 5 & 1)
	}
	return 4 + size
}
