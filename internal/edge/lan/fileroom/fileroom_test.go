package fileroom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/adapters/files"
	"aldis/internal/edge/atrest"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// bench is a room with the events that it has posted, at an address.
type bench struct {
	*Room
	t    *testing.T
	at   string
	mu   sync.Mutex
	told []site.Event
}

func open(t *testing.T, cfg Config) *bench {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, at: "http://" + ln.Addr().String()}
	cfg.URL = b.at
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	b.Room, err = Open(cfg, func(ev site.Event) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.told = append(b.told, ev)
	}, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- b.Serve(ln, nil) }()
	var once sync.Once
	stop := func() {
		b.Shutdown()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { once.Do(stop) })
	return b
}

// heard waits for an event of the room.
func heard[E site.Event](b *bench) (ev E) {
	b.t.Helper()
	check.Until(b.t, time.Minute, fmt.Sprintf("%T", ev), func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for i, e := range b.told {
			if x, ok := e.(E); ok {
				ev = x
				b.told = append(b.told[:i:i], b.told[i+1:]...)
				return true
			}
		}
		return false
	})
	return ev
}

func (b *bench) do(method, path, kind string, body []byte) (int, string, http.Header) {
	b.t.Helper()
	req, err := http.NewRequest(method, b.at+path, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

// form is an upload in ATAK's form.
func form(field, name string, data []byte) (kind string, body []byte) {
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	w, _ := m.CreateFormFile(field, name)
	w.Write(data)
	m.Close()
	return m.FormDataContentType(), b.Bytes()
}

func (b *bench) upload(data []byte, query string) (int, string) {
	b.t.Helper()
	kind, body := form("assetfile", "DP.zip", data)
	code, text, _ := b.do("POST", "/Marti/sync/missionupload?"+query, kind, body)
	return code, text
}

// A device uploads a package, asks for it by its hash, downloads it, and finds it in the list once it is public.
func TestMarti(t *testing.T) {
	for name, key := range map[string]*atrest.Key{"plain": nil, "sealed": atrest.Secret(strings.Repeat("secret", 6)).NewKey()} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := open(t, Config{Dir: dir, Key: key, Version: "1"})
			data := bytes.Repeat([]byte("data package "), 1000)
			hash := hashOf(data)
			if code, _, _ := b.do("GET", "/Marti/sync/missionquery?hash="+hash, "", nil); code != 404 {
				t.Errorf("a file that is not here: %d", code)
			}
			code, text := b.upload(data, "hash="+hash+"&filename=../../a%22b.zip&creatorUid=ANDROID-1")
			if want := b.at + "/Marti/sync/content?hash=" + hash; code != 200 || text != want {
				t.Fatalf("the upload was answered %d %q, want %q", code, text, want)
			}
			if code, text, _ := b.do("GET", "/Marti/sync/missionquery?hash="+strings.ToUpper(hash), "", nil); code != 200 || !strings.HasSuffix(text, hash) {
				t.Errorf("the query was answered %d %q", code, text)
			}
			code, text, head := b.do("GET", "/Marti/sync/content?hash="+hash+"&receiver=ANNA", "", nil)
			if code != 200 || text != string(data) || !strings.Contains(head.Get("Content-Disposition"), "a_b.zip") || strings.Contains(head.Get("Content-Disposition"), "..") {
				t.Errorf("the download was answered %d, %d octets, %v", code, len(text), head)
			}
			if code, _, _ := b.do("PUT", "/Marti/api/sync/metadata/"+hash+"/tool", "", []byte("public")); code != 200 {
				t.Errorf("public: %d", code)
			}
			if p := heard[files.Published](b); p.Hash != hash || p.Size != int64(len(data)) || p.Creator != "ANDROID-1" {
				t.Errorf("the adapter was told %+v", p)
			}
			b.Do(files.Know{Hash: strings.Repeat("ab", 32), Name: "far.zip", Size: 77, Public: true, State: "nobody"})
			_, text, _ = b.do("GET", "/Marti/sync/search?keywords=missionpackage&tool=public", "", nil)
			var list struct {
				ResultCount int `json:"resultCount"`
				Results     []struct {
					Hash, Name string
					Size       int64
				} `json:"results"`
			}
			if err := json.Unmarshal([]byte(text), &list); err != nil || list.ResultCount != 2 || len(list.Results) != 2 {
				t.Fatalf("the list is %s, %v", text, err)
			}
			b.Shutdown()
			raw, err := os.ReadFile(filepath.Join(dir, hash))
			if err != nil || bytes.Contains(raw, []byte("data package")) == (key != nil) {
				t.Errorf("on the disk it is readable or not as it should not be: %v", err)
			}
			again := open(t, Config{Dir: dir, Key: key})
			if code, text, _ := again.do("GET", "/Marti/sync/content?hash="+hash, "", nil); code != 200 || text != string(data) {
				t.Errorf("after a restart the file is answered %d", code)
			}
			if _, text, _ := again.do("GET", "/Marti/api/version/config", "", nil); !strings.Contains(text, "ServerConfig") {
				t.Errorf("the version is %s", text)
			}
		})
	}
}

// Nothing that a device sends becomes a path. A request that is too large, wrong or empty is refused in plain words and
// counted.
func TestHostileRequests(t *testing.T) {
	b := open(t, Config{MostFile: 1000, Most: 2500, Patience: 50 * time.Millisecond})
	good := bytes.Repeat([]byte{1}, 1000)
	kind, body := form("other", "x", good)
	var many bytes.Buffer
	m := multipart.NewWriter(&many)
	for range 5000 {
		m.WriteField("x", "y")
	}
	m.Close()
	hash := url.QueryEscape(hashOf(good))
	for _, c := range []struct {
		method, path, kind string
		body               []byte
		code               int
		says               string
	}{
		{"GET", "/Marti/sync/content?hash=../../../../etc/passwd", "", nil, 400, "64 hexadecimal digits"},
		{"GET", "/Marti/sync/content?hash=" + strings.Repeat("%00", 64), "", nil, 400, "64 hexadecimal"},
		{"GET", "/Marti/sync/content", "", nil, 400, "64 hexadecimal"},
		{"GET", "/Marti/sync/content?hash=" + hash, "", nil, 404, "no far site has offered it"},
		{"PUT", "/Marti/api/sync/metadata/..%2f..%2fx/tool", "", []byte("public"), 400, "64 hexadecimal"},
		{"PUT", "/Marti/api/sync/metadata/" + hash + "/tool", "", []byte("public"), 404, "no file here"},
		{"POST", "/Marti/sync/missionupload?hash=" + hash, kind, body, 400, "no assetfile"},
		{"POST", "/Marti/sync/missionupload", "multipart/form-data", []byte("x"), 400, "boundary"},
		{"POST", "/Marti/sync/missionupload", m.FormDataContentType(), many.Bytes(), 413, "at most 1000 octets"},
		{"POST", "/Marti/sync/missionupload", "", nil, 400, "empty"},
		{"POST", "/Marti/sync/missionupload", "", bytes.Repeat([]byte{1}, 1001), 413, "at most 1000 octets (tak.max_file)"},
		{"POST", "/Marti/sync/missionupload", "", bytes.Repeat([]byte{1}, 1<<20), 413, "at most 1000 octets"},
		{"POST", "/Marti/sync/missionupload?hash=" + strings.Repeat("0", 64), "", good, 400, "not the one that was said"},
		{"GET", "/../../etc/passwd", "", nil, 404, "data packages alone"},
	} {
		code, text, _ := b.do(c.method, c.path, c.kind, c.body)
		if code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s %s was answered %d %q, want %d %q", c.method, c.path, code, text, c.code, c.says)
		}
	}
	_, text, _ := b.do("POST", "/Marti/sync/upload?name=%E2%80%AEgpj.exe&creatorUid=%E2%80%AEx", "", []byte("turned"))
	if strings.Contains(text, "\u202e") || strings.Contains(text, `\u202e`) || !strings.Contains(text, `"Name":"_gpj.exe"`) || !strings.Contains(text, `"CreatorUid":""`) {
		t.Errorf("a name that turns the direction of writing is told as %s", text)
	}
	b.store.tidy(time.Now().Add(8 * 24 * time.Hour))
	list, err := os.ReadDir(b.cfg.Dir)
	if err != nil || len(list) != 0 {
		t.Errorf("files were left: %v, %v", list, err)
	}
	for i := range byte(4) { // two find a place
		if code, text := b.upload(append(bytes.Repeat([]byte{2}, 900), i), ""); code != 200 {
			t.Errorf("upload %d: %d %s", i, code, text)
		}
	}
	if list, octets := b.store.list(); len(list) != 2 || octets != 1802 {
		t.Errorf("%d files of %d octets are kept", len(list), octets)
	}
	b.store.tidy(time.Now().Add(8 * 24 * time.Hour))
	if list, _ := b.store.list(); len(list) != 0 {
		t.Errorf("%d files have outlived their time", len(list))
	}
}

// If a device asks for a far file, the adapter is told. The device learns how far the file is, gets it when it is complete, and
// learns of it if the file never comes.
func TestFarFile(t *testing.T) {
	b := open(t, Config{Patience: 300 * time.Millisecond})
	data := bytes.Repeat([]byte("0123456789"), 4000)
	hash := hashOf(data)
	b.Do(files.Know{Hash: hash, Name: "far.zip", Size: int64(len(data)), State: "0 of 40000 octets are here"})
	code, text, head := b.do("GET", "/Marti/sync/content?hash="+hash, "", nil)
	if code != 503 || head.Get("Retry-After") == "" || !strings.Contains(text, "far.zip comes over the link: 0 of 40000 octets are here") {
		t.Errorf("a file on its way is answered %d %q", code, text)
	}
	if w := heard[files.Wanted](b); w.Hash != hash || w.Host != "127.0.0.1" {
		t.Errorf("the adapter was told %+v", w)
	}
	dir := b.cfg.Dir
	for i := 0; i*files.PartOctets < len(data); i++ {
		part := data[i*files.PartOctets : min(len(data), (i+1)*files.PartOctets)]
		b.Do(files.Keep{Token: uint64(i), Hash: hash, Part: i, Data: part})
		if k := heard[files.Kept](b); k.Err != "" || k.Part != i {
			t.Fatalf("%+v", k)
		}
		if i == 1 { // after a kill the segments are still on the disk
			b = open(t, Config{Dir: dir, Patience: 10 * time.Second})
		}
	}
	b.Do(files.Know{Hash: hash, Name: "far.zip", State: "nearly"})
	got := make(chan string)
	go func() {
		resp, err := http.Get(b.at + "/Marti/sync/content?hash=" + hash)
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		got <- string(text)
	}()
	heard[files.Wanted](b)
	b.Do(files.Finish{Hash: hash, Name: "far.zip", Size: int64(len(data))})
	if f := heard[files.Finished](b); f.Err != "" {
		t.Fatal(f.Err)
	}
	b.Do(files.Know{Hash: hash, Name: "far.zip", State: "here"})
	if text := <-got; text != string(data) {
		t.Errorf("the device that waited was given %d octets", len(text))
	}
	if _, err := os.Stat(filepath.Join(dir, hash+partsEnd)); !os.IsNotExist(err) {
		t.Errorf("its parts are still there: %v", err)
	}
	b.Do(files.Load{Ask: 9, Hash: hash, From: 1, To: 9})
	if l := heard[files.Loaded](b); l.Ask != 9 || len(l.Parts) != 2 || !bytes.Equal(l.Parts[0], data[files.PartOctets:2*files.PartOctets]) {
		t.Errorf("%d parts were read", len(l.Parts))
	}
	b.Do(files.Load{Ask: 10, Hash: strings.Repeat("0", 64), To: 9})
	if l := heard[files.Loaded](b); len(l.Parts) != 0 {
		t.Error("parts of a file that is not here")
	}
	brought := strings.Repeat("2", 64) // comes by rule; what is here does not come again
	b.Do(files.Know{Hash: hash, Name: "far.zip", Bring: true})
	b.Do(files.Know{Hash: brought, Name: "brought.zip", Bring: true})
	if w := heard[files.Wanted](b); w.Hash != brought || w.Host != "" {
		t.Errorf("by rule %+v is wanted", w)
	}
	other := strings.Repeat("1", 64)
	b.Do(files.Keep{Hash: other, Data: []byte("x")})
	heard[files.Kept](b)
	b.Do(files.Finish{Hash: other, Size: 1})
	if f := heard[files.Finished](b); !strings.Contains(f.Err, "SHA-256 is") {
		t.Errorf("parts of another file make %q", f.Err)
	}
	b.Do(files.Keep{Token: 3, Hash: "../x", Data: []byte("x")})
	if k := heard[files.Kept](b); k.Err == "" {
		t.Error("a part of no file was kept")
	}
	b.Do(files.Know{Hash: other, Name: "gone.zip", State: "its site has it no more", Failed: true})
	go func() {
		heard[files.Wanted](b)
		b.Do(files.Know{Hash: other, Name: "gone.zip", State: "its site has it no more", Failed: true})
	}()
	if code, text, _ := b.do("GET", "/Marti/sync/content?hash="+other, "", nil); code != 410 || !strings.Contains(text, "its site has it no more") {
		t.Errorf("a file that does not come is answered %d %q", code, text)
	}
}

// The file of an offer is fetched from the device that offers it, and from nowhere else.
func TestFetch(t *testing.T) {
	data := bytes.Repeat([]byte("z"), 5000)
	hash := hashOf(data)
	asked := ""
	device := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		switch r.URL.Path {
		case "/getfile":
			w.Write(data)
		case "/away":
			http.Redirect(w, r, "/getfile", http.StatusFound)
		case "/endless":
			for {
				if _, err := w.Write(data); err != nil {
					return
				}
			}
		default:
			http.NotFound(w, r)
		}
	}))
	defer device.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(device.URL, "http://"))
	b := open(t, Config{MostFile: 10_000})
	fetch := func(o files.Fetch) string {
		t.Helper()
		b.Do(o)
		f := heard[files.Fetched](b)
		if f.Hash != o.Hash {
			t.Errorf("told of %s", f.Hash)
		}
		return f.Err
	}
	for _, c := range []struct {
		url  string
		size int64
		says string
	}{
		{"file:///etc/passwd", 5000, "does not say where"},
		{"http://example.invalid:" + port + "/nothing", 5000, "404"},
		{"http://example.invalid:" + port + "/away", 5000, "302"},
		{"http://example.invalid:" + port + "/endless", 5000, "5001 octets or more"},
		{"http://example.invalid:" + port + "/getfile", 4999, "or more"},
		{"http://example.invalid:" + port + "/getfile", 10_001, "at most (tak.max_file)"},
	} {
		if err := fetch(files.Fetch{Hash: hash, URL: c.url, Host: "127.0.0.1", Size: c.size}); !strings.Contains(err, c.says) {
			t.Errorf("%s: %q, want %q", c.url, err, c.says)
		}
	}
	if err := fetch(files.Fetch{Hash: hashOf([]byte("x")), URL: device.URL + "/getfile", Host: "127.0.0.1", Size: 5000}); !strings.Contains(err, "another file than it offers") {
		t.Errorf("another file: %q", err)
	}
	if err := fetch(files.Fetch{Hash: hash, URL: "http://example.invalid:" + port + "/getfile?file=1", Host: "127.0.0.1", Size: 5000, Name: "a.zip"}); err != "" || asked != "/getfile?file=1" {
		t.Errorf("the file was not taken: %q, asked for %q", err, asked)
	}
	asked = ""
	if err := fetch(files.Fetch{Hash: hash, URL: "nowhere"}); err != "" || asked != "" {
		t.Errorf("a file that is here: %q", err)
	}
}

// A listener may be added while the room shuts down: each call of Serve returns, and none disturbs Shutdown.
func TestServeDuringShutdown(t *testing.T) {
	for range 100 {
		r, err := Open(Config{Dir: t.TempDir()}, func(site.Event) {}, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
		if err != nil {
			t.Fatal(err)
		}
		var served sync.WaitGroup
		for range 8 {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served.Go(func() {
				if err := r.Serve(ln, nil); err != nil {
					t.Error(err)
				}
			})
		}
		r.Shutdown()
		served.Wait()
	}
}
