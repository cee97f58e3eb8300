package commands

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/trace"
	"aldis/internal/link/frame"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// With a node's key and the roster analyse opens the datagrams that the node has sent, and those to it and to all. It counts datagrams
// between others, and forward-secret ones, with the reason.
func TestAnalyseRoster(t *testing.T) {
	dir := t.TempDir()
	must := check.Fatal(t)
	var nodes []roster.Node
	own := map[uint16]*seal.SigningKey{}
	for id := uint16(1); id <= 3; id++ {
		own[id] = seal.NewSigningKey([32]byte{byte(id), 5})
		nodes = append(nodes, roster.Node{ID: id, Name: fmt.Sprint("node", id), Public: own[id].Public()})
	}
	r, err := roster.Issue("blue", nil, nodes, time.Unix(1_800_000_000, 0), time.Time{}, [roster.RandomForIssue]byte{3}, seal.NewSigningKey([32]byte{9}))
	check.NoError(must, err)
	sealers, openers, fresh := map[uint16]*seal.Sealer{}, map[uint16]*seal.Opener{}, map[uint16]*seal.Forward{}
	for id := uint16(1); id <= 3; id++ {
		ring, err := roster.Ring(id, own[id], r)
		check.NoError(must, err)
		incarnation := seal.Incarnation{Number: 1_800_000_000 + uint32(id), Salt: id}
		peers := map[uint16]seal.PeerState{}
		for other := uint16(1); other <= 3; other++ {
			if other != id {
				peers[other] = seal.PeerState{}
			}
		}
		sealers[id], openers[id] = seal.NewSealer(ring, id, incarnation), seal.NewOpener(ring, id, incarnation, peers)
		fresh[id] = seal.NewForward(ring, id, incarnation, func(k *[32]byte) { *k = [32]byte{byte(id), 77} }, nil)
		sealers[id].Forward(fresh[id])
		openers[id].Forward(fresh[id])
	}
	at := func(id uint16) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(id)}), 7142)
	}
	all := netip.MustParseAddrPort("239.0.0.1:7142")
	var capture bytes.Buffer
	check.NoError(must, trace.WriteClearHead(&capture))
	n := int64(0)
	send := func(from, to uint16, long bool, f frame.Frame) {
		d, err := sealers[from].Seal(nil, to, long, frame.Append(nil, f, true))
		check.NoError(must, err)
		dst := all
		for id := uint16(1); id <= 3; id++ {
			if id != from && (to == seal.Group || to == id) {
				if to != seal.Group {
					dst = at(id)
				}
				_, body, info, err := openers[id].Open(d)
				check.NoError(must, err)
				if f, _, err := frame.Parse(body); err == nil {
					if h, ok := f.(frame.Hello); ok {
						fresh[id].Hear(from, info.Incarnation, h.Ephemeral, h.HeardEphemeral)
					}
				}
			}
		}
		n++
		check.NoError(must, (trace.Clear{At: n * 1e9, Src: at(from), Dst: dst, Payload: d}).Write(&capture))
	}
	hello := func(from, to uint16) frame.Hello {
		h := frame.Hello{Store: uint32(from), Stream: 1, Roster: 1}
		h.Ephemeral, h.HeardEphemeral = fresh[from].Says(to)
		return h
	}
	probe := frame.Probe{ID: 1}
	send(1, 2, true, hello(1, 2))
	send(1, 2, false, probe)
	send(2, 3, true, probe) // between others
	send(3, 2, true, probe)
	send(3, 1, true, probe)
	send(2, seal.Group, true, probe)
	send(3, seal.Group, false, probe)
	send(1, seal.Group, true, probe)
	send(2, 1, true, hello(2, 1))
	send(1, 2, false, probe) // from here on forward secret
	send(2, 1, false, probe)

	pcap, key, file := filepath.Join(dir, "link.pcap"), filepath.Join(dir, "node.key"), filepath.Join(dir, "net.roster")
	check.NoError(must, os.WriteFile(pcap, capture.Bytes(), 0o600))
	check.NoError(must, os.WriteFile(key, []byte(roster.NodeKeyText(own[1])), 0o600))
	check.NoError(must, os.WriteFile(file, []byte(r.Text()), 0o600))
	var opt trace.Options
	check.NoError(must, linkOptions(&opt, key, file, ""))
	report, err := analyseFile(pcap, opt, io.Discard)
	check.NoError(must, err)
	check.Equal(t, "opened", report.Link.Opened, int64(7))
	reasons := map[string]int64{}
	for _, row := range report.Link.Unopened {
		reasons[row.Name] = row.Count
	}
	check.Equal(t, "not opened", fmt.Sprint(reasons), "map[forward secret: both ends have forgotten the key:2 not of this key:2]")
	clear := filepath.Join(dir, "clear.pcap")
	code, _, errs := run(t, "analyse", pcap, "--key", key, "--roster", file, "--decrypt", "-w", clear)
	check.Equal(t, "exit of --decrypt", code, 0)
	wants(t, errs, "7 datagrams in clear, 4 as they were")

	for _, tt := range []struct{ key, roster, says string }{
		{"", file, "--roster needs --key FILE"},
		{key, "", "is the key of one node: say --roster FILE too"},
		{key, key, "--roster: "},
		{file, file, "--key: "},
	} {
		err := linkOptions(&trace.Options{}, tt.key, tt.roster, "")
		check.True(t, tt.says, err != nil && bytes.Contains([]byte(err.Error()), []byte(tt.says)), err)
	}
}
