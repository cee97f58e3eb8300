package commands

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/edge/infile"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/sim"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

const replayAbout = `usage: gateway replay TRACE [--profile P] [--gateways FILE[,FILE]] [--seed N] [--from T] [--to T] [--live] [--json]
                      [--html FILE]

Plays a trace (gateway record, gateway synth) through whole gateways over an emulated link. It prints the octets and times
of the replay beside those of the trace. In virtual time a half-hour trace takes a second or two, and the same trace,
settings and seed give the same figures. With --live it runs in real time: gateways as processes in network namespaces,
peers (or TAK devices) on TCP sockets, the emulator between them. That needs root. A trace of XMPP plays in virtual time
alone.

--gateways takes ordinary configurations of gateways: one for both sides, or two, of which the one with end = "shore" (or
else the first) is ashore. The replay uses their rules of compaction, filters, message rules, keepalive and name, and their
profile unless --profile says otherwise. Two [[link]] are both played, with their prices, octets of the day and [[route]]
rules: the figures then say what each link carried and cost, and by which rule messages took it. A live replay plays one.

Exit: 0 played to its end; 1 not, or the link cannot carry the trace: the figures then show how far the replay came.
`

func replayCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("replay", flag.ContinueOnError)
	profileName := fs.String("profile", "", "link: `name` or file (default: that of --gateways, else iridium-directip-shore)")
	gateways := fs.String("gateways", "", "configuration `file`s of the gateways, one or two with a comma between")
	seed := fs.Uint64("seed", 1, "of losses, jitter, and everything that the trace leaves open")
	content := fs.String("content", trace.ContentXML, "of messages that have only sizes: xml, text or random")
	from := fs.Duration("from", 0, "begin here; what was published and opened earlier is done at the start")
	to := fs.Duration("to", 0, "end here (default: the trace's end)")
	live := fs.Bool("live", false, "real gateways, real time")
	keep := fs.String("keep", "", "with --live: `directory` that gets configurations, logs and captures of the link")
	asJSON := fs.Bool("json", false, "print JSON")
	page := fs.String("html", "", "`file` for a page with plots, complete in itself; - prints it instead of the text")
	rest, code, done := cli.Parse(fs, args, 1, replayAbout, stdout, stderr)
	if done {
		return code
	}
	var err error
	switch {
	case len(rest) == 0:
		err = errors.New("which trace?")
	case *content != trace.ContentXML && *content != trace.ContentText && *content != trace.ContentRandom:
		err = fmt.Errorf("--content: %q is none of xml, text, random", *content)
	case *from < 0 || *to < 0 || *to > 0 && *to <= *from:
		err = fmt.Errorf("--from %v and --to %v leave nothing", *from, *to)
	case *keep != "" && !*live:
		err = errors.New("--keep: only a live replay has files")
	}
	if err != nil {
		fmt.Fprintf(stderr, "gateway replay: %v\n\n%s", err, replayAbout)
		return cli.ExitUsage
	}
	o := replay.Options{Seed: *seed, Content: *content}
	link, err := replaySettings(&o, *profileName, *gateways)
	if err != nil {
		return cli.Mistakes(stderr, err)
	}
	f, damage := readTrace(rest[0])
	if f == nil {
		return cli.Fail(stderr, "replay", fmt.Errorf("%s: %w", rest[0], damage))
	}
	if *from > 0 || *to > 0 {
		f = replay.Window(f, *from, *to)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	c, err := clientsOf(f, o, stderr)
	var out *outcome
	switch {
	case err != nil:
	case *live && o.Second != nil:
		err = errors.New("--live plays one link: say which with --profile")
	case *live:
		out, err = c.replayLive(ctx, o, link, *keep)
	default:
		out, err = c.replay(ctx, o)
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	if out != nil {
		if damage != nil && out.result != nil {
			out.result.Problem("%v", damage)
			damage = nil
		}
		err = errors.Join(err, out.show(*page, *asJSON, stdout), damage)
	}
	if err != nil {
		return cli.Fail(stderr, "replay", fmt.Errorf("%s: %w", rest[0], err))
	}
	if r := out.result; r != nil && r.Partial {
		fmt.Fprintf(stderr, "gateway replay: %s: the figures are partial: %s\n", rest[0], r.Problems[0])
		return cli.ExitRefused
	}
	return cli.ExitGood
}

// replaySettings reads the settings in the profile and the gateways' configurations, and returns how a gateway's configuration would name
// the profile.
func replaySettings(o *replay.Options, profileName, gateways string) (link string, err error) {
	var configs []*config.Config
	for file := range strings.SplitSeq(gateways, ",") {
		if gateways == "" {
			break
		}
		c, err := config.Load(strings.TrimSpace(file))
		if err != nil {
			return "", err
		}
		configs = append(configs, c)
	}
	if profileName == "" && len(configs) == 0 {
		profileName = "iridium-directip-shore"
	}
	switch len(configs) {
	case 0:
	case 1:
		o.Ship, o.Shore = gatewayOf(configs[0], nil, shoreSite), gatewayOf(configs[0], nil, shipSite)
		o.Ship.Name, o.Shore.Name = "", "" // the two sites cannot share one name
	case 2:
		shore, ship := configs[0], configs[1]
		if ship.Link.Shore && !shore.Link.Shore {
			shore, ship = ship, shore
		}
		if profileName == "" && shore.Link.Profile != ship.Link.Profile {
			return "", fmt.Errorf("%s has profile %s, %s has %s: both ends of a link need the same; say which with --profile",
				shore.File, shore.Link.ProfileName, ship.File, ship.Link.ProfileName)
		}
		o.Ship, o.Shore = gatewayOf(ship, shore, shoreSite), gatewayOf(shore, ship, shipSite)
	default:
		return "", fmt.Errorf("--gateways: %d configurations; a trace has two sides", len(configs))
	}
	if profileName == "" {
		c := configs[0]
		o.Profile, link = c.Link.Profile, c.Link.ProfileName
		if strings.ContainsAny(link, "/.") && !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(c.File), link)
		}
		return link, secondLink(o, configs)
	}
	o.Profile, err = profile.Load(profileName, cli.ReadProfile)
	return profileName, err
}

// secondLink takes the other of two links. Both ends have it.
func secondLink(o *replay.Options, configs []*config.Config) error {
	c := configs[0]
	for _, other := range configs[1:] {
		if len(other.More) != len(c.More) || len(c.More) > 0 && (other.More[0].Name != c.More[0].Name || other.More[0].Profile != c.More[0].Profile) {
			return fmt.Errorf("%s and %s have other [[link]]: both ends need the same, with the same profiles", c.File, other.File)
		}
	}
	switch len(c.More) {
	case 0:
		return nil
	case 1:
	default:
		return fmt.Errorf("%s has %d [[link]]: two are played at most", c.File, 1+len(c.More))
	}
	l := c.More[0]
	wire, err := profile.Load("wire", nil)
	o.Link, o.Price = c.Link.Name, c.Link.Price
	o.Second = &sim.Second{Name: l.Name, Profile: l.Profile, Wire: wire, Price: l.Price, Group: l.Profile.Transport == profile.PMul && l.Profile.Shared}
	return err
}

// Sites of a replay, as filters name them.
const shoreSite, shipSite = 1, 2

// gatewayOf is the part of a configuration that matters in a replay. Rules about one site apply to the other side if they name that
// side's site: the node of far, or the first peer if there is only one configuration.
func gatewayOf(c, far *config.Config, site uint16) replay.Gateway {
	g := replay.Gateway{Name: c.Node.Name, Rules: c.Rules, Messages: c.Messages, Keepalive: c.Link.Keepalive}
	var meant uint16
	switch {
	case far != nil:
		meant = far.Node.ID
	case len(c.Link.Peers) > 0:
		meant = c.Link.Peers[0].ID
	}
	for i, l := range c.Bearers() {
		if i < len(g.PerDay) {
			g.PerDay[i] = l.Octets
		}
	}
	for _, r := range c.Routes {
		if len(r.Sites) == 0 || slices.Contains(r.Sites, meant) {
			r.Sites = nil
			g.Routes = append(g.Routes, r)
		}
	}
	for _, r := range c.Filters {
		if r.Site != 0 && r.Site != meant {
			continue
		}
		if r.Site != 0 {
			r.Site = site
		}
		g.Filters = append(g.Filters, r)
	}
	return g
}

// readTrace reads a trace file; - is standard input. A trace that is cut off comes with the error.
func readTrace(path string) (*trace.File, error) {
	if path == "-" {
		return trace.ReadFile(os.Stdin)
	}
	f, err := infile.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	return trace.ReadFile(f)
}

// clockProgress is a line on a terminal that shows how far a run is.
type clockProgress struct {
	w     io.Writer // nil: nothing is shown
	start time.Time
	shown time.Time
}

func newClockProgress(w io.Writer) *clockProgress {
	p := &clockProgress{start: time.Now()}
	if cli.IsTerminal(w) {
		p.w = w
	}
	return p
}

func (p *clockProgress) show(at, of time.Duration) {
	now := time.Now()
	if p.w == nil || now.Sub(p.start) < time.Second || now.Sub(p.shown) < time.Second/4 {
		return
	}
	p.shown = now
	text := fmt.Sprintf("%3.0f %% of %v played", 100*at.Seconds()/max(of.Seconds(), 1), of.Round(time.Second))
	if at > of {
		text = fmt.Sprintf("the trace is over; %v later, something is still under way", (at - of).Round(time.Second))
	}
	fmt.Fprintf(p.w, "\r%-70s", text)
}

func (p *clockProgress) clear() {
	if p.w != nil && !p.shown.IsZero() {
		fmt.Fprintf(p.w, "\r%-70s\r", "")
	}
}
