package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"aldis/internal/lab/check"
	"aldis/internal/operator/commands"
)

// evil is a name that clears the screen, sets colours with one octet of C1, and turns the direction of writing.
const evil = "a\x1b[2J\u009b31m\u202eb\x7f\r"

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

// fill sets every text in a value to evil, and adds one element to every list and map.
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

// Whatever a gateway sends in any field, status and the like print no characters that a terminal obeys. The program at
// http.listen may not even be a gateway.
func TestNoEscapesReachTheTerminal(t *testing.T) {
	var r operator.StatusReport
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
}
