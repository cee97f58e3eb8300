package operator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/link/probe"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
)

const linkProbeAbout = `usage: gateway probe ID|NAME [--link NAME] [--budget OCTETS] [--yes] [-c FILE] [--token FILE] [--profile P] [--out FILE] [--name N] [--json]

Measures the link between the gateway on this machine and a far one, both of which run: rate, delay, jitter and loss each
way, on a shared channel the change of talker. They send each other single datagrams and then a train of them, OCTETS in
all and both ways at the most (IP octets, 5000 unless told). The far gateway never sends more than it was sent. Messages
go before a link probe, and nothing goes in a silence. Of several [[link]] --link names the one to measure; otherwise it is the first.

First it says what that costs. Where the link is paid by octets or minutes it goes on only with --yes. --out writes a
profile: each number says whether it was probed, or taken over because so few datagrams do not tell otherwise. More octets
tell more. What the datagrams tell, and the profile, is worked out by gateway-lab; without it the datagrams' own figures are printed,
and what --json prints is a file for gateway tune --probe elsewhere. --profile is the link's profile when it is not that of FILE. Between two terminals of one satellite both legs are
measured as one. Packets of the size of a link probe do not fill the modem's queue, and sealed octets do not compress: queue_octets
and compresses are taken over.

Exit: 0 the link was measured, 1 it was not, 2 wrong usage.
`

// probed holds the arguments of gateway probe.
type probed struct {
	who, file, link, token, profile, out, name string
	budget                                     int
	yes, json                                  bool
}

func linkProbeCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("probe", flag.ContinueOnError)
	var s probed
	fs.StringVar(&s.file, "c", cli.DefaultConfig, "configuration `file`")
	fs.StringVar(&s.link, "link", "", "the [[link]] to measure (`NAME`; default: the first)")
	fs.StringVar(&s.token, "token", "", "order over http.listen with the token in `FILE`")
	fs.IntVar(&s.budget, "budget", probe.DefaultBudget, "IP `octets` of both directions, at the most")
	fs.BoolVar(&s.yes, "yes", false, "it may cost what it costs")
	fs.StringVar(&s.profile, "profile", "", "link: `name` or file (default: link.profile)")
	fs.StringVar(&s.out, "out", "", "`file` for the profile; - is standard output, instead of the text")
	fs.StringVar(&s.name, "name", "", "`name` of the profile (default: the link's, with -probed)")
	fs.BoolVar(&s.json, "json", false, "print JSON")
	rest, code, done := cli.Parse(fs, args, 1, linkProbeAbout, stdout, stderr)
	if done {
		return code
	}
	if len(rest) != 1 || s.budget < probe.LeastBudget || s.budget > probe.MostBudget {
		fmt.Fprintf(stderr, "gateway probe: say which peer, and a budget of %d to %d octets\n\n%s", probe.LeastBudget, probe.MostBudget, linkProbeAbout)
		return cli.ExitUsage
	}
	s.who = rest[0]
	lab, err := cli.Lab()
	if err != nil && s.out != "" { // before anything is sent
		cli.Fail(stderr, "probe", fmt.Errorf("--out: %w", err))
		return cli.ExitUsage
	}
	if err := s.run(lab, stdout, stderr); err != nil {
		return cli.Fail(stderr, "probe", err)
	}
	return cli.ExitGood
}

// run link probes the link, and reports it. lab is the path of gateway-lab; "": there is none.
func (s probed) run(lab string, stdout, stderr io.Writer) error {
	if s.profile == "" {
		var err error
		if s.profile, err = config.LinkProfile(s.file, s.link); err != nil {
			return err
		}
	}
	base, _, err := cli.ProfileWithSource(s.profile)
	if err != nil {
		return err
	}
	desk, err := DeskOf(s.file, s.token)
	if err != nil {
		return err
	}
	var now control.Report
	if _, err := desk.TalkOf(&now, "GET", "/status", nil); err != nil {
		return err
	}
	peer, err := peerCalled(now.Peers, s.who)
	if err != nil {
		return fmt.Errorf("the gateway at %s %w", desk.at, err)
	}
	terminal := now.End == "terminal"
	for _, b := range now.Bearers {
		if b.Name == s.link && b.Link != nil {
			terminal = b.End == "terminal"
		}
	}
	plan, err := gateway.LinkProbePlan(base, !terminal, s.budget)
	if err != nil {
		return err
	}
	text, dear := linkProbePrice(base, plan)
	fmt.Fprintf(stderr, "gateway probe: %s\n", text)
	if dear && !s.yes {
		return errors.New("nothing was sent: go on with --yes")
	}
	got, err := linkProbeAt(desk, control.LinkProbeOrder{Peer: peer.ID, Link: s.link, Budget: s.budget})
	if err != nil {
		return err
	}
	s.name = cmp.Or(s.name, strings.TrimSuffix(base.Name, "-probed")+"-probed")
	return s.report(got, terminal, lab, stdout)
}

func peerCalled(peers []api.PeerStatus, who string) (api.PeerStatus, error) {
	for _, p := range peers {
		if p.Name == who || strconv.Itoa(int(p.ID)) == who {
			return p, nil
		}
	}
	return api.PeerStatus{}, fmt.Errorf("has no peer with the id or name %q: gateway peer list", who)
}

// linkProbePrice says how many octets a link probe takes, and whether they cost money.
func linkProbePrice(p profile.Profile, plan probe.Plan) (text string, dear bool) {
	text = fmt.Sprintf("at most %d octets, both ways together, %.0f s of air", plan.Budget, plan.Air(p).Seconds())
	switch cmp.Or(p.Tariff, profile.TariffOctets) {
	case profile.TariffOctets:
		return text + "; the bill grows with octets", true
	case profile.TariffMinutes:
		return text + "; the bill grows with minutes, and it takes some", true
	}
	return text + ", which the bill does not count", false
}

// linkProbeAt orders a link probe and waits until it is done.
func linkProbeAt(d desk, order control.LinkProbeOrder) (got control.LinkProbe, err error) {
	body, _ := json.Marshal(order)
	if _, err = d.TalkOf(&got, "POST", "/probe", body); err != nil {
		return got, err
	}
	for got.State == api.LinkProbeRuns {
		time.Sleep(500 * time.Millisecond)
		if _, err = d.TalkOf(&got, "GET", "/probe", nil); err != nil {
			return got, err
		}
	}
	if got.State != api.LinkProbeDone {
		err = fmt.Errorf("%s (%d octets were sent, %d came)", got.Text, got.Sent, got.Received)
	}
	return got, err
}

// linkProbeReport is the output of --json, and gateway-lab's input to judge the link: gateway tune --probe reads it.
type linkProbeReport struct {
	LinkProbe api.LinkProbeStatus `json:"link_probe"`
	Terminal  bool                `json:"terminal"` // the near end: what it sent went up
	Link      json.RawMessage     `json:"link,omitempty"`
	Packets   []probe.Packet      `json:"packets"`
}

// report prints what the datagrams show about the link: through gateway-lab at the path lab, or without it the plain figures.
func (s probed) report(got control.LinkProbe, terminal bool, lab string, stdout io.Writer) error {
	r := linkProbeReport{LinkProbe: got.LinkProbeStatus, Terminal: terminal, Packets: got.Packets}
	told := []byte(linkProbeFigures(got.Packets) + "gateway-lab tells more of them: the rate, and what is by chance\n")
	if lab != "" {
		var err error
		if told, err = s.judged(r, lab); err != nil {
			return err
		}
	}
	switch {
	case s.out == "-":
		_, err := stdout.Write(told)
		return err
	case s.json:
		if lab != "" {
			r.Link = told
		}
		return cli.PrintJSON(stdout, r)
	}
	who := got.Peer
	if got.Bearer != "" {
		who += " on " + got.Bearer
	}
	fmt.Fprintf(stdout, "%s: %d octets from here, %d from there\n\n%s", who, got.Sent, got.Received, told)
	if got.Others > 0 {
		fmt.Fprintf(stdout, "%d datagrams of other traffic passed meanwhile: what they held up counts as jitter\n", got.Others)
	}
	return nil
}

// judged is gateway-lab's judgement of a link probe. gateway-lab writes the profile to a file.
func (s probed) judged(r linkProbeReport, lab string) ([]byte, error) {
	in, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	args := []string{"tune", "--probe", "-", "--profile", s.profile, "--name", s.name, "--out", s.out}
	if s.json {
		args = append(args, "--json")
	}
	cmd := exec.Command(lab, args...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &said
	out, err := cmd.Output()
	if text := strings.TrimPrefix(strings.TrimSpace(said.String()), "gateway tune: "); err != nil && text != "" {
		err = errors.New(text)
	}
	return out, err
}

// linkProbeFigures are the figures that need no judgement: datagrams of each direction, how many were lost, the largest that came,
// and how long a datagram and its answer took.
func linkProbeFigures(list []probe.Packet) string {
	type direction struct{ sent, lost, largest int }
	var up, down direction
	var trips []time.Duration
	for i, p := range list {
		d := &down
		if p.Up {
			d = &up
		}
		d.sent++
		if p.Lost {
			d.lost++
			continue
		}
		d.largest = max(d.largest, p.Octets)
		if i > 0 && !p.Up && list[i-1].Up && !list[i-1].Lost {
			trips = append(trips, p.Arrived-list[i-1].Sent-(p.Sent-list[i-1].Arrived))
		}
	}
	text := fmt.Sprintf("%-34s %16s %16s\n", "", "from here", "from there")
	row := func(what string, here, there int) { text += fmt.Sprintf("%-34s %16d %16d\n", what, here, there) }
	row("datagrams", up.sent, down.sent)
	row("lost", up.lost, down.lost)
	row("largest that arrived, octets", up.largest, down.largest)
	slices.Sort(trips)
	if len(trips) > 0 {
		text += fmt.Sprintf("there and back in %d ms at least, in %d at half of %d\n", trips[0].Milliseconds(), trips[len(trips)/2].Milliseconds(), len(trips))
	}
	return text
}
