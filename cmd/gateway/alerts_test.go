package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// ops is the directory with the files for other programs that watch a gateway.
const ops = "../../ops"

// prometheusTools is a directory with Debian's prometheus and promtool. They are unpacked from their package, not installed:
// the package would start a server of its own.
func prometheusTools(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "aldis", "prometheus")
	bin := filepath.Join(dir, "root", "usr", "bin")
	if _, err := os.Stat(filepath.Join(bin, "promtool")); err == nil {
		return bin
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	do := func(name string, args ...string) (string, error) {
		cmd := bounded(t, name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if _, err := do("apt-get", "-q", "download", "prometheus"); err != nil { // the lists of packages are missing or old
		do("apt-get", "-q", "update")
		if out, err := do("apt-get", "-q", "download", "prometheus"); err != nil {
			t.Fatalf("the Debian package prometheus: %v\n%s", err, out)
		}
	}
	debs, _ := filepath.Glob(filepath.Join(dir, "prometheus_*.deb"))
	if len(debs) == 0 {
		t.Fatal("apt-get download has left no package of prometheus")
	}
	if out, err := do("dpkg-deb", "-x", debs[len(debs)-1], "new"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "root")); err != nil && !os.IsExist(err) {
		if _, there := os.Stat(bin); there != nil { // another test may have unpacked it first
			t.Fatal(err)
		}
	}
	return bin
}

// TestAlerts: alerts fire when they should (promtool); each has its page; and a real Prometheus that scrapes a real gateway
// finds every metric that rules and dashboard name.
func TestAlerts(t *testing.T) {
	t.Parallel()
	bin := prometheusTools(t)
	promtool := func(in string, args ...string) {
		t.Helper()
		cmd := bounded(t, filepath.Join(bin, "promtool"), args...)
		cmd.Stdin = strings.NewReader(in)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	rules := filepath.Join(ops, "prometheus", "aldis.rules.yml")
	promtool("", "check", "rules", rules)
	promtool("", "test", "rules", filepath.Join(ops, "prometheus", "aldis_test.yml"))
	text, pages := read(t, rules), read(t, "../../docs/alerts.md")
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(text, -1)
	check.True(t, "there are ten alerts or more", len(alerts) >= 10, len(alerts))
	for _, a := range alerts {
		check.Contains(t, "docs/alerts.md", pages, "\n## "+a[1]+"\n")
		check.Contains(t, "the rules", text, "page: docs/alerts.md#"+strings.ToLower(a[1])+"\n")
		check.Contains(t, "the tests of the rules", read(t, filepath.Join(ops, "prometheus", "aldis_test.yml")), "alertname: "+a[1])
	}

	a, b := two(t)
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	_, metrics := b.get("/metrics")
	promtool(metrics, "check", "metrics")

	prometheus := startPrometheus(t, bin, rules, a.http, b.http)
	named := regexp.MustCompile(`\baldis_[a-z_]+`)
	board := read(t, filepath.Join(ops, "grafana", "aldis.json"))
	names := named.FindAllString(text+board, -1)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if strings.HasPrefix(name, "aldis_site_") { // TestSiteOfTwoByOrder looks at these: other sites have none
			continue
		}
		if absent := []string{"aldis_queue_messages", "aldis_queue_oldest_timestamp_seconds", "aldis_link_dropped_total"}; slices.Contains(absent, name) {
			check.Contains(t, "the metrics that are told of", told(t), name) // nothing waits now, and nothing was dropped
			continue
		}
		b.until(t, "Prometheus has "+name, func() bool { return prometheus.series(t, name) > 0 })
	}
	var queries struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(board), &queries); err != nil {
		t.Fatal(err)
	}
	for _, p := range queries.Panels {
		for _, q := range p.Targets {
			prometheus.series(t, strings.NewReplacer("$instance", ".*", "$job", ".*").Replace(q.Expr))
		}
	}
	b.until(t, "both gateways answer", func() bool { return prometheus.series(t, `up{job="aldis"} == 1`) == 2 })
	check.Equal(t, "alerts while all is well", prometheus.series(t, `ALERTS{alertstate="firing"}`), 0)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// told are the metrics of the control desk in its source.
func told(t *testing.T) string {
	t.Helper()
	source := read(t, "../../internal/operator/control/linkmetrics.go") + read(t, "../../internal/operator/control/metrics.go")
	names := regexp.MustCompile(`desc\("([a-z_]+)"`).FindAllStringSubmatch(source, -1)
	var all []string
	for _, n := range names {
		all = append(all, "aldis_"+n[1])
	}
	return strings.Join(all, " ")
}

// server is a Prometheus.
type server struct{ url string }

func startPrometheus(t *testing.T, bin, rules string, targets ...string) server {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs: [{job_name: aldis, static_configs: [{targets: [%q, %q]}]}]\n",
		rules, targets[0], targets[1])
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	at := check.FreeAddress(t, "tcp")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yml"), "--web.listen-address="+at,
		"--storage.tsdb.path="+filepath.Join(dir, "data"))
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		log.Close()
		if t.Failed() {
			t.Logf("log of Prometheus:\n%s", read(t, log.Name()))
		}
	})
	return server{"http://" + at}
}

// series is the number of series of a query, 0 while Prometheus starts. A query that it cannot answer is a failure.
func (s server) series(t *testing.T, query string) int {
	t.Helper()
	resp, err := http.Get(s.url + "/api/v1/query?" + url.Values{"query": {query}}.Encode())
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
		return 0
	}
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		t.Fatalf("Prometheus answers to %s: %s", query, body)
	}
	return len(answer.Data.Result)
}
