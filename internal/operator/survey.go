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

	"aldis/internal/cli"
	"aldis/internal/config"
	"aldis/internal/control"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/link/profile"
	"aldis/internal/link/survey"
)

const surveyAbout = `usage: gateway survey ID|NAME [--budget OCTETS] [--yes] [-c FILE] [--token FILE] [--profile P] [--out FILE] [--name N] [--json]

Measures the link between the gateway on this machine and a far one, both of which run: rate, delay, jitter and loss each
way, on a shared channel the change of talker. They send each other single datagrams and then a train of them, OCTETS in
all and both ways at the most (IP octets, 5000 unless told). The far gateway never sends more than it was sent. Messages
go before a survey, and nothing goes in a silence.

First it says what that costs. Where the link is paid by octets or minutes it goes on only with --yes. --out writes a
profile: each number says whether it was surveyed, or taken over because so few datagrams do not tell otherwise. More octets
tell more. What the datagrams tell, and the profile, is worked out by gateway-lab; without it the datagrams' own figures are printed,
and what --json prints is a file for gateway tune --survey elsewhere. --profile is the link's profile when it is not that of FILE. Between two terminals of one satellite both legs are
measured as one. Packets of the size of a survey do not fill the modem's queue, and sealed octets do not compress: queue_octets
and compresses are taken over.

Exit: 0 the link was measured, 1 it was not, 2 wrong usage.
`

// surveyed is what gateway survey was told.
type surveyed struct {
	who, file, token, profile, out, name string
	budget                               int
	yes, json                            bool
}

func surveyCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("survey", flag.ContinueOnError)
	var s surveyed
	fs.StringVar(&s.file, "c", cli.DefaultConfig, "configuration `file`")
	fs.StringVar(&s.token, "token", "", "order over http.listen with the token in `FILE`")
	fs.IntVar(&s.budget, "budget", survey.DefaultBudget, "IP `octets` of both directions, at the most")
	fs.BoolVar(&s.yes, "yes", false, "it may cost what it costs")
	fs.StringVar(&s.profile, "profile", "", "link: `name` or file (default: link.profile)")
	fs.StringVar(&s.out, "out", "", "`file` for the profile; - is standard output, instead of the text")
	fs.StringVar(&s.name, "name", "", "`name` of the profile (default: the link's, with -surveyed)")
	fs.BoolVar(&s.json, "json", false, "print JSON")
	rest, code, done := cli.Parse(fs, args, 1, surveyAbout, stdout, stderr)
	if done {
		return code
	}
	if len(rest) != 1 || s.budget < survey.LeastBudget || s.budget > survey.MostBudget {
		fmt.Fprintf(stderr, "gateway survey: say which peer, and a budget of %d to %d octets\n\n%s", survey.LeastBudget, survey.MostBudget, surveyAbout)
		return cli.ExitUsage
	}
	s.who = rest[0]
	lab, err := cli.Lab()
	if err != nil && s.out != "" { // before anything is sent
		cli.Fail(stderr, "survey", fmt.Errorf("--out: %w", err))
		return cli.ExitUsage
	}
	if err := s.run(lab, stdout, stderr); err != nil {
		return cli.Fail(stderr, "survey", err)
	}
	return cli.ExitGood
}

// run surveys the link, and reports it. lab is the path of gateway-lab; "": there is none.
func (s surveyed) run(lab string, stdout, stderr io.Writer) error {
	if s.profile == "" {
		var err error
		if s.profile, err = config.LinkProfile(s.file); err != nil {
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
	plan, err := gateway.SurveyPlan(base, !terminal, s.budget)
	if err != nil {
		return err
	}
	text, dear := surveyPrice(base, plan)
	fmt.Fprintf(stderr, "gateway survey: %s\n", text)
	if dear && !s.yes {
		return errors.New("nothing was sent: go on with --yes")
	}
	got, err := surveyAt(desk, peer.ID, s.budget)
	if err != nil {
		return err
	}
	s.name = cmp.Or(s.name, strings.TrimSuffix(base.Name, "-surveyed")+"-surveyed")
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

// surveyPrice says what a survey costs, and whether somebody has to pay for it.
func surveyPrice(p profile.Profile, plan survey.Plan) (text string, dear bool) {
	text = fmt.Sprintf("at most %d octets, both ways together, %.0f s of air", plan.Budget, plan.Air(p).Seconds())
	switch cmp.Or(p.Tariff, profile.TariffOctets) {
	case profile.TariffOctets:
		return text + "; the bill grows with octets", true
	case profile.TariffMinutes:
		return text + "; the bill grows with minutes, and it takes some", true
	}
	return text + ", which the bill does not count", false
}

// surveyAt orders a survey and waits until it is over.
func surveyAt(d desk, peer uint16, budget int) (got control.Survey, err error) {
	body, _ := json.Marshal(control.SurveyOrder{Peer: peer, Budget: budget})
	if _, err = d.TalkOf(&got, "POST", "/survey", body); err != nil {
		return got, err
	}
	for got.State == api.SurveyRuns {
		time.Sleep(500 * time.Millisecond)
		if _, err = d.TalkOf(&got, "GET", "/survey", nil); err != nil {
			return got, err
		}
	}
	if got.State != api.SurveyDone {
		err = fmt.Errorf("%s (%d octets were sent, %d came)", got.Text, got.Sent, got.Received)
	}
	return got, err
}

// surveyReport is what --json prints, and what gateway-lab is given to judge the link: gateway tune --survey reads it.
type surveyReport struct {
	Survey   api.SurveyStatus `json:"survey"`
	Terminal bool             `json:"terminal"` // the near end: what it sent went up
	Link     json.RawMessage  `json:"link,omitempty"`
	Packets  []survey.Packet  `json:"packets"`
}

// report prints what the datagrams tell of the link: by gateway-lab at this path, and without it as they are.
func (s surveyed) report(got control.Survey, terminal bool, lab string, stdout io.Writer) error {
	r := surveyReport{Survey: got.SurveyStatus, Terminal: terminal, Packets: got.Packets}
	told := []byte(surveyFigures(got.Packets) + "gateway-lab tells more of them: the rate, and what is by chance\n")
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
	fmt.Fprintf(stdout, "%s: %d octets from here, %d from there\n\n%s", got.Peer, got.Sent, got.Received, told)
	if got.Others > 0 {
		fmt.Fprintf(stdout, "%d datagrams of other traffic passed meanwhile: what they held up counts as jitter\n", got.Others)
	}
	return nil
}

// judged is what gateway-lab prints of a survey. It writes the profile to a file.
func (s surveyed) judged(r surveyReport, lab string) ([]byte, error) {
	in, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	args := []string{"tune", "--survey", "-", "--profile", s.profile, "--name", s.name, "--out", s.out}
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

// surveyFigures are those that need no judgement: datagrams of each direction, how many were lost, the largest that came, and how
// long a datagram and its answer took.
func surveyFigures(list []survey.Packet) string {
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
	if slices.Sort(trips); len(trips) > 0 {
		text += fmt.Sprintf("there and back in %d ms at least, in %d at half of %d\n", trips[0].Milliseconds(), trips[len(trips)/2].Milliseconds(), len(trips))
	}
	return text
}
