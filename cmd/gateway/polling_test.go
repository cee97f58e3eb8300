package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
)

// A gateway whose peers all use HTTP: check reports it, it is the same peer before and after a restart, and strangers do not
// disturb it.
func TestPeersOverHTTPOnly(t *testing.T) {
	s := newSite(t, 2, "")
	s.write(t, filepath.Join(s.dir, "data"))
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "[lan]\ntcp = ", "[lan]\nhttp = ", 1))
	if err := os.WriteFile(s.file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := run(t, "check", "-c", s.file)
	if code != 0 {
		t.Fatal(errs)
	}
	wants(t, out, "JXTA peers dial http://"+s.lan+",")
	taken, err := net.Listen("tcp", s.lan)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, refused(t, s), "lan.http: TCP "+s.lan+" is used by another program", "set another lan.http")
	taken.Close()

	var name string
	for range 2 {
		r := s.start(t)
		resp, err := http.Get("http://" + s.lan + "/")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		n, nerr := jxta.Normalize(string(b))
		check.NoError(t, err)
		check.True(t, "no nerr", nerr == nil, nerr)
		check.Equal(t, "n", n, string(b))
		check.True(t, `name == "" || name == n`, name == "" || name == n, name)
		name = string(b)
		resp, err = http.Post("http://"+s.lan+"/", jxta.MessageType, strings.NewReader("no message"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		_, metrics := r.get("/metrics")
		wants(t, metrics, `aldis_lan_refused_total{reason="http_message"} 1`, "aldis_lan_polls 0")
		if code := r.stop(t, syscall.SIGTERM); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
}
