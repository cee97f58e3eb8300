package compact

import (
	"fmt"
	"strings"
	"testing"

	"aldis/internal/lab/primer"
)

// askedRows are the goals of docs/strangers.md that no other table there has, each with what shows it.
func askedRows(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| | figure | must | aim | reached | shown by |\n|---|---|---|---|---|---|\n")
	row := func(what string, got, must, aim float64, figures, shown string) {
		named := func(f float64) string {
			switch f {
			case 0:
				return ""
			case noStep:
				return "no step"
			}
			return strings.TrimSuffix(fmt.Sprintf("%.2f", f), ".00")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | `%s` |\n", what, figures, named(must), named(aim), verdict(got, must, aim), shown)
	}
	var c Coder
	size := func(text []byte) int { code, _ := c.Append(nil, text); return 1 + len(code) }

	bits := englishBits()
	for i, what := range []string{"English chat lines, bits a character: of the kinds measured above", "the same, about other things"} {
		row(what, bits[i], 2.8, 2.2, fmt.Sprintf("%.2f", bits[i]), "go test -run TestStrangersTable ./internal/link/compact")
	}

	plain, _, worst := dressCosts()
	row("the dearest of 15 dresses, of the plain one", float64(worst)/float64(plain), 1.05, 0, fmt.Sprintf("%d of %d, %.2f", worst, plain, float64(worst)/float64(plain)),
		"go test -v -run TestDressesCostLittle ./internal/link/compact")

	for _, d := range capturedDocs(t) {
		if !d.advertisement() || !strings.HasSuffix(d.name, "MSA") {
			continue
		}
		docs, sum := ofOtherPeers(d.text, 24), 0.0
		for _, text := range docs {
			sum += float64(size(text)) / float64(len(docs))
		}
		goal := specificationGoals[strings.Fields(d.name)[0]]
		row("specification of peers that are not ours, as in "+strings.Fields(d.name)[0], sum, goal[0], goal[1], fmt.Sprintf("%.1f", sum), "go test -v -run TestTable ./internal/link/compact")
	}

	list := primer.NewMaker(12, testWords).Employees(1600)
	const step = 256 << 10
	before, after := size(list[:step]), size(list[:step+1])
	row("a list in XML of 262,145 octets, of what one octet less costs", float64(after)/float64(before), noStep, 0, fmt.Sprintf("%d of %d", after, before),
		"go test -run TestStrangersTable ./internal/link/compact")
	// What TestDamagedFiles holds, with the tag long for so many: it fails when one is taken.
	b.WriteString("| damaged codes taken for good, in files with one bit turned, cut anywhere, or an octet longer; version 0.1 took 364 of 750 | 0 of 100,000 | none |  | must | `go test -tags long -run TestDamagedFiles ./internal/link/compact` |\n")
	return b.String()
}

const noStep = 1.001 // of what one octet less costs

// dressCosts are the octets of a document, and the least and the most that it costs in another dress.
func dressCosts() (plain, least, most int) {
	var c Coder
	code, _ := c.Append(nil, []byte(plainDress))
	plain, least = 1+len(code), 1<<20
	for _, d := range dresses() {
		code, _ = c.Append(nil, d.text)
		least, most = min(least, 1+len(code)), max(most, 1+len(code))
	}
	return plain, least, most
}

// dressesCost says it in words.
func dressesCost() string {
	plain, least, most := dressCosts()
	return fmt.Sprintf("%d octets, costs %d. In fifteen other dresses it costs %d to %d", len(plainDress), plain, least, most)
}

// specificationGoals are must and aim for specifications of peers that are not ours, by the capture that has their form.
var specificationGoals = map[string][2]float64{"jxse27-publish": {60, 50}, "jxta22-publish": {75, 62}}
