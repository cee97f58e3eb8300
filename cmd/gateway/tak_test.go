package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/lab/check"
)

// takSite is a site that has only TAK devices.
type takSite struct {
	*testSite
	tak string
}

func newTAKSite(t *testing.T, id int, key string) *takSite {
	t.Helper()
	return &takSite{newSite(t, id, key), check.FreeAddress(t, "tcp")}
}

// write writes the configuration, with lines for [tak].
func (s *takSite) write(t *testing.T, lines string, peers ...string) {
	t.Helper()
	s.testSite.write(t, s.dir+"/data", peers...)
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, fmt.Appendf(nil, "[lan]\ntcp = %q\n", s.lan), fmt.Appendf(nil, "[tak]\nlisten = %q\n%s", s.tak, lines), 1)
	if err := os.WriteFile(s.file, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// takDevice is a stream that speaks as ATAK does.
type takDevice struct {
	net.Conn
	mu    sync.Mutex
	got   []*cot.Event
	raw   int
	ended bool
}

func dialTAK(t *testing.T, address string) *takDevice {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return hearTAK(t, c)
}

// hearTAK makes the device at the end of a connection.
func hearTAK(t *testing.T, c net.Conn) *takDevice {
	d := &takDevice{Conn: c}
	t.Cleanup(func() { c.Close() })
	go func() {
		var s cot.Splitter
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			if err != nil {
				d.mu.Lock()
				d.ended = true
				d.mu.Unlock()
				return
			}
			if s.Feed(buf[:n], func(frame []byte) {
				d.mu.Lock()
				defer d.mu.Unlock()
				if e, _, err := cot.ParseFrame(frame); err == nil && e != nil {
					d.got = append(d.got, e)
				}
				if frame[0] == 0xBF {
					d.raw++
				}
			}) != nil {
				return
			}
		}
	}()
	return d
}

// find is the newest event with this uid that the device received; nil: none.
func (d *takDevice) find(uid string) (e *cot.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, g := range d.got {
		if g.UID == uid {
			e = g
		}
	}
	return e
}

// over says whether the stream is closed.
func (d *takDevice) over() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended
}

// protos is how many events came in version 1.
func (d *takDevice) protos() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.raw
}

func takEvent(uid, kind, detail string) string {
	now := time.Now().UTC()
	return fmt.Sprintf("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"+`<event version="2.0" uid="%s" type="%s" time="%s" start="%s" stale="%s" how="m-g"><point lat="54.3" lon="10.1" hae="12.5" ce="4.7" le="9999999.0"/><detail>%s</detail></event>`,
		uid, kind, now.Format(cot.TimeFormat), now.Format(cot.TimeFormat), now.Add(5*time.Minute).Format(cot.TimeFormat), detail)
}

func deviceReport(uid, callsign string) string {
	return takEvent(uid, "a-f-G-U-C", fmt.Sprintf(`<takv os="29" version="4.5" device="X" platform="ATAK-CIV"/><contact endpoint="*:-1:stcp" callsign="%s"/><__group role="Team Member" name="Cyan"/><track course="0" speed="0"/>`, callsign))
}

// Devices on the LANs of two gateways see each other; version 1 is negotiated; the picture survives a kill -9 of the gateway
// that shows it; a device that sends nonsense is disconnected and reported.
func TestTAKDevices(t *testing.T) {
	hq := newTAKSite(t, 1, "")
	ship := newTAKSite(t, 2, hq.key())
	hq.write(t, "", "2")
	ship.write(t, "bound = 20\n", "1 "+hq.link)
	if code, out, errs := run(t, "check", "-c", ship.file); code != 0 || !strings.Contains(out, "TAK devices connect to "+ship.tak) {
		t.Fatal(out, errs)
	}
	r1, r2 := hq.start(t), ship.start(t)
	a, b := dialTAK(t, hq.tak), dialTAK(t, ship.tak)
	fmt.Fprint(a, takEvent("ANDROID-aa-ping", "t-x-c-t", ""))
	r1.until(t, "the ping is answered", func() bool { return a.find("takPong") != nil })
	fmt.Fprint(a, takEvent("protouid", "t-x-takp-q", `<TakControl><TakRequest version="1"/></TakControl>`))
	r1.until(t, "version 1 is granted", func() bool { e := a.find("protouid"); return e != nil && e.Type == "t-x-takp-r" })
	fmt.Fprint(b, deviceReport("ANDROID-00000000000000b1", "BRAVO"))
	r1.until(t, "the position has crossed", func() bool { return a.find("ANDROID-00000000000000b1") != nil })
	if a.protos() == 0 {
		t.Error("a device that reads version 1 was given XML")
	}
	if e := a.find("ANDROID-00000000000000b1"); e.Callsign() != "BRAVO" || e.Find("takv").Get("platform") != "ATAK-CIV" {
		t.Errorf("it came as %s", e.Canonical())
	}
	fmt.Fprint(b, takEvent("marker-1", "b-m-p-s-m", `<contact callsign="M"/>`))
	r1.until(t, "the marker has crossed", func() bool { return a.find("marker-1") != nil })

	r1.stop(t, syscall.SIGKILL)
	r1 = hq.start(t)
	c := dialTAK(t, hq.tak)
	r1.until(t, "the picture is there again", func() bool { return c.find("ANDROID-00000000000000b1") != nil && c.find("marker-1") != nil })
	fmt.Fprint(c, deviceReport("ANDROID-00000000000000a1", "ALPHA"))
	r2.until(t, "the other way works", func() bool { return b.find("ANDROID-00000000000000a1") != nil })

	fmt.Fprint(b, "GET / HTTP/1.0\r\n\r\n")
	r2.until(t, "nonsense is told", func() bool { return strings.Contains(r2.logged(), "begins an event with octet") })
	_, metrics := r2.get("/metrics")
	agrees(t, metrics)
	for _, want := range []string{`aldis_tak_events_total{what="refused syntax"} 1`, "aldis_tak_far_units 1"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
}

// check says what happens to an event, and why.
func TestTAKExample(t *testing.T) {
	s := newTAKSite(t, 2, "")
	s.write(t, "bound = 30\n[[tak.rule]]\nlabel = \"medics\"\nrole = \"Medic\"\nbound = 5\n[[tak.rule]]\nlabel = \"harbour\"\nbox = \"54 10 55 11\"\ntype = \"b-m\"\naction = \"local\"\n", "1")
	file := s.dir + "/event.xml"
	explain := func(text string, wants ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, out, errs := run(t, "check", "-c", s.file, "--example", file)
		for _, want := range wants {
			if !strings.Contains(out+errs, want) {
				t.Errorf("no %q in\n%s%s", want, out, errs)
			}
		}
	}
	explain(deviceReport("u", "A"), "out: allow by default: told when its far picture would be wrong by 30 m", `not by rule "medics" (line`, "its role does not fit")
	explain(takEvent("m", "b-m-p-s-m", ""), `out: local by rule "harbour" (line`, "stays on this LAN")
	explain(takEvent("x", "b-a-o-tbl", ""), "out: allow by default: crosses with precedence flash")
	explain(strings.Replace(takEvent("x", "b-a-o-tbl", ""), `lat="5`, `lat="15`, 1), "is refused", "outside of the world")
}

// Over TLS only devices with a certificate of the site's authority are served.
func TestTAKOverTLS(t *testing.T) {
	t.Parallel()
	s := newTAKSite(t, 2, "")
	at, dir := check.FreeAddress(t, "tcp"), s.dir+"/tak"
	s.write(t, fmt.Sprintf("tls = %q\ntls_keys = \"tak\"\n", at), "1")
	if _, _, errs := run(t, "check", "-c", s.file); !strings.Contains(errs, "gateway keys tak -o "+dir) {
		t.Errorf("without certificates check says %s", errs)
	}
	for _, names := range [][]string{{"127.0.0.1", "anna"}, {"127.0.0.1", "anna", "bert"}} {
		if code, out, errs := run(t, append([]string{"keys", "tak", "-o", dir}, names...)...); code != 0 || !strings.Contains(out, names[len(names)-1]+".pem is new") {
			t.Fatal(out, errs)
		}
	}
	if info, err := os.Stat(dir + "/anna.key"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a key has mode %v, %v", info.Mode(), err)
	}
	r := s.start(t)
	ca, err := os.ReadFile(dir + "/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	pair, err := tls.LoadX509KeyPair(dir+"/bert.pem", dir+"/bert.key")
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.Dial("tcp", at, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	d := hearTAK(t, c)
	fmt.Fprint(d, takEvent("ping", "t-x-c-t", ""))
	r.until(t, "the ping is answered", func() bool { return d.find("takPong") != nil })
	if c, err := tls.Dial("tcp", at, &tls.Config{RootCAs: pool}); err == nil {
		_, err = c.Read(make([]byte, 1)) // TLS 1.3 reports it only now
		if err == nil {
			t.Error("a device without a certificate is served")
		}
		c.Close()
	}
	r.until(t, "the stranger is counted", func() bool {
		_, metrics := r.get("/metrics")
		return strings.Contains(metrics, `aldis_tak_lan_refused_total{reason="tls"} 1`)
	})
	if code, out, errs := run(t, "keys", "tak", "-o", dir, "--revoke", "bert"); code != 0 || !strings.Contains(out, "the certificate of bert is revoked") {
		t.Fatal(out, errs)
	}
	r.until(t, "bert's stream ends", func() bool {
		fmt.Fprint(d, takEvent("ping", "t-x-c-t", ""))
		return d.over()
	})
	if c, err := tls.Dial("tcp", at, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}); err == nil {
		if _, err = c.Read(make([]byte, 1)); err == nil {
			t.Error("a certificate that was revoked is taken")
		}
		c.Close()
	}
	if code, _, errs := run(t, "keys", "tak", "-o", dir, "--revoke", "../anna"); code == 0 || !strings.Contains(errs, "no name of a client") {
		t.Error(errs)
	}
	if code, out, errs := run(t, "keys", "tak", "-o", dir, "127.0.0.1", "bert"); code != 0 || !strings.Contains(out, "bert.pem is new") {
		t.Error(out, errs)
	}
	again, err := tls.LoadX509KeyPair(dir+"/bert.pem", dir+"/bert.key")
	if err != nil {
		t.Fatal(err)
	}
	c, err = tls.Dial("tcp", at, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{again}})
	if err != nil {
		t.Fatal(err)
	}
	d = hearTAK(t, c)
	fmt.Fprint(d, takEvent("ping", "t-x-c-t", ""))
	r.until(t, "bert's new certificate is taken", func() bool { return d.find("takPong") != nil })
}

// A gateway is a client of its LAN's server over TLS, here another gateway: it shows a certificate, and the server's must be
// signed by the authority and have the configured name.
func TestTAKServerOverTLS(t *testing.T) {
	hq := newTAKSite(t, 1, "")
	ship := newTAKSite(t, 2, hq.key())
	at, keys, client := check.FreeAddress(t, "tcp"), hq.dir+"/tak", hq.dir+"/client"
	if code, _, errs := run(t, "keys", "tak", "-o", keys, "127.0.0.1", "gateway"); code != 0 {
		t.Fatal(errs)
	}
	if err := os.Mkdir(client, 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"ca.pem": "ca.pem", "gateway.pem": "client.pem", "gateway.key": "client.key"} {
		b, err := os.ReadFile(keys + "/" + from)
		if err == nil {
			err = os.WriteFile(client+"/"+to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	hq.write(t, fmt.Sprintf("tls = %q\ntls_keys = %q\n", at, keys))
	ship.write(t, fmt.Sprintf("server = %q\nserver_keys = %q\nserver_name = \"127.0.0.1\"\n", at, client))
	hq.start(t)
	r2 := ship.start(t)
	a, b := dialTAK(t, hq.tak), dialTAK(t, ship.tak)
	r2.until(t, "the server has the event", func() bool {
		fmt.Fprint(b, takEvent("marker-1", "b-m-p-s-m", `<contact callsign="M"/>`))
		return a.find("marker-1") != nil
	})
	r2.stop(t, syscall.SIGTERM)
	ship.write(t, fmt.Sprintf("server = %q\nserver_keys = %q\nserver_name = \"elsewhere\"\n", at, client))
	r2 = ship.start(t)
	r2.until(t, "a server of another name is refused", func() bool { return strings.Contains(r2.logged(), `"reason":"tls"`) })
}

// web sends a gateway a request about its data packages, as ATAK does.
func web(t *testing.T, method, url, kind string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A device on the ship uploads a package of 200 kB and offers it. A device ashore asks its own gateway for it while the link is
// down, and both gateways are killed. It is offered again and arrives whole.
func TestDataPackageBetweenGateways(t *testing.T) {
	t.Parallel()
	hq := newTAKSite(t, 1, "")
	ship := newTAKSite(t, 2, hq.key())
	files := map[*takSite]string{hq: check.FreeAddress(t, "tcp"), ship: check.FreeAddress(t, "tcp")}
	hq.write(t, fmt.Sprintf("files = %q\n", files[hq]), "2")
	ship.write(t, fmt.Sprintf("files = %q\n", files[ship]), "1 "+hq.link)
	if _, out, errs := run(t, "check", "-c", ship.file); !strings.Contains(out, "data packages at http://"+files[ship]) {
		t.Error(out, errs)
	}
	r1, r2 := hq.start(t), ship.start(t)
	a, b := dialTAK(t, hq.tak), dialTAK(t, ship.tak)
	data := make([]byte, 200_000)
	rand.Read(data)
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	w, _ := m.CreateFormFile("assetfile", "DP-A.zip")
	w.Write(data)
	m.Close()
	code, url := web(t, "POST", "http://"+files[ship]+"/Marti/sync/missionupload?hash="+hash+"&filename=DP-A.zip&creatorUid=ANDROID-1", m.FormDataContentType(), form.Bytes())
	if code != 200 {
		t.Fatal(code, url)
	}
	fmt.Fprint(b, takEvent("dp-1", "b-f-t-r", fmt.Sprintf(`<fileshare filename="DP-A.zip" name="DP-A" senderUrl=%q senderUid="ANDROID-1" senderCallsign="B" sha256="%s" sizeInBytes="200000"/>`, url, hash)))
	r1.until(t, "the offer has crossed", func() bool { return a.find("dp-1") != nil })
	far := a.find("dp-1").Find("fileshare").Get("senderUrl")
	if want := "http://" + files[hq] + "/Marti/sync/content?hash=" + hash; far != want {
		t.Fatalf("ashore it is at %q, want %q", far, want)
	}
	r2.stop(t, syscall.SIGKILL)
	if code, text := web(t, "GET", far, "", nil); code != 503 || !strings.Contains(text, "0 of 200000 octets are here") {
		t.Errorf("while the ship is away the file is answered %d %q", code, text)
	}
	r1.stop(t, syscall.SIGKILL)
	r1 = hq.start(t)
	ship.start(t)
	var metrics string
	r1.until(t, "the file is here", func() bool {
		_, metrics = r1.get("/metrics")
		return strings.Contains(metrics, `aldis_tak_events_total{what="files_here"} 1`)
	})
	agrees(t, metrics)
	if !strings.Contains(metrics, "aldis_tak_files 1\n") {
		t.Error("the file is not counted")
	}
	if code, text := web(t, "GET", far, "", nil); code != 200 || text != string(data) {
		t.Errorf("the file is answered %d, %d octets", code, len(text))
	}
	r1.stop(t, syscall.SIGTERM)
	if _, out, errs := run(t, "keys", "destroy", "-c", hq.file, "--yes"); !strings.Contains(out, hash) {
		t.Errorf("the file outlives its gateway's keys: %s%s", out, errs)
	}
}
