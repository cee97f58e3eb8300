package control

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/operator/control/glance"
)

// eye is a viewer, with the views that it gets.
type eye struct {
	body  io.Closer
	lines *bufio.Scanner
}

func (b *bridgeOf) eye(t testing.TB, encoding string) *eye {
	t.Helper()
	req, err := http.NewRequest("GET", b.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", encoding)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 {
		t.Fatalf("%s", resp.Status)
	}
	check.Equal(t, "Content-Type", resp.Header.Get("Content-Type"), "text/event-stream")
	r := io.Reader(resp.Body)
	if encoding == "gzip" {
		check.Equal(t, "Content-Encoding", resp.Header.Get("Content-Encoding"), "gzip")
		if r, err = gzip.NewReader(r); err != nil {
			t.Fatal(err)
		}
	}
	e := &eye{resp.Body, bufio.NewScanner(r)}
	e.lines.Buffer(nil, 8<<20)
	return e
}

// next is the next View; false: there are no more.
func (e *eye) next(t testing.TB) (v glance.View, ok bool) {
	t.Helper()
	for e.lines.Scan() {
		if data, found := bytes.CutPrefix(e.lines.Bytes(), []byte("data: ")); found {
			if err := json.Unmarshal(data, &v); err != nil {
				t.Fatal(err)
			}
			return v, true
		}
	}
	return v, false
}

// TestOneViewForAll: the loop is asked once for all viewers, however many, and not at all if nobody watches. A viewer gets a
// View when something has changed, and only then. One stream of deflated frames serves all.
func TestOneViewForAll(t *testing.T) {
	g := newBridge(t, 4, 100)
	asked := func() (n int) { g.set(func() { n = g.asked }); return n }
	var eyes []*eye
	for i := range 20 {
		e := g.eye(t, []string{"gzip", "identity"}[i%2])
		v, ok := e.next(t)
		check.True(t, "a view comes at once", ok && len(v.Sites) == 4, v)
		eyes = append(eyes, e)
	}
	for round := range 3 {
		before := asked()
		name := fmt.Sprintf("round %d", round)
		g.set(func() { g.status.Peers[2].Name = name })
		for _, e := range eyes {
			for {
				v, ok := e.next(t)
				if !ok {
					t.Fatal("the stream has ended")
				}
				if v.Sites[2].Name == name {
					break
				}
			}
		}
		if n := asked() - before; n > 4 {
			t.Errorf("%d snapshots for 20 who look at one change", n)
		}
	}
	for _, e := range eyes {
		e.body.Close()
	}
	check.Until(t, time.Minute, "nobody looks any more", func() bool {
		g.desk.live.mu.Lock()
		defer g.desk.live.mu.Unlock()
		return !g.desk.live.telling
	})
	before := asked()
	check.Never(t, 3*viewEvery, func() string {
		if n := asked() - before; n > 0 {
			return fmt.Sprintf("%d snapshots while nobody looks", n)
		}
		return ""
	})
}

// TestTooManyLook: viewers beyond the bound are refused in words, and other requests are answered.
func TestTooManyLook(t *testing.T) {
	g := newBridge(t, 4, 0)
	for range mostLookers {
		g.eye(t, "gzip").next(t)
	}
	resp, err := http.Get(g.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	check.Equal(t, "status", resp.StatusCode, http.StatusServiceUnavailable)
	check.Contains(t, "text", string(text), "look at this gateway already")
	for _, path := range []string{"/healthz", "/status", "/", "/air"} {
		resp, err := http.Get(g.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		check.Equal(t, path, resp.StatusCode, 200)
	}
}

// TestSlowLooker: a viewer that reads nothing is disconnected, and holds nobody up.
func TestSlowLooker(t *testing.T) {
	g := newBridge(t, 64, 1000)
	g.desk.live.wait, g.desk.live.every = 200*time.Millisecond, 2*time.Millisecond
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go g.desk.Serve(ctx, ln)
	for range 8 {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.(*net.TCPConn).SetReadBuffer(4096)
		fmt.Fprintf(conn, "GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	}
	fast := g.eye(t, "gzip")
	lookers := func() int {
		g.desk.live.mu.Lock()
		defer g.desk.live.mu.Unlock()
		return len(g.desk.live.lookers)
	}
	check.Until(t, time.Minute, "all look", func() bool { return lookers() == 9 })
	for i := 0; lookers() > 1; i++ {
		if i == 20_000 {
			t.Fatalf("%d look still", lookers())
		}
		g.set(func() {
			for p := range g.status.Peers { // a frame that fills the buffers of a connection
				g.status.Peers[p].Name = fmt.Sprintf("%d %s", i, strings.Repeat("Ä", 200))
			}
		})
		if _, ok := fast.next(t); !ok {
			t.Fatal("who takes all is dropped")
		}
	}
}

// TestPageFiles: the whole page is small, is not sent twice, may load nothing from elsewhere, and its paths lead nowhere else.
func TestPageFiles(t *testing.T) {
	g := newBridge(t, 2, 0)
	get := func(path string, header ...string) (*http.Response, []byte) {
		t.Helper()
		req, err := http.NewRequest("GET", g.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", "gzip")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, body
	}
	total := 0
	for _, path := range []string{"/", "/page/style.css", "/page/theme.js", "/page/app.js", "/page/dom.js", "/page/words.js", "/page/orders.js", "/page/now.js", "/page/messages.js", "/page/air.js", "/page/map.js", "/page/whatif.js", "/page/icon.svg"} {
		resp, body := get(path)
		in := check.In(t, path)
		check.Equal(in, "status", resp.StatusCode, 200)
		check.Equal(in, "encoding", resp.Header.Get("Content-Encoding"), "gzip")
		check.Prefix(in, "policy", resp.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'")
		check.Lacks(in, "policy", resp.Header.Get("Content-Security-Policy"), "unsafe")
		check.Equal(in, "nosniff", resp.Header.Get("X-Content-Type-Options"), "nosniff")
		total += len(body)
		again, rest := get(path, "If-None-Match", resp.Header.Get("ETag"))
		check.Equal(in, "asked again", again.StatusCode, http.StatusNotModified)
		check.Equal(in, "octets when asked again", len(rest), 0)
		plain, whole := get(path, "Accept-Encoding", "identity")
		check.Equal(in, "encoding", plain.Header.Get("Content-Encoding"), "")
		for _, never := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", " style=", "onclick="} {
			check.Lacks(in, "the text", string(whole), never)
		}
	}
	t.Logf("the page is %d octets", total)
	check.True(t, "below 150 kB", total < 150_000, total)
	for _, path := range []string{"/page/../../../etc/passwd", "/page/%2e%2e/%2e%2e/go.mod", "/page/..%2f..%2fgo.mod", "/page/static/index.html", "/page/", "/page/index.html", "//etc/passwd", "/page/app.js/x"} {
		resp, body := get(path)
		if resp.StatusCode == 200 || bytes.Contains(body, []byte("module aldis")) || bytes.Contains(body, []byte("root:")) {
			t.Errorf("%s: %s %.80s", path, resp.Status, body)
		}
	}
}

// TestHostileOrders: no page of another site can give an order, whatever it sends, and no body is read for long.
func TestHostileOrders(t *testing.T) {
	g := newBridge(t, 2, 0)
	post := func(body io.Reader, header ...string) (int, string) {
		t.Helper()
		req, err := http.NewRequest("POST", g.URL+"/silence", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			return 0, err.Error() // the gateway has had enough
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	token := []string{"Authorization", "Bearer " + pageToken}
	on := func() io.Reader { return strings.NewReader(`{"on":true}`) }
	for _, tt := range []struct {
		what   string
		header []string
		code   int
	}{
		{"no token", nil, 403},
		{"a wrong token", []string{"Authorization", "Bearer " + pageToken + "x"}, 403},
		{"a token of no length", []string{"Authorization", "Bearer "}, 403},
		{"a cookie", []string{"Cookie", "token=" + pageToken}, 403},
		{"another origin", append(token, "Origin", "http://evil.example"), 403},
		{"an origin that is none", append(token, "Origin", "null"), 403},
		{"another port of this host", append(token, "Origin", "http://127.0.0.1:1"), 403},
		{"another site, by its browser's word", append(token, "Sec-Fetch-Site", "cross-site"), 403},
		{"the same site, another origin", append(token, "Sec-Fetch-Site", "same-site"), 403},
		{"a form", append(token, "Content-Type", "text/plain"), 415},
		{"the page", append(token, "Origin", g.URL, "Sec-Fetch-Site", "same-origin"), 200},
	} {
		code, text := post(on(), tt.header...)
		if code != tt.code {
			t.Errorf("%s: %d %s", tt.what, code, text)
		}
	}
	g.set(func() { check.Equal(t, "orders that were given", len(g.orders), 1) })
	code, text := post(io.LimitReader(zeros{}, 1<<30), token...)
	check.True(t, "a gigabyte is refused", code != 200, code, text)
	g.set(func() { check.Equal(t, "orders that were given", len(g.orders), 1) })
	req, _ := http.NewRequest("OPTIONS", g.URL+"/silence", nil)
	req.Header.Set("Origin", "http://evil.example")
	req.Header.Set("Access-Control-Request-Method", "POST")
	req.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	check.Equal(t, "who may ask from elsewhere", resp.Header.Get("Access-Control-Allow-Origin"), "")
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// BenchmarkView: the cost of one change for all viewers, with 64 sites and 1,000 waiting messages: the view, its JSON, deflated.
func BenchmarkView(b *testing.B) {
	g := newBridge(nil, 64, 1000)
	defer g.Close()
	l := g.desk.live
	for b.Loop() {
		f, err := frameOf(l.view(context.Background()))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(f.plain)), "octets")
		b.ReportMetric(float64(len(f.deflated)), "sent-octets")
	}
}
