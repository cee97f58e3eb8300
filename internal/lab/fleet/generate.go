package fleet

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Sketch is a fleet from which Text makes a script: a third of the gateways on a satellite star, a third on an HF channel and a third on a
// UHF channel, two more on each two of these, and all in one group.
type Sketch struct {
	Gateways int
	Peers    int    // JXTA peers of all sites together, and half as many TAK devices; at least one of each at a site
	View     string // how much sites learn of each other's peers; "": as lan.view says
	Churn    Share  // share of the sites that are off the air for half of each minute
}

// Share is a part of a whole, written as "12.5%".
type Share float64

// Set reads "12.5%".
func (s *Share) Set(text string) error {
	number, is := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if !is || err != nil || !(v >= 0 && v <= 100) {
		return fmt.Errorf("%q is no share such as 12.5%%", text)
	}
	*s = Share(v / 100)
	return nil
}

// String is the share as Set reads it.
func (s *Share) String() string { return strconv.FormatFloat(100*float64(*s), 'g', -1, 64) + "%" }

// Bounds of a Sketch.
const (
	leastSketch = 6 // gateways: fewer cannot make three channels
	mostSketch  = maxSites
	bridges     = 2 // sites on two channels, for each pair of channels
	sketched    = 10 * time.Minute
)

// Text is the text of the script, for Read. The error says what cannot be drawn.
func (k Sketch) Text() (string, error) {
	switch {
	case k.Gateways < leastSketch || k.Gateways > mostSketch:
		return "", fmt.Errorf("%d gateways: %d to %d can be played on three channels", k.Gateways, leastSketch, mostSketch)
	case k.Peers < 0 || k.Peers > k.Gateways*maxLocal:
		return "", fmt.Errorf("%d peers: at most %d for each gateway", k.Peers, maxLocal)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "summary = \"%d gateways on a satellite, HF and UHF\"\nduration = %q\nroster = true\nbeyond = %q\n", k.Gateways, sketched, InGroups)
	if k.View != "" {
		fmt.Fprintf(&b, "view = %q\n", k.View)
	}
	fmt.Fprintf(&b, "\n[[group]]\nname = \"fleet\"\nlifetime = \"2h\"\n")
	name := func(i int) string {
		if i == 0 {
			return "hq"
		}
		return fmt.Sprintf("ship%d", i)
	}
	begin, left := 0, k.Gateways+2*bridges
	for n, x := range []Bearer{{Name: "sat", Profile: "iridium-certus-100", Price: 1}, {Name: "hf", Profile: "hf-2400", Price: 2}, {Name: "uhf", Profile: "vhf-cnr-16k", Price: 0.5}} {
		size := left / (3 - n)
		left -= size
		var sites []string
		for i := begin; i < begin+size; i++ {
			sites = append(sites, strconv.Quote(name(i)))
		}
		begin += size - bridges
		fmt.Fprintf(&b, "\n[[bearer]]\nname = %q\nprofile = %q\nprice = %g\nsites = [%s]\n", x.Name, x.Profile, x.Price, strings.Join(sites, ", "))
	}
	part := func(all, i int) int { return max(1, (all+k.Gateways-1-i)/k.Gateways) }
	for i := range k.Gateways {
		fmt.Fprintf(&b, "\n[[site]]\nname = %q\nashore = %v\njxta = %d\ntak = %d\n", name(i), i == 0, part(k.Peers, i), part(k.Peers/2, i))
	}
	b.WriteString("\n[[talk]]\npeers = \"jxta\"\nevery = \"4m\"\noctets = 128\n\n[[talk]]\npeers = \"tak\"\nevery = \"5m\"\noctets = 80\n")
	if k.Churn > 0 {
		fmt.Fprintf(&b, "\n[[churn]]\nwhat = %q\nshare = %g\nevery = \"60s\"\nfor = \"30s\"\nat = \"30s\"\nuntil = \"9m\"\n", Cut, float64(k.Churn))
	}
	return b.String(), nil
}
