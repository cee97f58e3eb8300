package field

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"aldis/internal/lab/report"
	"aldis/internal/lab/shapes"
)

const usage = `usage: gateway lab blue-game [flags]

Plays HQ and ships on this machine: network namespaces joined by the link emulator, gateways, and unmodified JXTA
peers. Each peer publishes a service with a propagate pipe, opens the other side's, and sends track messages. The
figures are measured at the emulator and in the peers. It needs root. Ctrl-C removes everything.

`

const overview = `usage: gateway lab LAB [flags]

  blue-game  HQ and ships on a satellite link, as in the exercise of 2004
  hf-net     HQ and ships on one half-duplex HF channel, some of them silent for the first part
  fleet      sites with several bearers, and accidents, from a script
  site       HQ and a ship of several gateways each, whose machines lose their power and are upgraded

All play with network namespaces, the link emulator, gateways and unmodified JXTA peers on this machine. The first two take
the same flags.
gateway lab LAB -h says more.
`

const usageHF = `usage: gateway lab hf-net [flags]

Plays HQ and ships on this machine, all on one half-duplex channel with a group's address: network namespaces joined
by the link emulator, gateways, and unmodified JXTA peers that publish, discover and send track messages. From the first
minute on, and for half of the time, some ships must not transmit (gateway silence). The figures are measured at the
emulator and in the peers. It needs root. Ctrl-C removes everything.

`

const usageEnd = `
Times of scenarios count from the start of the ship's peer, and must be before the end of --duration.
Examples:
  gateway lab blue-game --unaided                       with and without gateways, side by side, about four minutes
  gateway lab blue-game --peers jxta22 --http           the peers and the transport of 2004
  gateway lab blue-game --profile hf-2400 --rate 20s --duration 5m
  gateway lab blue-game --outage 60s@60s --asker --bulk 20000@140s --duration 4m
  gateway lab blue-game --idle 10m --json -
  gateway lab blue-game --shapes strangers --squeeze --rate 600ms      an ordinary day: other software, a busy machine
  gateway lab blue-game --peers tak --profile iridium-dialup --duration 5m     TAK devices, and beside them TCP alone
  gateway lab blue-game --peers xmpp --profile iridium-dialup --duration 25m --outage 600s@300s --kill ship@900s --unaided
With --peers tak three devices of each site move and report, ships raise alerts and sites chat. Headquarters has taky where
make tak-peers has installed it. The same events go through TCP connections between servers that federate, unless --only
says otherwise. With --peers xmpp three clients of each site chat in one room and in pairs, with ejabberd at headquarters and
Prosody on each ship; --unaided has the servers speak to each other over the link beside it.
Exit: 0 every message (alert, chat, line) that counts arrived once and unchanged, 1 not so or the game could not be played, 2 wrong usage.
`

// Main is `gateway lab`: args are the arguments after "lab". It returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	lab := ""
	if len(args) > 0 {
		lab = args[0]
	}
	switch lab {
	case "-h", "--help", "help":
		fmt.Fprint(stdout, overview)
		return 0
	case "blue-game", "hf-net", "fleet", "site":
	default:
		fmt.Fprintf(stderr, "gateway lab: say which\n\n%s", overview)
		return 2
	}
	parse := parseFlags
	switch lab {
	case "fleet":
		parse = parseFleet
	case "site":
		parse = parseSite
	}
	play, out, err := parse(lab, args[1:], stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(stderr, "gateway lab %s: %s\n", lab, strings.TrimSuffix(line, "\n"))
		}
		return 2
	}
	progress := stdout
	if out.json == "-" {
		progress = stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	res, err := play(ctx, progress)
	if err == nil {
		err = write(res, out, stdout, progress)
	}
	var bad *UsageError
	switch {
	case errors.As(err, &bad):
		fmt.Fprintf(stderr, "gateway lab %s: %v\n", lab, err)
		return 2
	case err != nil && ctx.Err() != nil:
		fmt.Fprintf(stderr, "gateway lab %s: interrupted; everything is removed\n", lab)
		return 1
	case err != nil:
		fmt.Fprintf(stderr, "gateway lab %s: %v\n", lab, err)
		return 1
	}
	if faults := res.Faults(); faults != "" {
		fmt.Fprintf(stderr, "gateway lab %s: %s\n", lab, faults)
		return 1
	}
	return 0
}

// player plays a trial and reports on it to progress.
type player func(ctx context.Context, progress io.Writer) (result, error)

// game plays the Blue Game or hf-net.
func (o Options) game(pictured bool) player {
	return func(ctx context.Context, progress io.Writer) (result, error) {
		o.Progress, o.Pictured = progress, pictured
		switch o.Peers {
		case KindTAK:
			return TAKGame(ctx, o)
		case KindXMPP:
			return XMPPGame(ctx, o)
		}
		return BlueGame(ctx, o)
	}
}

// result is the result of a trial.
type result interface {
	Board(w io.Writer) error
	Page() report.Page
	Faults() string // the faults with gateways; "": none
}

// Board writes the runs next to the figures of 2004.
func (r *Result) Board(w io.Writer) error { return scoreboard(w, r) }

// Faults lists the faults of the run with gateways; "": none.
func (r *Result) Faults() string { return r.Runs["gateway"].faults() }

// faults lists what is wrong with a run with gateways; empty when all is well or there was no such run.
func (r *Run) faults() string {
	if r == nil {
		return ""
	}
	var list report.FaultList
	list.Check(r.MessagesSent == 0, "no peer ever had the other side's pipe open")
	list.Check(r.MessagesDelivered < r.MessagesSent, "%d messages did not arrive", r.MessagesSent-r.MessagesDelivered)
	list.Check(r.Duplicates > 0, "%d messages came twice", r.Duplicates)
	list.Check(r.Corrupted > 0, "%d messages came changed", r.Corrupted)
	list.Check(len(r.GatewayErrors) > 0, "%s", strings.Join(r.GatewayErrors, "; "))
	return list.String()
}

// outputs are the files for the figures; "": none.
type outputs struct{ json, html string }

func (o *outputs) flags(fs *flag.FlagSet) {
	fs.StringVar(&o.json, "json", "", "write the figures to `file`; - is standard output, and text goes to standard error")
	fs.StringVar(&o.html, "html", "", "`file` for a page with the figures and plots, complete in itself")
}

func write(res result, out outputs, stdout, text io.Writer) error {
	if err := res.Board(text); err != nil {
		return err
	}
	if out.html != "" {
		if err := writePage(res, out.html, text); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	jsonFile := out.json
	if jsonFile == "" {
		return nil
	}
	b, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if jsonFile == "-" {
		_, err = stdout.Write(b)
		return err
	}
	return os.WriteFile(jsonFile, b, 0o644)
}

// timed is "WHAT@TIME".
type timed struct {
	set func(what string) error
	at  *time.Duration
}

func (t timed) String() string { return "" }

func (t timed) Set(s string) error {
	what, at, ok := strings.Cut(s, "@")
	if ok {
		d, err := time.ParseDuration(at)
		if err != nil {
			return err
		}
		*t.at = d
	}
	return t.set(what)
}

// defaults are the options in which the labs differ.
func defaults(lab string) Options {
	if lab == "hf-net" {
		return Options{Profile: "hf-2400", Duration: 10 * time.Minute, Rate: 20 * time.Second, Ships: 3, Silent: 1}
	}
	return Options{Profile: "iridium-directip", Duration: 150 * time.Second, Rate: 5 * time.Second, Ships: 1}
}

func flags(lab string, o *Options) (*flag.FlagSet, *outputs) {
	fs := flag.NewFlagSet("gateway lab "+lab, flag.ContinueOnError)
	d := defaults(lab)
	fs.StringVar(&o.Profile, "profile", d.Profile, "`name` of a link profile, or a path (gateway profiles lists them)")
	fs.DurationVar(&o.Duration, "duration", d.Duration, "how long the peers send, from the start of the ship's peer")
	fs.DurationVar(&o.Rate, "rate", d.Rate, "between two messages of a peer, or reports of a device")
	fs.IntVar(&o.Size, "size", 200, "octets of a message")
	fs.StringVar(&o.Shapes, "shapes", ShapesTracks, "`kind` of messages: tracks, or strangers: elements from, seq, ts, crc and body, text and binary, drawn from the seed")
	fs.StringVar(&o.Arrivals, "arrivals", shapes.Patterns[0], "`pattern` of strangers' messages: "+strings.Join(shapes.Patterns, ", "))
	fs.BoolVar(&o.Squeeze, "squeeze", false, "a busy loop for each processor of this machine runs beside the game")
	fs.BoolVar(&o.Reorder, "reorder", false, "the link's jitter lets packets overtake each other, which no profile tells the gateways (--shapes strangers says so too)")
	fs.Float64Var(&o.Twice, "twice", 0, "`percent` of packets that arrive twice on each leg of the link")
	fs.Uint64Var(&o.Seed, "seed", 1, "of the link's losses and delays, and of what strangers say")
	fs.StringVar(&o.Up, "measured-up", "", "`file` of what a real link did to each packet from the ship, instead of the profile's loss and delay: lines \"milliseconds delay\", or \"milliseconds lost\"")
	fs.StringVar(&o.Down, "measured-down", "", "the same to the ship")
	fs.StringVar(&o.Peers, "peers", KindJXSE27, "`kind` of the peers: jxse27 (signed), jxse27-unsigned, jxta22, tak: devices that speak Cursor on Target, or xmpp: servers and their clients")
	fs.IntVar(&o.Devices, "devices", 3, "with --peers tak or xmpp: `number` of devices or clients of each site")
	fs.StringVar(&o.ShipPeer, "ship-peers", "", "`kind` of the ships' peers, when another")
	fs.BoolVar(&o.HTTP, "http", false, "the peers use HTTP instead of TCP, as in 2004")
	fs.IntVar(&o.Ships, "ships", d.Ships, "number of ships, 1 to 20")
	fs.BoolVar(&o.Unaided, "unaided", false, "also play without gateways, at the same time")
	fs.StringVar(&o.Only, "only", "", "play only this `run`: gateway or unaided")
	fs.DurationVar(&o.Idle, "idle", 20*time.Second, "length of the idle time at the end that is measured")
	fs.DurationVar(&o.Drain, "drain", 0, "wait at most this long for what is under way at the end (default 60 s and four round trips, unaided 20 s)")
	fs.Var(timed{func(s string) (err error) { o.OutageFor, err = time.ParseDuration(s); return err }, &o.OutageAt}, "outage", "take the link down, `60s@120s` is for 60 s at 120 s")
	fs.BoolVar(&o.Asker, "asker", false, "a second peer on the ship asks for HQ's service during the outage")
	fs.Var(timed{func(s string) (err error) { o.Bulk, err = strconv.Atoi(s); return err }, &o.BulkAt}, "bulk", "one long message each way, `20000@60s` is so many octets at 60 s")
	fs.DurationVar(&o.RedialAt, "redial", 0, "the first ship's link gets another address `then`, as behind NAT")
	fs.IntVar(&o.Silent, "silent", d.Silent, "`number` of ships, the last ones, that transmit nothing for the first part (from a minute on, half of --duration)")
	fs.StringVar(&o.Deaf, "deaf", "", "`ship3`: that ship's peer publishes, opens and sends nothing")
	fs.Var(timed{func(s string) error { o.Kill = s; return nil }, &o.KillAt}, "kill", "kill -9 a site's gateway and start it again, `ship@100s`")
	fs.StringVar(&o.Gateway, "gateway", "", "`path` of the gateway under test (default: gateway beside gateway-lab)")
	fs.StringVar(&o.JarDir, "peers-dir", "", "`directory` of the built JXTA peers (default field-tests/peers above here)")
	fs.StringVar(&o.Keep, "keep", "", "`directory` for logs, configurations and captures of the link")
	out := &outputs{}
	out.flags(fs)
	fs.Usage = func() {
		w := fs.Output()
		head, end := about(lab)
		fmt.Fprint(w, head)
		fs.PrintDefaults()
		fmt.Fprint(w, end)
	}
	return fs, out
}

// about is the help of a lab, before and after its flags.
func about(lab string) (head, end string) {
	if lab == "hf-net" {
		return usageHF, ""
	}
	return usage, usageEnd
}

// Describe is the help of a lab and its flags; nil: there is no such command here.
func Describe(command string) (text string, fs *flag.FlagSet) {
	switch command {
	case "lab blue-game", "lab hf-net":
		var o Options
		lab := strings.TrimPrefix(command, "lab ")
		head, end := about(lab)
		fs, _ = flags(lab, &o)
		return head + strings.TrimLeft(end, "\n"), fs
	case "lab fleet":
		return usageFleet, fleetFlags(&fleetArgs{})
	case "lab site":
		return usageSite, siteFlags(&siteArgs{})
	}
	return "", nil
}

// parseFlags prints help to w if the arguments want it; wrong flags come back as an error without help.
func parseFlags(lab string, args []string, w io.Writer) (player, outputs, error) {
	var o Options
	fs, out := flags(lab, &o)
	err := parsed(fs, args, w)
	return o.game(out.html != ""), *out, err
}

func parsed(fs *flag.FlagSet, args []string, w io.Writer) error {
	fs.SetOutput(io.Discard)
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(w)
		fs.Usage()
	case err == nil && fs.NArg() > 0:
		err = fmt.Errorf("%q is no flag", fs.Arg(0))
	}
	return err
}
