package commands

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/edge/config"
	"aldis/internal/edge/keyfile"
	"aldis/internal/lab/check"
	"aldis/internal/lab/trace"
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/operator/cli"
	"aldis/internal/site"
)

// analyse reads messages coded by a net's corpus when it has that corpus, and otherwise says which one it lacks.
func TestAnalyseCorpus(t *testing.T) {
	dir, must := t.TempDir(), check.Fatal(t)
	file := func(name string) string { return filepath.Join(dir, name) }
	code, _, errs := run(t, "keys", "new", "-o", file("net.key"))
	check.Equal(must, errs, code, 0)
	key, err := keyfile.LoadKey(file("net.key"))
	check.NoError(must, err)
	var taught [][]byte
	for i := range 50 {
		taught = append(taught, fmt.Appendf(nil, "##DRAUGHT fore=7.%d aft=7.%d list=%d port trim by the head?no##", i%10, i*3%10, i%7))
	}
	corpus, err := compact.AppendCorpus(nil, taught)
	check.NoError(must, err)
	check.NoError(must, os.WriteFile(file("net.corpus"), corpus, 0o600))
	read, err := config.LoadCorpus(file("net.corpus"))
	check.NoError(must, err)
	network := read.Learn()

	m := envelope.Message{Payload: &site.Message{Scope: "jxta-NetGroup", Published: true, Topic: "uuid-01", From: "uuid-02",
		Parts: []site.Part{{Name: "body", Data: []byte("##DRAUGHT fore=7.2 aft=7.9 list=6 port trim by the head?no##")}}}}
	body, err := envelope.AppendCoded(nil, m, 1, true, &envelope.Texts{Coder: &compact.Coder{Network: network}})
	check.NoError(must, err)
	sealer := seal.NewSealer(key, 1, seal.Incarnation{Number: 1_800_000_000, Salt: 1})
	datagram, err := sealer.Seal(nil, 2, true, frame.Append(frame.Append(nil, frame.Hello{Store: 1, Stream: 1, Corpus: network.Name()}, false), frame.Data{Number: 1, Body: body}, true))
	check.NoError(must, err)
	var capture bytes.Buffer
	check.NoError(must, trace.WriteClearHead(&capture))
	check.NoError(must, (trace.Clear{At: 1e9, Src: netip.MustParseAddrPort("10.0.0.1:7142"), Dst: netip.MustParseAddrPort("10.0.0.2:7142"), Payload: datagram}).Write(&capture))
	check.NoError(must, os.WriteFile(file("link.pcap"), capture.Bytes(), 0o600))

	code, _, errs = run(t, "analyse", file("link.pcap"), "--key", file("net.key"), "--nodes", "1,2")
	check.True(t, "it says which corpus", code != 0 && strings.Contains(errs, fmt.Sprintf("the corpus %08x of the network: --corpus FILE reads it", network.Name())), errs)
	code, out, errs := run(t, "analyse", file("link.pcap"), "--key", file("net.key"), "--nodes", "1,2", "--corpus", file("net.corpus"), "--json")
	check.Equal(t, errs, code, 0)
	wants(t, out, `"envelopes_unread": 0`)
	code, _, errs = run(t, "analyse", file("link.pcap"), "--corpus", file("net.corpus"))
	check.True(t, "of no use without a key", code == cli.ExitUsage && strings.Contains(errs, "--corpus is of use with --key"), errs)
	code, _, errs = run(t, "analyse", file("link.pcap"), "--key", file("net.key"), "--corpus", file("net.key"))
	check.True(t, "another file", code == cli.ExitUsage && strings.Contains(errs, "no corpus of a network"), errs)
}
