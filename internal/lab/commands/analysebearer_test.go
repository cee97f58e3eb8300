package commands

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"aldis/internal/edge/keyfile"
	"aldis/internal/lab/check"
	"aldis/internal/lab/trace"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
)

// Datagrams of a bearer with a name open with --link NAME, and with no other.
func TestAnalyseOfOneBearer(t *testing.T) {
	dir := t.TempDir()
	must := check.Fatal(t)
	pcap, file := filepath.Join(dir, "hf.pcap"), filepath.Join(dir, "net.key")
	check.NoError(must, keyfile.NewKey(file))
	key, err := keyfile.LoadKey(file)
	check.NoError(must, err)
	sealer := seal.NewSealer(key.On(seal.BearerNumber("hf")), 2, seal.Incarnation{Number: 1_800_000_000})
	var capture bytes.Buffer
	check.NoError(must, trace.WriteClearHead(&capture))
	for i := range int64(3) {
		d, err := sealer.Seal(nil, 1, true, frame.Append(nil, frame.Probe{ID: uint8(i)}, true))
		check.NoError(must, err)
		check.NoError(must, (trace.Clear{At: i * 1e9, Src: netip.MustParseAddrPort("10.77.1.2:7142"), Dst: netip.MustParseAddrPort("10.77.1.1:7142"), Payload: d}).Write(&capture))
	}
	check.NoError(must, os.WriteFile(pcap, capture.Bytes(), 0o600))
	for name, opened := range map[string]int64{"hf": 3, "sat": 0, "": 0} {
		opt := trace.Options{Bearer: name}
		check.NoError(must, linkOptions(&opt, file, "", "1,2"))
		report, err := analyseFile(pcap, opt, io.Discard)
		check.NoError(must, err)
		check.Equal(t, fmt.Sprintf("opened with --link %q", name), report.Link.Opened, opened)
	}
	for _, command := range [][]string{{"analyse"}, {"record", "-o", "-"}} {
		code, _, errs := run(t, append(command, pcap, "--link", "hf")...)
		check.Equal(t, "exit without a key", code, 2)
		wants(t, errs, "--link is of use with --key FILE")
	}
}
