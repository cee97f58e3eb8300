package commands

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"aldis/internal/edge/infile"
	"aldis/internal/edge/keyfile"
	"aldis/internal/lab/packed"
	"aldis/internal/lab/report"
	"aldis/internal/lab/trace"
	"aldis/internal/link/roster"
	"aldis/internal/operator/cli"
)

const analyseAbout = `usage: gateway analyse CAPTURE [--edge ADDR] [--key FILE [--roster FILE] [--corpus FILE]] [--links LIST] [--far CAPTURE] [--json] [--html FILE]
       gateway analyse CAPTURE --key FILE [--roster FILE] --decrypt -w OUT.pcap

Reads a capture (pcap or pcapng; - is standard input) and prints the figures of the Blue Game report of 2004: what JXTA's
connections, handshakes, retransmissions, discovery and pipes cost, and how little of that was the application's.

With --html it also writes a page: the tables beside the published ones, octets over time, queue and latency.

With the network's key it also opens the datagrams of gateways, and shows octets by kind as in their airtime ledger.

Where each gateway has a key of its own, --key is the key of one node and --roster the roster of the time. Then analyse opens
what that node has sent, and what was for it or for all. It cannot open what was between others, nor what is forward secret:
most of what two nodes say over datagrams and NORM is sealed with keys that both forget. These are counted, with the reason.

Messages that gateways coded by a corpus of the network need that, too: --corpus FILE. Without it analyse says which one it was.

Of TAK devices (Cursor on Target) it says how many there are and what they report. With --links it plays their events through
two gateways over each link of a list, such as iridium-dialup,hf-2400 or all, and says what that costs.

With --far, a capture of the same run at the other end of the link, it joins both by their packets. Then it says what each
packet took one way, which were lost, when the last was there, and what the link carried until a service was found.

With --decrypt it writes what gateways said to each other to another capture, without encryption, for Wireshark with the
dissector aldis.lua. That file shows every message in clear to whoever reads it.

A capture that is cut, damaged or incomplete is read as far as it goes. analyse then reports what is missing and exits
with 1.
`

func analyseCommand(args []string, stdout, stderr io.Writer) int {
	var opt trace.Options
	fs := flag.NewFlagSet("analyse", flag.ContinueOnError)
	edge := fs.String("edge", "", "`address` of the edge whose discovery and payload are shown; then only its packets count (default: the peer that set up the most connections, and all packets)")
	keyFile := fs.String("key", "", "`file` with the network's key, or with a node's: opens the datagrams of gateways")
	rosterFile := fs.String("roster", "", "`file` with the roster of the time, where --key is a node's; nobody asks who has signed it")
	fs.StringVar(&opt.Bearer, "link", "", bearerFlag)
	corpus := fs.String("corpus", "", "`file` with what the network had taught its gateways (gateway corpus build), to read messages that are coded by it")
	nodes := fs.String("nodes", "", "`ids` of the gateways, such as 1,300: needed if one is above 255 and sends nothing back")
	asJSON := fs.Bool("json", false, "print JSON, with the field names of the published figures")
	far := fs.String("far", "", "`file` with the capture of the same run at the other end of the link")
	links := fs.String("links", "", "`profiles`, names or files with commas between, or all: what the events of TAK devices would cost there")
	decrypt := fs.Bool("decrypt", false, "write the datagrams of gateways in clear, to the file of -w")
	clearFile := fs.String("w", "", "`file` for them, a capture (pcap)")
	page := fs.String("html", "", "`file` for a page with tables and plots, complete in itself; - prints it instead of the text")
	rest, code, done := cli.Parse(fs, args, 1, analyseAbout, stdout, stderr)
	if done {
		return code
	}
	if len(rest) == 0 {
		fmt.Fprintf(stderr, "gateway analyse: which capture?\n\n%s", analyseAbout)
		return cli.ExitUsage
	}
	if *edge != "" {
		addr, err := netip.ParseAddr(*edge)
		if err != nil {
			fmt.Fprintf(stderr, "gateway analyse: --edge: %v\n", err)
			return cli.ExitUsage
		}
		opt.Edge = addr.Unmap()
	}
	if err := linkOptions(&opt, *keyFile, *rosterFile, *nodes); err != nil {
		fmt.Fprintf(stderr, "gateway analyse: %v\n", err)
		return cli.ExitUsage
	}
	var err error
	if opt.Corpus, err = cli.CorpusFlag(*corpus); err != nil {
		fmt.Fprintf(stderr, "gateway analyse: --corpus: %v\n", err)
		return cli.ExitUsage
	}
	if *corpus != "" && *keyFile == "" {
		fmt.Fprintf(stderr, "gateway analyse: --corpus is of use with --key FILE\n")
		return cli.ExitUsage
	}
	if *decrypt != (*clearFile != "") || *decrypt && *keyFile == "" {
		fmt.Fprintf(stderr, "gateway analyse: --decrypt needs --key FILE and -w OUT.pcap, and -w needs --decrypt\n")
		return cli.ExitUsage
	}
	if *far == "-" || *far != "" && rest[0] == "-" {
		fmt.Fprintf(stderr, "gateway analyse: --far: a capture is read twice and must be a file\n")
		return cli.ExitUsage
	}
	costs, err := newTAKCosts(*links)
	if err != nil {
		return cli.Mistakes(stderr, err)
	}
	opt.CoT = costs.observer()
	var clear *clearCapture
	if *decrypt {
		if clear, err = newClearCapture(*clearFile, rest[0]); err != nil {
			return cli.Fail(stderr, "analyse", fmt.Errorf("-w: %w", err))
		}
		opt.Clear = clear.add
	}
	figures, err := analyseFile(rest[0], opt, stderr)
	if clear != nil {
		if err := clear.close(stderr, err == nil); err != nil {
			return cli.Fail(stderr, "analyse", fmt.Errorf("-w: %w", err))
		}
	}
	if err != nil {
		return cli.Fail(stderr, "analyse", fmt.Errorf("%s: %w", rest[0], err))
	}
	if *far != "" {
		joined, err := joinCaptures("analyse", [2]string{rest[0], *far}, stderr)
		if err != nil {
			return cli.Fail(stderr, "analyse", fmt.Errorf("--far: %w", err))
		}
		figures.Join(joined)
	}
	if err := costs.play(figures, stderr); err != nil {
		return cli.Fail(stderr, "analyse", fmt.Errorf("--links: %w", err))
	}
	name := captureName(rest[0])
	print := func(w io.Writer) error { return figures.WriteText(w, name) }
	if *asJSON {
		print = func(w io.Writer) error { return writeReportJSON(w, name, figures) }
	}
	if err := show(*page, stdout, report.Analysis(name, figures).HTML, print); err != nil {
		return cli.Fail(stderr, "analyse", err)
	}
	if figures.Partial {
		fmt.Fprintf(stderr, "gateway analyse: %s: the figures are partial: %s\n", rest[0], figures.Problems[0])
		return cli.ExitRefused
	}
	return cli.ExitGood
}

// bearerFlag is the help of --link.
const bearerFlag = "`name` of the [[link]] whose datagrams are opened, where it has one; those of another bearer have other keys"

// linkOptions reads the keys that open the datagrams of gateways.
func linkOptions(opt *trace.Options, keyFile, rosterFile, nodes string) error {
	if rosterFile != "" {
		if err := nodeOptions(opt, keyFile, rosterFile); err != nil {
			return err
		}
	} else if keyFile != "" {
		key, err := keyfile.LoadKey(keyFile)
		if err != nil {
			if _, other := keyfile.LoadNodeKey(keyFile); other == nil {
				err = fmt.Errorf("%s is the key of one node: say --roster FILE too", keyFile)
			}
			return fmt.Errorf("--key: %w", err)
		}
		opt.Key = &key
	} else if opt.Bearer != "" {
		return errors.New("--link is of use with --key FILE")
	}
	for text := range strings.SplitSeq(nodes, ",") {
		if nodes == "" {
			break
		}
		id, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
		if err != nil || id == 0 {
			return fmt.Errorf("--nodes: %q is no node id (1 to 65535)", text)
		}
		opt.Nodes = append(opt.Nodes, uint16(id))
	}
	return nil
}

// nodeOptions reads the keys of one node of a network with a roster.
func nodeOptions(opt *trace.Options, keyFile, rosterFile string) error {
	if keyFile == "" {
		return errors.New("--roster needs --key FILE, the key of one of its nodes")
	}
	own, err := keyfile.LoadNodeKey(keyFile)
	if err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	r, err := keyfile.LoadRoster(rosterFile)
	if err != nil {
		return fmt.Errorf("--roster: %w", err)
	}
	for _, n := range r.Nodes {
		opt.Nodes = append(opt.Nodes, n.ID)
		if n.Public == own.Public() {
			opt.Self = n.ID
		}
	}
	if opt.Self == 0 {
		return fmt.Errorf("--roster: %s does not name the node whose key %s is", rosterFile, keyFile)
	}
	opt.Ring, err = roster.Ring(opt.Self, own, r)
	return err
}

// captureName is the name of a capture in a report.
func captureName(path string) string {
	base := filepath.Base(path)
	for _, ext := range []string{".gz", ".zst", ".xz", ".pcap", ".pcapng", ".cap", ".dmp"} {
		base = strings.TrimSuffix(base, ext)
	}
	return base
}

// analyseFile reads a capture to its end. Faults inside it are in the report; an error says that nothing could be read.
func analyseFile(path string, opt trace.Options, stderr io.Writer) (*trace.Report, error) {
	a := trace.New(opt)
	broken, err := readCapture(path, stderr, a.Add, a.Dropped)
	if err != nil {
		return nil, err
	}
	if broken != nil {
		a.Broken(broken)
	}
	return a.Finish(), nil
}

// readCapture gives the packets of a file to take, with progress, and the file's counts of packets that it lacks to dropped, which may be
// nil. broken is why it could not be read to its end.
func readCapture(path string, stderr io.Writer, take func(trace.Packet), dropped func(trace.Drops)) (broken, err error) {
	var in io.Reader = os.Stdin
	var size int64
	if path != "-" {
		f, err := infile.Open(path)
		if err != nil {
			return nil, errors.Unwrap(err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
		in = f
	}
	if in, err = packed.Reader(in); err != nil {
		return nil, err
	}
	r, err := trace.NewReader(in)
	if err != nil {
		return nil, err
	}
	p := newProgress(stderr, size)
	defer p.clear()
	if dropped != nil {
		defer func() { dropped(r.Drops()) }()
	}
	for n := 1; ; n++ {
		packet, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return err, nil
		}
		take(packet)
		if n&0x3fff == 0 {
			p.show(r.Offset())
		}
	}
}

// progress is a line on a terminal while a large file is read.
type progress struct {
	w     io.Writer // nil: nothing is shown
	size  int64
	start time.Time
	shown time.Time
}

const progressFrom = 32 << 20 // octets; smaller files are over at once

func newProgress(w io.Writer, size int64) *progress {
	p := &progress{size: size, start: time.Now()}
	if cli.IsTerminal(w) && (size == 0 || size >= progressFrom) {
		p.w = w
	}
	return p
}

func (p *progress) show(offset int64) {
	now := time.Now()
	if p.w == nil || now.Sub(p.shown) < time.Second/4 {
		return
	}
	p.shown = now
	line := fmt.Sprintf("%d MB", offset/1e6)
	if p.size > 0 {
		line = fmt.Sprintf("%3d %% of %d MB", 100*offset/p.size, p.size/1e6)
	}
	if s := now.Sub(p.start).Seconds(); s > 0.5 {
		line += fmt.Sprintf(", %.0f MB/s", float64(offset)/1e6/s)
	}
	fmt.Fprintf(p.w, "\r%-40s", line)
}

func (p *progress) clear() {
	if p.w != nil && !p.shown.IsZero() {
		fmt.Fprintf(p.w, "\r%-40s\r", "")
	}
}

// writeReportJSON prints a report in the form of the published figures: `captures` by name, and the rest next to it.
func writeReportJSON(w io.Writer, name string, r *trace.Report) error {
	b, err := json.MarshalIndent(r.JSON(name), "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
