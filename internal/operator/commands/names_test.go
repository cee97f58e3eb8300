package operator

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"

	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// harmless checks that a text has no control characters that a terminal obeys.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			t.Errorf("%s has %U:\n%q", what, r, text)
			return
		}
	}
}

// A name of ten thousand characters takes a readable line, and an invisible name is shown.
func TestNamesAreCut(t *testing.T) {
	long, hides := strings.Repeat("A", 10_000), "\u202egnp.exe\u3164"
	for _, name := range []string{long, hides} {
		var r StatusReport
		r.LAN.Peers = []jxtabridge.PeerStatus{{Peer: "uuid-1", Name: name}}
		var status, adverts bytes.Buffer
		printStatus(cli.NewPlain(&status), r, time.Now())
		p := advertPrinter{out: cli.NewPlain(&adverts)}
		check.NoError(t, p.row(api.AdvertRow{Origin: "local", Type: "pipe", Name: name, ID: "urn:jxta:" + long, Group: long}))
		for what, text := range map[string]string{"status": status.String(), "adverts": adverts.String()} {
			for _, line := range strings.Split(text, "\n") {
				check.True(t, what+" has short lines", len([]rune(line)) < 1000, len(line))
			}
			harmless(t, what, text)
			check.True(t, what+" shows what hides", name == long || strings.Contains(text, `\u202egnp.exe`) && strings.Contains(text, "\uFFFD"), text)
		}
	}
}

// wants checks that a text has these words.
func wants(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}
