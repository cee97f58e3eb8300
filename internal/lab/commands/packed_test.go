package commands

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	upstream "github.com/ulikunitz/xz"

	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// zstOf and xzOf pack as the programs of these names do.
func zstOf(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out)
	check.NoError(check.Fatal(t), err)
	w.Write(b)
	check.NoError(check.Fatal(t), w.Close())
	return out.Bytes()
}

func xzOf(t *testing.T, b []byte, c upstream.WriterConfig) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := c.NewWriter(&out)
	check.NoError(check.Fatal(t), err)
	w.Write(b)
	check.NoError(check.Fatal(t), w.Close())
	return out.Bytes()
}

// A capture that zstd or xz has packed gives the same report as its contents.
func TestAnalysePacked(t *testing.T) {
	const name = "jxse27-tcp-iridium"
	capture := captures(t)[name]
	reports := map[string]string{}
	for ext, file := range map[string][]byte{"": capture, ".zst": zstOf(t, capture), ".xz": xzOf(t, capture, upstream.WriterConfig{})} {
		path := filepath.Join(t.TempDir(), name+".pcap"+ext)
		check.NoError(check.Fatal(t), os.WriteFile(path, file, 0o600))
		code, out, errs := run(t, "analyse", path)
		check.Equal(t, "exit code of "+ext+", and "+errs, code, cli.ExitGood)
		reports[ext] = out
		if ext == "" {
			continue
		}
		code, _, errs = run(t, "analyse", write(t, file[:len(file)/2]))
		check.True(t, "half of "+ext+" is not all: "+errs, code != cli.ExitGood, code)
		code, _, errs = run(t, "replay", path)
		check.Equal(t, "exit code of replay with "+ext, code, cli.ExitRefused)
		check.Contains(t, "why", errs, "gateway record CAPTURE -o TRACE")
	}
	for _, bomb := range [][]byte{zstOf(t, make([]byte, 64<<20)), xzOf(t, make([]byte, 64<<20), upstream.WriterConfig{})} {
		code, _, errs := run(t, "analyse", write(t, bomb))
		check.Equal(t, "exit code of zeros, and "+errs, code, cli.ExitRefused)
	}
	check.Equal(t, "with zstd", reports[".zst"], reports[""])
	check.Equal(t, "with xz", reports[".xz"], reports[""])
}
