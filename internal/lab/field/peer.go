package field

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Kinds of peer, as `gateway lab --peers` spells them.
const (
	KindJXSE27         = "jxse27"
	KindJXSE27Unsigned = "jxse27-unsigned"
	KindJXTA22         = "jxta22"
)

const (
	peerEventMax  = 1 << 16          // octets in one line of a peer's output
	peerStopGrace = 12 * time.Second // a peer gives its library 8 s to stop, see field-tests/peers/README.md
	peerTailMax   = 8 << 10          // octets of a peer's log that an error shows
)

// peerJVM keeps a peer small and quick to start: no optimizing compiler, one collector thread, no wait for entropy.
// Measured in field-tests/peers/README.md.
var peerJVM = []string{
	"-Xmx96m", "-Xss512k", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData",
	"-Djava.security.egd=file:/dev/urandom",
}

// PeerConfig says which unmodified JXTA peer to start and where.
type PeerConfig struct {
	Netns string   // network namespace by name; empty: the present one
	Kind  string   // KindJXSE27, KindJXSE27Unsigned or KindJXTA22
	Name  string   // peer name, 1 to 24 letters, digits, dots, dashes
	Host  string   // own interface address; KindJXTA22 refuses loopback
	Port  int      // TCP port to listen on
	Seed  string   // tcp://host:port of its rendezvous and relay, or http://; empty for Role "rdv"
	More  []string // other seeds, of the same network
	HTTP  bool     // HTTP instead of TCP
	// Multicast: UDP multicast on the interface of Host; then the peer needs no Seed. Adhoc (2.7): multicast without any rendezvous.
	Multicast, Adhoc bool
	Role             string   // "edge" (also when empty) or "rdv"
	JarDir           string   // field-tests/peers of the source tree, built
	Home             string   // library's files and log; empty: a temporary directory, removed when the peer has ended
	JVM              []string // options of the Java machine; nil: those that make a peer small and quick to start
}

// Event is one line of a peer's output. field-tests/peers/README.md says which members each event has.
type Event struct {
	T        float64  `json:"t"` // milliseconds since 1970 UTC, the peer's clock
	Ev       string   `json:"ev"`
	Name     string   `json:"name"`
	Group    string   `json:"group"`
	ID       string   `json:"id"`
	Kind     string   `json:"kind"`
	From     string   `json:"from"`
	Seq      int64    `json:"seq"`
	Size     int      `json:"size"`     // octets of the body element
	Elements int      `json:"elements"` // application elements, body included
	CRC      string   `json:"crc"`
	OK       bool     `json:"ok"`     // the content came unchanged
	TSent    float64  `json:"t_sent"` // as T, the sender's clock
	N        int      `json:"n"`
	Names    []string `json:"names"`
	Text     string   `json:"text"`
	PID      int      `json:"pid"`
	// From the peer's own measurement ("bench"): the figure of each series, its percentile, and the number lost.
	Series []float64 `json:"series"`
	P99    float64   `json:"p99"`
	Warm   int       `json:"warm"`
	Lost   int       `json:"lost"`
}

// At is the time of the event by the peer's clock.
func (e Event) At() time.Time { return fromMillis(e.T) }

// SentAt is when the received message was sent, by the sender's clock.
func (e Event) SentAt() time.Time { return fromMillis(e.TSent) }

func fromMillis(ms float64) time.Time { return time.UnixMicro(int64(ms*1000 + 0.5)) }

// ErrPeerEnded is the error of Wait and Command when the peer's process is gone.
var ErrPeerEnded = errors.New("lab: peer has ended")

// Peer is a running JXTA peer in a process of its own. Its methods may be called from any goroutine.
type Peer struct {
	Started time.Time // just before the process was made

	cfg       PeerConfig
	cmd       *exec.Cmd
	home      string
	ownsHome  bool
	stderr    tail
	done      chan struct{} // closed when the process has been waited for
	cancel    context.CancelFunc
	dismissed atomic.Bool // it was killed on purpose
	hush      func()      // ends the stream of messages that this program has the peer send
	stdinLock sync.Mutex
	stdin     io.WriteCloser

	mu      sync.Mutex
	events  []Event
	changed chan struct{} // closed and replaced with each event
	exit    error         // valid once done is closed
	log     string        // end of the library's log, valid once done is closed
}

// StartPeer starts a peer and returns at once; wait for "ready" or "rendezvous" if that matters. Commands may be given at once. The
// peer's process group is killed when ctx ends.
func StartPeer(ctx context.Context, cfg PeerConfig) (*Peer, error) {
	args, err := peerArgs(cfg)
	if err != nil {
		return nil, err
	}
	p := &Peer{cfg: cfg, home: cfg.Home, hush: func() {}, done: make(chan struct{}), changed: make(chan struct{})}
	if p.home == "" {
		if p.home, err = os.MkdirTemp("", "aldis-peer-"); err != nil {
			return nil, fmt.Errorf("lab: peer %s: %w", cfg.Name, err)
		}
		p.ownsHome = true
	}
	args = append(args, "--home", p.home)
	ctx, p.cancel = context.WithCancel(ctx)
	p.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.stdin, err = p.cmd.StdinPipe()
	}
	p.Started = time.Now()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.cancel()
		p.removeHome()
		return nil, fmt.Errorf("lab: peer %s: %w", cfg.Name, err)
	}
	go p.read(out)
	return p, nil
}

func peerArgs(cfg PeerConfig) ([]string, error) {
	dir := cfg.Kind
	var more []string
	switch cfg.Kind {
	case KindJXSE27, KindJXTA22:
	case KindJXSE27Unsigned:
		dir, more = KindJXSE27, []string{"--unsigned"}
	default:
		return nil, fmt.Errorf("lab: peer kind %q: %s, %s or %s", cfg.Kind, KindJXSE27, KindJXSE27Unsigned, KindJXTA22)
	}
	jar := filepath.Join(cfg.JarDir, dir, "target", "peer.jar")
	if _, err := os.Stat(jar); err != nil {
		return nil, fmt.Errorf("lab: peer %s is not built (make -C field-tests/peers): %w", cfg.Kind, err)
	}
	var args []string
	if cfg.Netns != "" {
		args = append(args, "ip", "netns", "exec", cfg.Netns)
	}
	args = append(args, "java")
	if cfg.JVM == nil {
		cfg.JVM = peerJVM
	}
	args = append(args, cfg.JVM...)
	args = append(args, "-jar", jar, "--name", cfg.Name, "--host", cfg.Host, "--port", strconv.Itoa(cfg.Port))
	if cfg.Seed != "" {
		args = append(args, "--seed", cfg.Seed)
	}
	for _, seed := range cfg.More {
		args = append(args, "--seed", seed)
	}
	if cfg.Role != "" {
		args = append(args, "--role", cfg.Role)
	}
	if cfg.HTTP {
		args = append(args, "--http")
	}
	switch {
	case cfg.Adhoc:
		args = append(args, "--adhoc")
	case cfg.Multicast:
		args = append(args, "--multicast")
	}
	return append(args, more...), nil
}

// read reads the peer's output until it ends, then waits for the process.
func (p *Peer) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, peerEventMax)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			e = Event{Ev: "error", Text: "not an event: " + lines.Text()}
		}
		p.add(e)
	}
	// After a line too long for the scanner: keep the pipe empty, so that the peer can still end.
	_, _ = io.Copy(io.Discard, out)
	err := p.cmd.Wait()
	log := p.Log()
	p.mu.Lock()
	p.exit, p.log = err, log
	p.mu.Unlock()
	p.cancel()
	p.removeHome()
	close(p.done)
}

func (p *Peer) add(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
	close(p.changed)
	p.changed = make(chan struct{})
}

// Name is the peer's name.
func (p *Peer) Name() string { return p.cfg.Name }

// Command gives the peer one command line, as in field-tests/peers/README.md.
func (p *Peer) Command(line string) error {
	p.stdinLock.Lock()
	defer p.stdinLock.Unlock()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		return p.failed(fmt.Sprintf("command %q", line))
	}
	return nil
}

// Events are all events so far, oldest first.
func (p *Peer) Events() []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.events)
}

// Wait returns the first event, past ones included, for which match is true. It ends with an error when ctx ends or the
// peer does.
func (p *Peer) Wait(ctx context.Context, match func(Event) bool) (Event, error) {
	for seen := 0; ; {
		p.mu.Lock()
		news, changed := p.events[seen:], p.changed
		p.mu.Unlock()
		for _, e := range news {
			if match(e) {
				return e, nil
			}
		}
		seen += len(news)
		select {
		case <-changed:
			continue
		default:
		}
		select {
		case <-changed:
		case <-p.done:
			// The last events came before done was closed.
			if len(p.Events()) == seen {
				return Event{}, p.failed("wait")
			}
		case <-ctx.Done():
			return Event{}, fmt.Errorf("lab: peer %s: wait: %w (%s)", p.cfg.Name, ctx.Err(), p.last())
		}
	}
}

// Stop asks the peer to quit, kills it if it does not, and returns what was wrong with its end.
func (p *Peer) Stop() error {
	_ = p.Command("quit") // it may have exited already
	grace := time.NewTimer(peerStopGrace)
	defer grace.Stop()
	var err error
	select {
	case <-p.done:
	case <-grace.C:
		p.cancel()
		<-p.done
	}
	p.mu.Lock()
	if p.exit != nil {
		err = fmt.Errorf("lab: peer %s: %w", p.cfg.Name, p.exit)
	}
	p.mu.Unlock()
	return err
}

// Kill ends the peer at once, as a hit on the ship would.
func (p *Peer) Kill() {
	p.dismissed.Store(true)
	p.cancel()
	<-p.done
}

// Done is closed when the peer's process has ended.
func (p *Peer) Done() <-chan struct{} { return p.done }

// Log is the end of the library's own log, for a report.
func (p *Peer) Log() string {
	p.mu.Lock()
	log := p.log
	p.mu.Unlock()
	if log != "" {
		return log
	}
	f, err := os.Open(filepath.Join(p.home, "library.log"))
	if err != nil {
		return ""
	}
	defer f.Close()
	var t tail
	_, _ = io.Copy(&t, f)
	return t.String()
}

func (p *Peer) removeHome() {
	if p.ownsHome {
		_ = os.RemoveAll(p.home)
	}
}

// failed describes the end of the process as an error that unwraps to ErrPeerEnded.
func (p *Peer) failed(what string) error {
	text := p.last()
	select {
	case <-p.done:
		p.mu.Lock()
		text += fmt.Sprintf("; exit: %v", p.exit)
		p.mu.Unlock()
	default:
	}
	if s := p.stderr.String(); s != "" {
		text += "; " + s
	}
	return fmt.Errorf("%w: %s: %s (%s)", ErrPeerEnded, p.cfg.Name, what, text)
}

// last names the peer's last event and its errors, so that a failed test says why.
func (p *Peer) last() string {
	events := p.Events()
	if len(events) == 0 {
		return "no event"
	}
	text := "last event " + events[len(events)-1].Ev
	errs := 0
	for i := len(events) - 1; i >= 0 && errs < 3; i-- {
		if events[i].Ev == "error" {
			text += "; error: " + events[i].Text
			errs++
		}
	}
	return text
}

// tail is a writer that keeps the last octets.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if n := len(t.b) - peerTailMax; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}
