package main

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var sample = &debug.BuildInfo{GoVersion: "go1.26.8", Path: "aldis/cmd/gateway", Deps: []*debug.Module{
	{Path: "example.org/a/v2", Version: "v2.0.1", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
	{Path: "example.org/b", Version: "v0.1.0"},
}}

func TestDocument(t *testing.T) {
	p := product{"0.2.0", "arm64", time.Unix(0, 0).UTC()}
	d := p.document(sample, []string{"libc.so.6"})
	if !reflect.DeepEqual(d, p.document(sample, []string{"libc.so.6"})) {
		t.Error("two documents of one binary differ")
	}
	if d.Creation.Created != "1970-01-01T00:00:00Z" || !strings.HasPrefix(d.Namespace, "urn:aldis:sbom:0.2.0:arm64:") {
		t.Errorf("made %s, in %s", d.Creation.Created, d.Namespace)
	}
	var names []string
	ids := map[string]bool{d.ID: true}
	for _, k := range d.Packages {
		names = append(names, k.Name+" "+k.Version)
		if ids[k.ID] {
			t.Errorf("two packages have the id %s", k.ID)
		}
		ids[k.ID] = true
	}
	if got, want := strings.Join(names, ", "), "aldis-gateway 0.2.0, stdlib 1.26.8, example.org/a/v2 v2.0.1, example.org/b v0.1.0, libc.so.6 "; got != want {
		t.Errorf("packages %s, want %s", got, want)
	}
	if got := d.Packages[2].Checksums; len(got) != 1 || got[0].Value != "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" {
		t.Errorf("the checksum of a module is %v", got)
	}
	if got := d.Packages[2].Refs[0].Locator; got != "pkg:golang/example.org/a/v2@v2.0.1" {
		t.Errorf("its purl is %s", got)
	}
	if len(d.Relationships) != len(d.Packages) {
		t.Errorf("%d relationships of %d packages", len(d.Relationships), len(d.Packages))
	}
	for _, r := range d.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("%v names what is not there", r)
		}
	}
}

func TestUnnoticed(t *testing.T) {
	notices := "=====\nexample.org/a/v2 v2.0.1\n=====\nMIT\nexample.org/b v0.1.00\n"
	if got := unnoticed(sample.Deps, notices); !reflect.DeepEqual(got, []string{"example.org/b v0.1.0"}) {
		t.Errorf("missing %v", got)
	}
}

// The notices name every module that is in a program, at its version.
func TestNoticesAreComplete(t *testing.T) {
	text, err := os.ReadFile("../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+"/", "aldis/cmd/gateway", "aldis/cmd/gateway-lab").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, program := range []string{"gateway", "gateway-lab"} {
		info, err := buildinfo.ReadFile(filepath.Join(dir, program))
		if err != nil {
			t.Fatal(err)
		}
		if missing := unnoticed(info.Deps, string(text)); len(missing) > 0 || len(info.Deps) == 0 {
			t.Errorf("%s: of %d modules NOTICE lacks\n%s", program, len(info.Deps), strings.Join(missing, "\n"))
		}
		if name := (product{}).document(info, nil).Packages[0].Name; name != "aldis-"+program {
			t.Errorf("the bill is of %s", name)
		}
	}
}
