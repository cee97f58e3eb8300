package commands

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/lab/air"
	"aldis/internal/operator/cli"
)

func TestAirCommand(t *testing.T) {
	page := filepath.Join(t.TempDir(), "air.html")
	var stdout, stderr bytes.Buffer
	if code := Program().Dispatch([]string{"air", "--only", "idle", "--seeds", "2", "--json", "--html", page}, &stdout, &stderr); code != cli.ExitGood {
		t.Fatalf("exit %d\n%s", code, &stderr)
	}
	var r air.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Results) != 3 || r.Seeds[0] != 2 || !strings.Contains(r.Version, cli.Version) {
		t.Errorf("%+v", r)
	}
	for _, result := range r.Results {
		if row := result.Rows[0]; row.Value != 0 || row.Verdict() != "aim" {
			t.Errorf("%s: idle for a day: %+v", result.Link, row)
		}
	}
	html, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(html, []byte("How full a link gets")) {
		t.Errorf("the page: %v\n%.200s", err, html)
	}
	if !strings.Contains(stderr.String(), "idle, iridium-certus-100") {
		t.Errorf("no progress: %s", &stderr)
	}
}

func TestAirRefuses(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--only", "load,beauty"}, cli.ExitUsage, `no table "beauty": load, burst`},
		{[]string{"--seeds", "3-1"}, cli.ExitUsage, `"3-1" is not a number`},
		{[]string{"--seeds", "1-99999999"}, cli.ExitUsage, "range such as 1-20"},
		{[]string{"--seeds", ""}, cli.ExitUsage, `"" is not a number`},
		{[]string{"--live", "--only", "burst,idle"}, cli.ExitUsage, `nothing of table "idle" is played live`},
		{[]string{"--live", "--at-once", "0"}, cli.ExitUsage, "--at-once: 0 is not from 1 to 32"},
		{[]string{"surplus"}, cli.ExitUsage, "surplus"},
		{[]string{"--only", "idle", "--seeds", "1", "--html", "/nonexistent/x.html"}, cli.ExitRefused, "--html: "},
	} {
		var stdout, stderr bytes.Buffer
		if code := Program().Dispatch(append([]string{"air"}, tt.args...), &stdout, &stderr); code != tt.code || !strings.Contains(stderr.String(), tt.says) {
			t.Errorf("air %q: exit %d, want %d, and %q in\n%s", tt.args, code, tt.code, tt.says, &stderr)
		}
	}
}
