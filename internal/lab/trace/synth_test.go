package trace

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// Octets in and out, and the duration, are those published: tables 5.1 and 5.10.
func TestSynth(t *testing.T) {
	want := map[int]struct {
		seconds float64
		in, out int64
	}{1: {21*60 + 36, 41134, 37714}, 2: {23*60 + 12, 45059, 41514}, 3: {20*60 + 6, 28019, 30856}, 4: {26*60 + 31, 35167, 39655}, 5: {30*60 + 27, 56547, 62472}}
	for run, w := range want {
		for _, content := range []string{ContentXML, ContentText, ContentRandom} {
			for seed := range uint64(3) {
				t.Run(fmt.Sprintf("run %d, %s, seed %d", run, content, seed), func(t *testing.T) {
					var b, again bytes.Buffer
					totals, err := Synth(&b, run, seed, content)
					if err != nil {
						t.Fatal(err)
					}
					f, err := ReadFile(bytes.NewReader(b.Bytes()))
					if err != nil {
						t.Fatal(err)
					}
					check.Equal(t, "f.Totals", f.Totals, totals)
					check.Equal(t, "totals.In", totals.In, w.in)
					check.Equal(t, "totals.Out", totals.Out, w.out)
					check.Equal(t, "f.Header.Duration", f.Header.Duration, w.seconds)
					checkSynth(t, f, content)
					if _, err := Synth(&again, run, seed, content); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
						t.Errorf("another trace for the same seed, %v", err)
					}
				})
			}
		}
	}
	var a, b bytes.Buffer
	Synth(&a, 1, 1, ContentXML)
	Synth(&b, 1, 2, ContentXML)
	if bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the seed makes no difference")
	}
	for _, bad := range []struct {
		run     int
		content string
	}{{0, ContentXML}, {6, ContentXML}, {1, "prose"}} {
		if _, err := Synth(io.Discard, bad.run, 1, bad.content); err == nil {
			t.Errorf("run %d, %q: no error", bad.run, bad.content)
		}
	}
}

// checkSynth: messages are of the requested kind, none is empty, and no two are the same.
func checkSynth(t *testing.T, f *File, content string) {
	t.Helper()
	seen := map[string]bool{}
	full := 0
	for _, l := range f.Lines {
		if l.Do != EventSend {
			continue
		}
		b := l.Parts[0].Content()
		if seen[string(b)] || len(b) < 32 {
			t.Errorf("at %v: a message of %d octets, or one that was there before", l.T, len(b))
		}
		seen[string(b)] = true
		switch content {
		case ContentXML:
			d := xml.NewDecoder(bytes.NewReader(b))
			tracks := 0
			for {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("at %v: %v in %q", l.T, err, b)
				}
				if e, ok := token.(xml.StartElement); ok && e.Name.Local == "track" {
					tracks++
				}
			}
			if tracks == 0 {
				t.Errorf("at %v: no track in %q", l.T, b)
			}
			if tracks > 10 {
				full++
			}
		case ContentText:
			if strings.ContainsFunc(string(b), func(r rune) bool { return r > '~' || r < ' ' && r != '\n' }) || bytes.Count(b, []byte("\n")) < 2 {
				t.Errorf("at %v: %q", l.T, b)
			}
		}
	}
	if content == ContentXML && full < 2 {
		t.Errorf("%d full pictures", full)
	}
}
