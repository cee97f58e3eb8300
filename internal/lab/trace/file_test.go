package trace

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// recorded makes a trace of a capture as the command does.
func recorded(t testing.TB, name string, h Header) (string, *Report) {
	t.Helper()
	list := packets(t, load(t, name))
	r := analyse(list, Options{})
	var b bytes.Buffer
	f := NewFileWriter(&b, h)
	analyse(list, Options{Sink: NewRecorder(f, r.Edge, r.EdgePeer).Event})
	if _, err := f.End(r.Seconds(), r.Partial); err != nil {
		t.Fatal(err)
	}
	return b.String(), r
}

// Each message is there once: not its echo, not its copy from the rendezvous.
func TestRecord(t *testing.T) {
	tests := []struct {
		name    string
		in, out int64 // octets
		n       int64 // messages each way
		queries int
	}{
		{"jxta22-tcp", 1000, 4500, 5, 1},
		{"jxta22-http", 1000, 4500, 5, 1},
		{"jxse27-unsigned-tcp", 1000, 4500, 5, 1},
		{"jxse27-http", 1000, 4500, 5, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, r := recorded(t, tt.name, Header{Source: tt.name, Content: "data", Duration: 1})
			f, err := ReadFile(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			g := f.Totals
			check.Equal(t, "g.In", g.In, tt.in)
			check.Equal(t, "g.Out", g.Out, tt.out)
			check.Equal(t, "g.MessagesIn", g.MessagesIn, tt.n)
			check.Equal(t, "g.MessagesOut", g.MessagesOut, tt.n)
			check.True(t, "not g.Partial", !g.Partial)
			if r.Application.Out != tt.out {
				t.Errorf("analyse says %d out", r.Application.Out)
			}
			count := map[string]int{}
			for _, l := range f.Lines {
				count[l.Do]++
				if l.Do == EventSend && len(l.Parts[0].Content()) != l.Octets {
					t.Errorf("content of %d octets of %d", len(l.Parts[0].Content()), l.Octets)
				}
			}
			// The services A and B of tests; the edge listens on both pipes.
			check.Equal(t, "count[EventPublish]", count[EventPublish], 2)
			check.True(t, "count[EventQuery] >= tt.queries", count[EventQuery] >= tt.queries, count[EventQuery], tt.queries)
			check.Equal(t, "count[EventOpen]", count[EventOpen], 2)
			check.Equal(t, "count[linePipe]", count[linePipe], 2)
		})
	}
}

func TestAnonymised(t *testing.T) {
	text, _ := recorded(t, "jxse27-http", Header{Source: "a ship's name", Start: "2026", Content: "data", Anonymised: true})
	for _, secret := range []string{"cbid-", "uuid-", "10.88", "trk", "TRK", "ship", "2026", `"A"`, `"B"`, "body"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in the trace", secret)
		}
	}
	f, err := ReadFile(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if f.Totals.In != 1000 || f.Totals.Out != 4500 || f.Header.Content != "size" {
		t.Errorf("%+v, %+v", f.Header, f.Totals)
	}
	// It still shows which peer asks for a service and which one publishes it.
	names := map[string]string{}
	for _, l := range f.Lines {
		if l.Do == EventPublish {
			names[l.Name] = l.Peer
		}
		if l.Do == EventQuery && l.Name == "" {
			t.Error("a query without what it asks for")
		}
	}
	if len(names) != 2 {
		t.Errorf("services %v", names)
	}
}

func TestReadFileRefuses(t *testing.T) {
	head := `{"aldis_trace":1,"duration_s":9,"content":"size"}` + "\n"
	body := head + `{"t":0,"do":"peer","peer":"p1","edge":true}` + "\n" + `{"t":0,"do":"pipe","pipe":"q1"}` + "\n"
	tests := []struct {
		name, text string
		err        error
		says       string
	}{
		{"nothing", "", errNoTrace, "empty"},
		{"a capture", "\xd4\xc3\xb2\xa1\n", errNoTrace, "line 1"},
		{"a capture, without an end of line", "\n\r\r\n" + strings.Repeat("x", maxLineLen+1), errNoTrace, "gateway record CAPTURE -o TRACE"},
		{"a gzipped capture", "\x1f\x8b\x08\x00\x00", errNoTrace, "gateway record CAPTURE -o TRACE"},
		{"a capture, packed by zstd", "\x28\xb5\x2f\xfd\x04", errNoTrace, "gateway record CAPTURE -o TRACE"},
		{"a capture, packed by xz", "\xfd7zXZ\x00\x00", errNoTrace, "gateway record CAPTURE -o TRACE"},
		{"other JSON", `{"captures":{}}`, errNoTrace, "line 1"},
		{"a newer version", `{"aldis_trace":2}`, errNewer, "2; this gateway reads 1"},
		{"no end", body, errNoEnd, "line 3"},
		{"half a line", body + `{"t":1,"do":"se`, errLine, "line 4"},
		{"an unknown event", body + `{"t":1,"do":"dance","peer":"p1"}`, errLine, "dance"},
		{"a peer nobody named", body + `{"t":1,"do":"query","peer":"p7"}`, errUndefined, "p7"},
		{"a pipe nobody named", body + `{"t":1,"do":"open","peer":"p1","pipe":"q7"}`, errUndefined, "q7"},
		{"time backwards", body + `{"t":2,"do":"query","peer":"p1"}` + "\n" + `{"t":1,"do":"query","peer":"p1"}`, errLine, "line 5"},
		{"sizes that differ", body + `{"t":2,"do":"send","peer":"p1","pipe":"q1","octets":5,"parts":[{"name":"a","octets":4}]}`, errLine, "line 4"},
		{"content of another size", body + `{"t":2,"do":"send","peer":"p1","pipe":"q1","octets":4,"parts":[{"name":"a","octets":4,"text":"abc"}]}`, errLine, "line 4"},
		{"negative", body + `{"t":2,"do":"send","peer":"p1","pipe":"q1","octets":-4}`, errLine, "line 4"},
		{"wrong totals", body + `{"t":2,"do":"end","totals":{"events":1}}`, errTotals, "line 4"},
		{"after the end", body + `{"t":2,"do":"end","totals":{}}` + "\n" + `{"t":3,"do":"query","peer":"p1"}`, errLine, "line 5"},
		{"a line without end", body + strings.Repeat(" ", maxLineLen+1), errTooLarge, "line 4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadFile(strings.NewReader(tt.text))
			if !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %v that says %q", err, tt.err, tt.says)
			}
		})
	}
	good := body + `{"t":2,"do":"send","peer":"p1","pipe":"q1","octets":4,"later":true}` + "\n" +
		`{"t":9,"do":"end","totals":{"events":1,"messages_out":1,"out":4}}` + "\n"
	if f, err := ReadFile(strings.NewReader(good)); err != nil || f.Totals.Out != 4 || len(f.Lines) != 3 {
		t.Errorf("members of a later version: %v", err)
	}
}

// A trace that is read and written anew reads the same.
func FuzzReadFile(f *testing.F) {
	text, _ := recorded(f, "jxta22-http", Header{Source: "x", Content: "data", Duration: 1})
	f.Add([]byte(text))
	text, _ = recorded(f, "jxta22-tcp", Header{Anonymised: true})
	f.Add([]byte(text))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := ReadFile(bytes.NewReader(b))
		if err != nil {
			return
		}
		var sum TotalsOf
		for _, l := range file.Lines {
			if l.Do == EventSend {
				sum.Out += int64(l.Octets)
			}
		}
		if sum.Out != file.Totals.In+file.Totals.Out {
			t.Fatalf("totals %+v, sent %d", file.Totals, sum.Out)
		}
	})
}
