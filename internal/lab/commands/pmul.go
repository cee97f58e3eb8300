package commands

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"aldis/internal/edge/infile"
	"aldis/internal/lab/pmulfile"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
	"aldis/internal/pmul"
)

const pmulAbout = `usage: gateway pmul send|receive [flags]

Plain P_Mul, ACP 142, over UDP multicast: reliable file transfer to many receivers over a slow link, for use with
other equipment and for tests. It needs no gateway and no configuration. The profile (section [p_mul]) bounds what one
sender, and all senders, may make a receiver hold.

Nothing is encrypted or authenticated. Whoever reaches the group can forge a Discard, which makes a receiver forget
what it has of one message until that is sent again, or an Ack, which makes one message count as delivered to one
recipient.

  send      send a file and report what became of it at each recipient
  receive   write the files for this node into a directory

gateway pmul send -h and gateway pmul receive -h say more.
`

const pmulSendAbout = `usage: gateway pmul send --group GROUP --id ID --to ID,... --profile PROFILE [flags] FILE

Sends FILE by P_Mul, ACP 142, to the nodes of --to. Node numbers are written as IPv4 addresses; this node's should be
the address of the interface to the link. The pace and all timers come from the link profile (gateway profiles). The
command ends when every recipient is known to have the file, or when the file has expired. Ctrl-C cancels the file.

Nothing waits for the recipients of --silent. The file is repeated to them four times, ten minutes or more apart, and
each counts as delivered when it acknowledges, which may be hours later: choose --expires accordingly.

UDP ports: 2751 to 2754. Exit: 0 all recipients have it, 1 one of them does not or the command failed, 2 wrong usage.
`

const pmulReceiveAbout = `usage: gateway pmul receive --group GROUP --id ID --into DIR --profile PROFILE [flags]

Writes each file that is sent to this node by P_Mul, ACP 142, into DIR, under the name SENDER-MESSAGE: P_Mul carries
no file names. A file is acknowledged when it is on disk. A half-received file survives a restart, in
DIR/.aldis-pmul. Ctrl-C ends the command. UDP ports: 2751 to 2754. Exit: 0 ended by Ctrl-C or SIGTERM, 1 failed, 2 wrong usage.
`

// mostPmulFile is more than the numbers of P_Mul's PDUs can reach.
const mostPmulFile = 128 << 20

func pmulCommand(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, pmulAbout)
		return cli.ExitUsage
	}
	switch args[0] {
	case "send":
		return pmulSend(args[1:], stdout, stderr)
	case "receive":
		return pmulReceive(args[1:], stdout, stderr)
	case "-h", "--help", "help":
		fmt.Fprint(stdout, pmulAbout)
		return cli.ExitGood
	}
	fmt.Fprintf(stderr, "gateway pmul: there is no command %q\n\n%s", args[0], pmulAbout)
	return cli.ExitUsage
}

// pmulFlags are the flags of both commands.
type pmulFlags struct {
	fs                 *flag.FlagSet
	group, id, profile *string
	json               *bool
	wrong              []string
}

func newPMULFlags(name string) *pmulFlags {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	return &pmulFlags{fs: fs,
		group:   fs.String("group", "", "multicast group of the network, an IPv4 address"),
		id:      fs.String("id", "", "node number of this node, written as an IPv4 address"),
		profile: fs.String("profile", "", "link profile: a name or a file"),
		json:    fs.Bool("json", false, "print one JSON object a line on standard output"),
	}
}

func (f *pmulFlags) node(flag, s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() || a.IsMulticast() || a.IsUnspecified() {
		f.wrong = append(f.wrong, fmt.Sprintf("--%s: %q is no node number, written as an IPv4 address such as 10.77.0.1", flag, s))
	}
	return a
}

// config reads the flags that both commands need, and collects mistakes.
func (f *pmulFlags) config(stderr io.Writer) (cfg pmulfile.Config) {
	var err error
	if cfg.Group, err = netip.ParseAddr(*f.group); err != nil || !cfg.Group.Is4() || !cfg.Group.IsMulticast() {
		f.wrong = append(f.wrong, fmt.Sprintf("--group: %q is no IPv4 multicast address such as 239.1.1.1", *f.group))
	}
	cfg.ID = f.node("id", *f.id)
	if *f.profile == "" {
		f.wrong = append(f.wrong, "--profile: missing; gateway profiles lists them")
	} else if cfg.Profile, err = profile.Load(*f.profile, cli.ReadProfile); err != nil {
		f.wrong = append(f.wrong, fmt.Sprintf("--profile: %v", err))
	}
	cfg.Log = slog.New(slog.NewTextHandler(stderr, nil))
	return cfg
}

// warn prints, each time, the shortcomings of interoperability mode.
func (f *pmulFlags) warn(stderr io.Writer) {
	fmt.Fprintf(stderr, "warning: plain ACP 142: nothing is encrypted or authenticated; gateway pmul -h says what can be forged\n")
}

// mistakes prints all mistakes at once.
func (f *pmulFlags) mistakes(stderr io.Writer) bool {
	for _, w := range f.wrong {
		fmt.Fprintf(stderr, "gateway %s: %s\n", f.fs.Name(), w)
	}
	return len(f.wrong) > 0
}

// untilSignal returns a context that ends with Ctrl-C or SIGTERM; a second signal kills.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// pmulState is the file in which a sender keeps its used numbers.
func pmulState(id netip.Addr) (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	switch {
	case dir != "":
	case os.Geteuid() == 0:
		dir = "/var/lib"
	default:
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "aldis", "pmul", id.String()), nil
}

func pmulSend(args []string, stdout, stderr io.Writer) int {
	f := newPMULFlags("pmul send")
	to := f.fs.String("to", "", "recipients, node numbers with commas between")
	expires := f.fs.Duration("expires", 24*time.Hour, "lifetime of the file, such as 90m")
	priority := f.fs.Uint("priority", 0, "0 to 255, the greatest goes first")
	shore := f.fs.Bool("shore", false, "this node is the shore of a star: it sends at the profile's down rate")
	silent := f.fs.String("silent", "", "recipients that may not transmit (EMCON), with commas between: the file is repeated to them blindly")
	dynamic := f.fs.Bool("dynamic", false, "send in a group of its own: one of the 16 after GROUP that is free, announced to the recipients")
	rest, code, done := cli.Parse(f.fs, args, 1, pmulSendAbout, stdout, stderr)
	if done {
		return code
	}
	cfg := f.config(stderr)
	cfg.Shore = *shore
	job := pmulfile.Job{Priority: uint8(*priority), Dynamic: *dynamic, Expires: time.Now().Add(*expires)}
	for _, s := range strings.Split(*to, ",") {
		job.To = append(job.To, f.node("to", strings.TrimSpace(s)))
	}
	for i, a := range job.To {
		switch {
		case a.IsValid() && a == cfg.ID:
			f.wrong = append(f.wrong, fmt.Sprintf("--to: %v is this node itself", a))
		case a.IsValid() && slices.Contains(job.To[:i], a):
			f.wrong = append(f.wrong, fmt.Sprintf("--to: %v is there twice", a))
		}
	}
	if *silent != "" {
		for _, s := range strings.Split(*silent, ",") {
			a := f.node("silent", strings.TrimSpace(s))
			if a.IsValid() && !slices.Contains(job.To, a) {
				f.wrong = append(f.wrong, fmt.Sprintf("--silent: %v is no recipient: --to has %s", a, *to))
			}
			job.Silent = append(job.Silent, a)
		}
	}
	if *priority > 255 {
		f.wrong = append(f.wrong, fmt.Sprintf("--priority: %d is not from 0 to 255", *priority))
	}
	if *expires < time.Second {
		f.wrong = append(f.wrong, fmt.Sprintf("--expires: %v is less than a second", *expires))
	}
	if len(rest) == 0 {
		f.wrong = append(f.wrong, "FILE: missing")
	} else {
		var err error
		if job.Payload, err = infile.Read(rest[0], mostPmulFile); err != nil {
			f.wrong = append(f.wrong, err.Error())
		}
	}
	if f.mistakes(stderr) {
		return cli.ExitUsage
	}
	var err error
	if cfg.State, err = pmulState(cfg.ID); err != nil {
		return cli.Fail(stderr, f.fs.Name(), err)
	}
	f.warn(stderr)
	show := &pmulShow{stdout: stdout, stderr: stderr, json: *f.json, live: cli.IsTerminal(stderr), told: map[netip.Addr]bool{}}
	job.Report = show.progress
	ctx, stop := untilSignal()
	defer stop()
	p, err := pmulfile.Send(ctx, cfg, job)
	if err != nil {
		return cli.Fail(stderr, f.fs.Name(), err)
	}
	show.end(p)
	if !p.Delivered() {
		return cli.ExitRefused
	}
	return cli.ExitGood
}

// pmulShow shows the work of a sender: each fate as a line, progress on a terminal or as JSON.
type pmulShow struct {
	stdout, stderr io.Writer
	json, live     bool
	told           map[netip.Addr]bool
	drawn          bool
	last           string
}

type pmulRecipientJSON struct {
	Node    string  `json:"node"`
	State   string  `json:"state"`
	Has     int     `json:"has"`
	Seconds float64 `json:"seconds,omitempty"`
}

type pmulSendJSON struct {
	Event     string              `json:"event"` // progress or end
	Message   uint32              `json:"message"`
	Fragments int                 `json:"fragments"`
	Sent      int                 `json:"sent"`
	Seconds   float64             `json:"seconds"`
	To        []pmulRecipientJSON `json:"to"`
	Datagrams int                 `json:"datagrams"`
	Octets    int                 `json:"octets"` // of IP
}

func (s *pmulShow) line(event string, p pmulfile.Progress) {
	j := pmulSendJSON{Event: event, Message: uint32(p.Message), Fragments: p.Fragments, Sent: p.Sent, Seconds: p.Elapsed.Seconds(),
		Datagrams: p.Counters.Sent, Octets: p.Counters.SentOctets}
	for _, r := range p.To {
		j.To = append(j.To, pmulRecipientJSON{r.Node.String(), r.State.String(), r.Has, r.After.Seconds()})
	}
	json.NewEncoder(s.stdout).Encode(j)
}

func (s *pmulShow) progress(p pmulfile.Progress) {
	if s.json {
		now := fmt.Sprint(p.Sent, p.To)
		if now != s.last { // a long wait does not print a line every second
			s.line("progress", p)
		}
		s.last = now
		return
	}
	for _, r := range p.To {
		if r.State != pmul.Waiting && !s.told[r.Node] {
			s.told[r.Node] = true
			s.wipe()
			fmt.Fprintf(s.stdout, "%v %v after %v\n", r.Node, r.State, r.After.Round(time.Second/10))
		}
	}
	if !s.live {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v: sent %d of %d", p.Elapsed.Round(time.Second), p.Sent, p.Fragments)
	for _, r := range p.To {
		if r.State == pmul.Waiting {
			fmt.Fprintf(&b, ", %v has %d", r.Node, r.Has)
		}
	}
	s.wipe()
	fmt.Fprint(s.stderr, b.String())
	s.drawn = true
}

// wipe clears the line of progress.
func (s *pmulShow) wipe() {
	if s.drawn {
		fmt.Fprint(s.stderr, "\r\x1b[K")
		s.drawn = false
	}
}

func (s *pmulShow) end(p pmulfile.Progress) {
	if s.json {
		s.line("end", p)
		return
	}
	s.wipe()
	have := 0
	for _, r := range p.To {
		if r.State == pmul.Delivered {
			have++
		}
	}
	fmt.Fprintf(s.stdout, "message %d: %d of %d recipients have it; %d datagrams of %d octets in %v\n", p.Message, have, len(p.To),
		p.Counters.Sent, p.Counters.SentOctets, p.Elapsed.Round(time.Second/10))
}

type pmulReceiveJSON struct {
	Event     string     `json:"event"` // ready, progress, received or end
	From      string     `json:"from,omitempty"`
	Message   uint32     `json:"message,omitempty"`
	Octets    int        `json:"octets,omitempty"`
	File      string     `json:"file,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"`
	Has       int        `json:"has,omitempty"`
	Fragments int        `json:"fragments,omitempty"`
	Refused   int        `json:"refused,omitempty"` // datagrams that are no PDU
}

func pmulReceive(args []string, stdout, stderr io.Writer) int {
	f := newPMULFlags("pmul receive")
	into := f.fs.String("into", "", "directory for the files, made if it is missing")
	runs := f.fs.Bool("runs", false, "list missing fragments as ranges: shorter acknowledgements, if the sender can read them (libjpmul cannot)")
	_, code, done := cli.Parse(f.fs, args, 0, pmulReceiveAbout, stdout, stderr)
	if done {
		return code
	}
	cfg := f.config(stderr)
	if *into == "" {
		f.wrong = append(f.wrong, "--into: missing")
	}
	if f.mistakes(stderr) {
		return cli.ExitUsage
	}
	cfg.State, cfg.Runs = filepath.Join(*into, ".aldis-pmul"), *runs
	f.warn(stderr)
	lines := json.NewEncoder(stdout)
	live, drawn, last := cli.IsTerminal(stderr) && !*f.json, false, ""
	wipe := func() {
		if drawn {
			fmt.Fprint(stderr, "\r\x1b[K")
			drawn = false
		}
	}
	watch := pmulfile.Watch{
		Ready: func() {
			if *f.json {
				lines.Encode(pmulReceiveJSON{Event: "ready"})
			} else {
				fmt.Fprintf(stdout, "node %v listens to %v\n", cfg.ID, cfg.Group)
			}
		},
		Received: func(r pmulfile.File) {
			if *f.json {
				lines.Encode(pmulReceiveJSON{Event: "received", From: r.From.String(), Message: uint32(r.Message), Octets: r.Octets, File: r.Path, Expires: &r.Expires})
				return
			}
			wipe()
			fmt.Fprintf(stdout, "%v message %d: %d octets in %s\n", r.From, r.Message, r.Octets, r.Path)
		},
		Progress: func(list []pmul.Incoming) {
			now := fmt.Sprint(list)
			if now == last {
				return
			}
			last = now
			var b strings.Builder
			for _, m := range list {
				if *f.json {
					lines.Encode(pmulReceiveJSON{Event: "progress", From: m.Source.String(), Message: uint32(m.Message), Has: m.Has, Fragments: m.Fragments})
				}
				fmt.Fprintf(&b, "%v message %d: %d of %d  ", m.Source, m.Message, m.Has, m.Fragments)
			}
			if live {
				wipe()
				fmt.Fprint(stderr, b.String())
				drawn = true
			}
		},
	}
	ctx, stop := untilSignal()
	defer stop()
	c, err := pmulfile.Receive(ctx, cfg, *into, watch)
	wipe()
	if err != nil {
		return cli.Fail(stderr, f.fs.Name(), err)
	}
	if *f.json {
		lines.Encode(pmulReceiveJSON{Event: "end", Refused: c.Refused})
	} else {
		fmt.Fprintf(stdout, "ended; %d datagrams were no PDU\n", c.Refused)
	}
	return cli.ExitGood
}
