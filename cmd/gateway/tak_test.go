package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aldis/internal/lab/vacant"
	"aldis/internal/tak/cot"
)

// takSite is a site with devices of TAK alone.
type takSite struct {
	*testSite
	tak string
}

func newTAKSite(t *testing.T, id int, key string) *takSite {
	t.Helper()
	return &takSite{newSite(t, id, key), vacant.Address(t, "tcp")}
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
	mu  sync.Mutex
	got []*cot.Event
	raw int
}

func dialTAK(t *testing.T, address string) *takDevice {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return hearTAK(t, c)
}

// hearTAK is the device at the end of a connection.
func hearTAK(t *testing.T, c net.Conn) *takDevice {
	d := &takDevice{Conn: c}
	t.Cleanup(func() { c.Close() })
	go func() {
		var s cot.Splitter
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			if err != nil {
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

// find is the newest event that the device was given with this uid; nil: none.
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
// that shows it; who says nonsense is cut off and told of.
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
	for _, want := range []string{`aldis_tak_events_total{what="refused syntax"} 1`, "aldis_tak_far_units 1"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
}

// check says what becomes of an event, and why.
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

// Over TLS a device with a certificate of the site's authority is served, and nobody else.
func TestTAKOverTLS(t *testing.T) {
	s := newTAKSite(t, 2, "")
	at, dir := vacant.Address(t, "tcp"), s.dir+"/tak"
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
		_, err = c.Read(make([]byte, 1)) // TLS 1.3 tells of it only now
		if err == nil {
			t.Error("a device without a certificate is served")
		}
		c.Close()
	}
	r.until(t, "the stranger is counted", func() bool {
		_, metrics := r.get("/metrics")
		return strings.Contains(metrics, `aldis_tak_lan_refused_total{reason="tls"} 1`)
	})
}
