package operator

import (
	"bytes"
	"strings"
	"testing"

	"aldis/internal/cli"
	"aldis/internal/gateway"
	"aldis/internal/link/profile"
)

// TestSurveyPrice: who pays is told before anything goes.
func TestSurveyPrice(t *testing.T) {
	for name, want := range map[string]string{
		"iridium-directip": "at most 5000 octets, both ways together, 6 s of air; the bill grows with octets",
		"iridium-dialup":   "at most 5000 octets, both ways together, 17 s of air; the bill grows with minutes, and it takes some",
		"hf-2400":          "at most 5000 octets, both ways together, 17 s of air, which the bill does not count",
	} {
		p, err := profile.Load(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := gateway.SurveyPlan(p, false, 5000)
		if err != nil {
			t.Fatal(err)
		}
		if text, dear := surveyPrice(p, plan); text != want || dear != (p.Tariff != profile.TariffNone) {
			t.Errorf("%s: %s, %v; want %s", name, text, dear, want)
		}
	}
}

func TestSurveyUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"hq", "ship"}, {"hq", "--budget", "100"}, {"hq", "--budget", "1000000"}} {
		var out, said bytes.Buffer
		if code := surveyCommand(args, &out, &said); code != cli.ExitUsage || !strings.Contains(said.String(), "usage: gateway survey") && len(args) != 2 {
			t.Errorf("%v: %d, %s", args, code, said.String())
		}
	}
}
