package field

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPeerArgs(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{KindJXSE27, KindJXTA22} {
		target := filepath.Join(dir, d, "target")
		if err := os.MkdirAll(target, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(target, "peer.jar"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name       string
		cfg        PeerConfig
		begin, end string
	}{
		{"edge in a namespace", PeerConfig{Netns: "x", Kind: KindJXSE27, Name: "a", Host: "h", Port: 1, Seed: "tcp://s:2"},
			"ip netns exec x java ", "/jxse27/target/peer.jar --name a --host h --port 1 --seed tcp://s:2"},
		{"unsigned", PeerConfig{Kind: KindJXSE27Unsigned, Name: "a", Host: "h", Port: 1, Seed: "tcp://s:2"},
			"java ", "/jxse27/target/peer.jar --name a --host h --port 1 --seed tcp://s:2 --unsigned"},
		{"HTTP", PeerConfig{Kind: KindJXTA22, Name: "a", Host: "h", Port: 1, Seed: "http://s:2", HTTP: true},
			"java ", "/jxta22/target/peer.jar --name a --host h --port 1 --seed http://s:2 --http"},
		{"rendezvous", PeerConfig{Kind: KindJXTA22, Name: "a", Host: "h", Port: 1, Role: "rdv"},
			"java ", "/jxta22/target/peer.jar --name a --host h --port 1 --role rdv"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.JarDir = dir
			args, err := peerArgs(tt.cfg)
			if got := strings.Join(args, " "); err != nil || !strings.HasPrefix(got, tt.begin) || !strings.HasSuffix(got, tt.end) {
				t.Errorf("peerArgs = %q, %v; want %q ... %q", got, err, tt.begin, tt.end)
			}
		})
	}
}

func TestStartPeerRefuses(t *testing.T) {
	for _, cfg := range []PeerConfig{
		{Kind: "jxta99", JarDir: "."},
		{Kind: KindJXSE27, JarDir: t.TempDir()}, // not built
	} {
		if p, err := StartPeer(context.Background(), cfg); err == nil {
			t.Errorf("StartPeer(%+v) = %v; want an error", cfg, p)
		}
	}
}

func TestEventTimes(t *testing.T) {
	var e Event
	line := `{"t":1795175626207.983,"ev":"received","name":"b-svc","from":"B","seq":7,"ok":true,"t_sent":1795175626207.001}`
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	if want := time.UnixMicro(1795175626207983); !e.At().Equal(want) {
		t.Errorf("At = %v; want %v", e.At(), want)
	}
	if want := time.UnixMicro(1795175626207001); !e.SentAt().Equal(want) {
		t.Errorf("SentAt = %v; want %v", e.SentAt(), want)
	}
	if !e.OK || e.Seq != 7 || e.From != "B" {
		t.Errorf("event %+v", e)
	}
}
