package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"aldis/internal/operator/cli"
)

const packaged = "../../ops/package/gateway.toml"

// The configuration in the packages is refused because of the marked lines only, and is good once they are filled in, also when
// all optional keys are set.
func TestPackagedConfiguration(t *testing.T) {
	text, err := os.ReadFile(packaged)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "gateway.toml")
	check := func(text string) (code int, out, errs string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return run(t, "check", "-c", file)
	}
	if code, _, errs := run(t, "keys", "new", "-o", filepath.Join(dir, "net.key")); code != 0 {
		t.Fatal(errs)
	}
	if err := os.WriteFile(filepath.Join(dir, "http.token"), []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	marked := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, "# >>>") {
			marked[file+":"+strconv.Itoa(i+1)+":"] = true
		}
	}
	code, _, errs := check(string(text))
	for _, line := range strings.Split(strings.TrimSpace(errs), "\n") {
		at := regexp.MustCompile(`^\S+?:\d+:`).FindString(line)
		if at != "" && !marked[at] {
			t.Errorf("refused for a line that is not marked: %s", line)
		}
		delete(marked, at)
	}
	if code != cli.ExitRefused || len(marked) > 0 {
		t.Errorf("exit %d, and these marked lines may stay as they are: %v\n%s", code, marked, errs)
	}

	filled := string(text)
	for _, fill := range []string{"id = 0 /id = 2 ", `name = ""/name = "ship"`, `tcp = ""/tcp = "10.20.0.1:9701"`, `profile = ""/profile = "iridium-directip"`,
		"id = 0 /id = 1 ", `name = ""/name = "hq"`} {
		from, to, _ := strings.Cut(fill, "/")
		filled = strings.Replace(filled, from, to, 1)
	}
	if code, out, errs := check(filled); code != 0 || !strings.Contains(out, "data in /var/lib/aldis") {
		t.Errorf("filled in: exit %d\n%s%s", code, out, errs)
	}
	all := regexp.MustCompile(`(?m)^#([a-z_]+ = |\[)`).ReplaceAllString(filled, "$1")
	if code, out, errs := check(all); code != 0 || !strings.Contains(out, "filters") || !strings.Contains(out, "1 rules of precedence") {
		t.Errorf("with all keys set: exit %d\n%s%s", code, out, errs)
	}
}
