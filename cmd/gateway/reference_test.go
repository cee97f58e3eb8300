package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aldis/internal/operator/logbook"
)

var writeReference = flag.Bool("write", false, "write docs/commands.md and docs/metrics.md")

// stale compares a page of docs/ with the code, or writes it.
func stale(t *testing.T, page, now string) {
	t.Helper()
	path := filepath.Join("../../docs", page)
	old, err := os.ReadFile(path)
	if err != nil && !*writeReference {
		t.Fatal(err)
	}
	if string(old) == now {
		return
	}
	if !*writeReference {
		t.Fatalf("docs/%s is stale: go test ./cmd/gateway -run TestReference -args -write", page)
	}
	if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
		t.Fatal(err)
	}
}

// docs/commands.md agrees with the descriptions of the commands.
func TestReferenceOfCommands(t *testing.T) {
	stale(t, "commands.md", described(t).Markdown()+"\nThis page is made of what the commands say of themselves: `go test ./cmd/gateway -run TestReference -args -write`.\n")
}

// metric is a metric of /metrics.
type metric struct {
	name, kind, help string
	labels           []string
}

// metrics are the metrics in the source.
func metrics(t *testing.T) (list []metric) {
	t.Helper()
	err := filepath.WalkDir("../../internal", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "internal/lab/") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if m, ok := metricOf(path, call); ok {
					list = append(list, m)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return list
}

// metricOf reads a call that makes a metric: one of the client's constructors, desc of internal/operator/control, counter of its
// page, gauge and count of the bridge, and Gauge and Counters of internal/site.
func metricOf(path string, call *ast.CallExpr) (m metric, ok bool) {
	text := func(i int) string {
		if i >= len(call.Args) {
			return ""
		}
		return literalOf(call.Args[i])
	}
	switch fn := call.Fun.(type) {
	case *ast.SelectorExpr:
		if of, ok := fn.X.(*ast.Ident); ok && of.Name == "site" {
			switch m = (metric{name: "aldis_" + text(0), help: text(1)}); fn.Sel.Name {
			case "Gauge":
				m.kind = "gauge"
			case "Counters":
				m.kind, m.labels = "counter", []string{text(2)}
			}
			return m, m.kind != ""
		}
		m.kind = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(fn.Sel.Name, "New"), "Vec"), "Func"))
		if !slices.Contains([]string{"counter", "gauge", "histogram"}, m.kind) || len(call.Args) == 0 {
			return m, false
		}
		opts, isOpts := call.Args[0].(*ast.CompositeLit)
		if !isOpts {
			return m, false
		}
		for _, e := range opts.Elts {
			kv := e.(*ast.KeyValueExpr)
			switch kv.Key.(*ast.Ident).Name {
			case "Name":
				m.name = literalOf(kv.Value)
			case "Help":
				m.help = literalOf(kv.Value)
			}
		}
		if len(call.Args) > 1 {
			if labels, isList := call.Args[1].(*ast.CompositeLit); isList {
				for _, l := range labels.Elts {
					m.labels = append(m.labels, literalOf(l))
				}
			}
		}
		return m, m.name != ""
	case *ast.Ident:
		bridge := strings.Contains(path, "jxtabridge")
		switch {
		case fn.Name == "desc" && text(0) != "":
			m = metric{name: "aldis_" + text(0), help: text(1), kind: "gauge"}
			if strings.HasSuffix(m.name, "_total") {
				m.kind = "counter"
			}
			if m.name == "aldis_delivery_seconds" {
				m.kind = "histogram"
			}
			for i := 2; i < len(call.Args); i++ {
				m.labels = append(m.labels, text(i))
			}
		case fn.Name == "counter" && text(0) != "":
			m = metric{name: "aldis_page_" + text(0), help: text(1), kind: "counter"}
		case bridge && (fn.Name == "gauge" || fn.Name == "count") && len(call.Args) == 4:
			m = metric{name: "aldis_jxta_" + text(0), help: text(3), kind: "gauge"}
			if fn.Name == "count" {
				m.name, m.kind = m.name+"_total", "counter"
			}
			if text(1) != "" {
				m.labels = []string{text(1)}
			}
		}
		return m, m.name != ""
	}
	return m, false
}

func literalOf(x ast.Expr) string {
	if lit, ok := x.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if s, err := strconv.Unquote(lit.Value); err == nil {
			return s
		}
	}
	return ""
}

// docs/metrics.md has every metric of the source.
func TestReferenceOfMetrics(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Metrics

The gateway's metrics in ` + "`/metrics`" + ` at ` + "`http.listen`" + `, beside those of the Go runtime and the process. A name that ends in ` + "`_total`" + ` is a counter that begins at the start of the gateway. All others are gauges, unless the line says histogram. [alerts.md](alerts.md) says which to alert on.

This page is made from the source: ` + "`go test ./cmd/gateway -run TestReference -args -write`" + `.

`)
	for _, m := range metrics(t) {
		if m.help == "" {
			t.Errorf("%s says nothing of itself", m.name)
		}
		if (m.kind == "counter") != strings.HasSuffix(m.name, "_total") {
			t.Errorf("%s is a %s, and its name says otherwise", m.name, m.kind)
		}
		help := m.help
		if m.kind == "histogram" {
			help = "Histogram: " + help
		}
		labels := ""
		if len(m.labels) > 0 {
			labels = "{" + strings.Join(m.labels, ",") + "}"
		}
		fmt.Fprintf(&b, "- `%s%s`: %s\n", m.name, labels, help)
	}
	stale(t, "metrics.md", b.String())
}

// A running gateway has no metric that the reference lacks, and each is of the documented kind.
func TestReferenceAgreesWithAGateway(t *testing.T) {
	_, r := two(t)
	r.until(t, "its peer is up", func() bool { return r.peer(t).Link == "up" })
	_, scraped := r.get("/metrics")
	agrees(t, scraped)
	for line := range strings.Lines(r.logged()) {
		var l struct{ Msg, Event string }
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Event == "" || l.Event == logbook.Unknown {
			t.Errorf("%v: a line of the log without a key: %s", err, line)
		}
	}
}

// agrees compares the metrics of a gateway with the reference.
func agrees(t *testing.T, scraped string) {
	t.Helper()
	known := map[string]string{}
	for _, m := range metrics(t) {
		known[m.name] = m.kind
	}
	met := 0
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (aldis_\w+) (\w+)$`).FindAllStringSubmatch(scraped, -1) {
		met++
		if known[m[1]] != m[2] {
			t.Errorf("%s is a %s, by the reference a %q", m[1], m[2], known[m[1]])
		}
	}
	if met < 30 {
		t.Errorf("only %d metrics", met)
	}
}
