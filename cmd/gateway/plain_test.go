package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"aldis/internal/config"
	"aldis/internal/gateway"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
)

// evil is a name that clears the screen, sets colours with one octet of C1, and turns the direction of writing.
const evil = "a\x1b[2J\u009b31m\u202eb\x7f\r"

// harmless expects that a text has nothing that a terminal takes for an order.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			t.Errorf("%s has %U:\n%q", what, r, text)
			return
		}
	}
}

// fill sets every text in a value to evil, and makes one of everything that there may be several of.
func fill(v reflect.Value, depth int) {
	if depth == 0 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(evil)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth-1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth-1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth-1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth-1)
		fill(value, depth-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Uint64, reflect.Uint16, reflect.Uint32, reflect.Uint8:
		v.SetUint(3)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// Whatever a gateway says in any field, status and the like print nothing that a terminal obeys. A gateway at http.listen may
// be another program.
func TestNoEscapesReachTheTerminal(t *testing.T) {
	var r statusReport
	fill(reflect.ValueOf(&r).Elem(), 8)
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(body) })}
	go server.Serve(ln)
	defer server.Close()
	s := newSite(t, 2, "")
	s.http = ln.Addr().String()
	s.write(t, filepath.Join(s.dir, "data"))
	for _, args := range []string{"status", "peer list", "messages", "adverts", "message 1NG54QN-17"} {
		code, out, errs := run(t, append(strings.Fields(args), "-c", s.file)...)
		harmless(t, args+", standard output", out)
		harmless(t, args+", standard error", errs)
		if args == "status" {
			check.Contains(t, fmt.Sprintf("status (exit %d)", code), out, "a\uFFFD[2J")
		}
	}
	var b bytes.Buffer
	p := newPlain(&b)
	for _, octet := range []byte("Süd " + evil + " 🚢\xff") {
		p.Write([]byte{octet})
	}
	harmless(t, "what came octet by octet", b.String())
	check.Contains(t, "what came octet by octet", b.String(), "Süd a\uFFFD[2J\uFFFD31m\uFFFDb\uFFFD\uFFFD 🚢")
}

// A name of ten thousand characters takes a line that can be read, and one that hides is seen.
func TestNamesAreCut(t *testing.T) {
	long, hides := strings.Repeat("A", 10_000), "\u202egnp.exe\u3164"
	for _, name := range []string{long, hides} {
		var r statusReport
		r.LAN.Peers = []jxtabridge.PeerStatus{{Peer: "uuid-1", Name: name}}
		var status, adverts bytes.Buffer
		printStatus(newPlain(&status), r, time.Now())
		p := advertPrinter{out: newPlain(&adverts)}
		check.NoError(t, p.row(gateway.AdvertRow{Origin: "local", Type: "pipe", Name: name, ID: "urn:jxta:" + long, Group: long}))
		for what, text := range map[string]string{"status": status.String(), "adverts": adverts.String()} {
			for _, line := range strings.Split(text, "\n") {
				check.True(t, what+" has short lines", len([]rune(line)) < 1000, len(line))
			}
			harmless(t, what, text)
			check.True(t, what+" shows what hides", name == long || strings.Contains(text, `\u202egnp.exe`) && strings.Contains(text, "\uFFFD"), text)
		}
	}
}

// Nor does the log, in either form. Durations have their unit there, and times that nobody knows are left out.
func TestLogForPeople(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var b bytes.Buffer
		log, _ := newLogger(&config.Config{Log: config.Log{Format: format}}, &b)
		log.LogAttrs(context.Background(), slog.LevelInfo, "said", slog.Any("name", evil), slog.Any("error", errors.New(evil)),
			slog.Any("after", 98*time.Millisecond), slog.Time("until", time.Time{}))
		harmless(t, "the log as "+format, b.String())
		wants(t, b.String(), "98ms")
		b.Reset()
		log.LogAttrs(context.Background(), slog.LevelInfo, "peer has a lease", slog.String("name", strings.Repeat("A", 10_000)))
		check.True(t, "a name is cut", b.Len() < 1000, b.Len())
		check.True(t, "no unknown time", !strings.Contains(b.String(), "0001-01-01"), b.String())
	}
}
