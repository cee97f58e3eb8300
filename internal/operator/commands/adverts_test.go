package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"aldis/internal/gateway/api"
)

func TestAdvertPrinter(t *testing.T) {
	rows := []api.AdvertRow{
		{Origin: "local", Group: "jxta-NetGroup", Type: "pipe", Name: "ship track", ID: "uuid-04", Octets: 334, LifetimeS: 3540,
			Sites: []api.Travel{{Site: "hq", State: "held"}, {Site: "buoy", State: "stays", Why: "not asked for, and not in use here"}}},
		{Origin: "hq", Group: "uuid-02", Type: "spec", ID: "uuid-06", LifetimeS: 60, Sites: []api.Travel{}},
	}
	var text, list bytes.Buffer
	for _, p := range []*advertPrinter{{out: &text, total: 7}, {out: &list, json: true, total: 7}} {
		for _, r := range rows {
			if err := p.row(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.end(true); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`"ship track", net, uuid-04; hq: held, buoy: stays (not asked for, and not in use here)`, "59m0s", "2 shown, the cache has 7: --limit 0 shows all"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	var got []api.AdvertRow
	if err := json.Unmarshal(list.Bytes(), &got); err != nil || len(got) != 2 || got[0].Sites[1].Site != "buoy" {
		t.Errorf("%v: %s", err, list.String())
	}
	var none bytes.Buffer
	(&advertPrinter{out: &none, json: true}).end(false)
	if none.String() != "[]\n" {
		t.Errorf("an empty list is %q", none.String())
	}
}

// The gateway stops answering in the middle, or the operator has seen enough.
func TestAdvertsCutShort(t *testing.T) {
	row := `{"origin":"local","group":"jxta-NetGroup","type":"pipe","id":"uuid-04","octets":3,"lifetime_s":1,"sites":[]}` + "\n"
	for _, tt := range []struct{ name, answer, says string }{
		{"loop", row + `{"error":"the loop does not answer"}` + "\n", "ends after 1: the loop does not answer"},
		{"nonsense", row + "{", "ends in the middle, after 1"},
		{"limit", row + `{"error":"limit"}` + "\n", ""},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, tt.answer) }))
		var out bytes.Buffer
		err := adverts(t.Context(), netip.MustParseAddrPort(s.Listener.Addr().String()), nil, &advertPrinter{out: &out})
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
		s.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, row)
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	}))
	defer s.Close()
	p := advertPrinter{out: io.Discard}
	if err := adverts(ctx, netip.MustParseAddrPort(s.Listener.Addr().String()), nil, &p); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
