package node

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"aldis/internal/adapters/corpusexchange"
	"aldis/internal/edge/atrest"
	"aldis/internal/edge/audit"
	"aldis/internal/edge/config"
	"aldis/internal/edge/daemon"
	"aldis/internal/edge/journal"
	"aldis/internal/edge/lan"
	"aldis/internal/edge/norm"
	"aldis/internal/edge/pairlink"
	"aldis/internal/edge/radio"
	"aldis/internal/edge/rights"
	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/link/elide"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
	"aldis/internal/operator/control/spans"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

const runAbout = `usage: gateway run [-c FILE] [--keep-socket]
       gateway run [-c FILE] --start-by-clock

Runs the gateway until SIGINT or SIGTERM. JXTA peers of this LAN use lan.tcp or lan.http as their seed, rendezvous and
relay. Logs go to standard error: text on a terminal, JSON elsewhere, unless log.format says otherwise. Accepted
messages survive any end, kill -9 included. Check a configuration first: gateway check -c FILE.

With --keep-socket a second process holds the listening sockets and restarts the gateway when it dies, so that no
peer finds a closed port. SIGHUP to that process restarts the gateway with the program and configuration on disk, after
that program has checked that configuration; with a mistake in it the gateway goes on as it is. Without --keep-socket
SIGHUP does what gateway reload does.
Under systemd use a socket unit instead (docs/install.md).

Each start has a number: the clock in seconds, and greater than that of the start before. With --start-by-clock it is the
clock alone. Use it once, after a start with a clock that was far ahead, and only when the clock is right now. The
far gateways know the greater number and refuse this node until each is told: gateway peer forget ID.
`

// Run is `gateway run`.
func Run(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	keepSocket := fs.Bool("keep-socket", false, "hold the listening sockets in a process of their own, and restart the gateway when it dies")
	byClock := fs.Bool("start-by-clock", false, "number this start by the clock alone, whatever the start before was")
	if _, code, done := cli.Parse(fs, args, 0, runAbout, stdout, stderr); done {
		return code
	}
	if *keepSocket && *byClock {
		fmt.Fprintf(stderr, "gateway run: --start-by-clock is for one start by hand, without --keep-socket\n\n%s", runAbout)
		return cli.ExitUsage
	}
	if *keepSocket {
		return keep(*file, stderr)
	}
	cfg, err := config.Load(*file)
	if err != nil {
		return cli.Mistakes(stderr, err)
	}
	protections, err := confine(cfg)
	if err != nil {
		return cli.Fail(stderr, "run", err)
	}
	have, err := inherited()
	if err != nil {
		return cli.Fail(stderr, "run", err)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		defer runtime.KeepAlive(make([]byte, gcHeadroom))
	}
	secret, err := secretOf(cfg.Node.Secret, cfg.Node.DataDir, os.Stdin, stderr)
	if err != nil {
		return cli.Fail(stderr, "run", err)
	}
	log, level := newLogger(cfg, stderr)
	for _, w := range cfg.Warnings() {
		log.Warn("odd setting: " + w)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	begin := serve
	if cfg.Site.On() || cfg.Cluster.On() {
		begin = serveSite
	}
	if err := begin(ctx, &node{cfg: cfg, byClock: *byClock, log: log, protections: protections, secret: secret}, have, level); err != nil {
		log.Error("the gateway cannot run", "error", err)
		return cli.ExitRefused
	}
	log.Info("stopped")
	return cli.ExitGood
}

// gcPercent makes the collector run when the heap has grown by half: on a ship memory is scarcer than processor time.
const gcPercent = 50

// gcHeadroom makes a small heap count for so many octets more, which are never touched. Otherwise the collector would run for every 2 MB
// that are allocated, and take a tenth of the processor of a busy gateway.
const gcHeadroom = 16 << 20

// listenError says in words why a socket cannot be opened. key is the key to change in the configuration.
func listenError(key, network string, at netip.AddrPort, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: %s %s is used by another program (ss -lpn names it): stop that one, or set another %s", key, network, at, key)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: %s is no address of this machine: set another %s, or bring its interface up first", key, at.Addr(), key)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: %s port %d needs root: set %s to a port above 1023", key, network, at.Port(), key)
	}
	return fmt.Errorf("%s: %w", key, err)
}

// node is the rooms of a running gateway. They stop in the reverse order of their start.
type node struct {
	cfg       *config.Config // of the start; the one in force is reloader.force
	byClock   bool           // the operator wants this start numbered by the clock only
	log       *slog.Logger
	started   time.Time
	reg       *prometheus.Registry
	journal   *journal.Journal
	audit     *audit.Log
	lanSock   net.Listener // nil: no peers over TCP
	pollSock  net.Listener // nil: no peers over HTTP
	etherSock *net.UDPConn // nil: no multicast
	httpSock  net.Listener
	orderSock net.Listener
	daemon    *daemon.Daemon
	lan       *lan.LAN
	tak       takSide
	xmpp      xmppSide
	meeting   meeting
	norm      *norm.Supervisor
	air       airSide
	bridge    *jxtabridge.Bridge
	corpora   *corpusexchange.Adapter
	gateway   *gateway.Gateway
	reloader  *reloader

	secret      atrest.Secret       // seals the journal; zeros after the start
	protections []rights.Protection // against an attacker who takes the process over
}

// open opens the journal and the audit record.
func (n *node) open() (err error) {
	c := n.cfg.Node
	if n.journal, err = journal.OpenSealed(c.DataDir, journal.Identity{Node: c.ID, Name: c.Name}, n.secret, gateway.Spare); err != nil {
		return err
	}
	if !n.cfg.Cluster.On() {
		err = pairlink.Settle(n.journal)
	}
	if err == nil {
		err = n.openAudit()
	}
	if err != nil {
		n.journal.Close()
		return err
	}
	clear(n.secret)
	for _, path := range slices.Concat(n.journal.Unsealed(), audit.Unsealed(c.DataDir, n.journal.Key())) {
		n.log.Warn("an older journal file holds messages in clear beside the sealed journal; remove it", "file", path)
	}
	return nil
}

// closeFiles closes the files that open has opened.
func (n *node) closeFiles() {
	n.audit.Close()
	n.journal.Close()
}

// serve runs the gateway of a site with one machine, until ctx ends.
func serve(ctx context.Context, n *node, have map[netip.AddrPort]net.Listener, level *slog.LevelVar) error {
	if err := n.open(); err != nil {
		return err
	}
	defer n.closeFiles()
	return n.serve(ctx, have, level)
}

// serve connects the rooms, runs the loop until ctx ends, and stops everything. It takes listening sockets from have if the
// configuration wants their address.
func (n *node) serve(ctx context.Context, have map[netip.AddrPort]net.Listener, level *slog.LevelVar) error {
	cfg, log := n.cfg, n.log
	n.started, n.reg = time.Now(), prometheus.NewRegistry()
	n.reloader = &reloader{level: level, log: log, status: n.snapshot, keep: n.keep, hups: make(chan os.Signal, 1)}
	signal.Notify(n.reloader.hups, syscall.SIGHUP)
	defer signal.Stop(n.reloader.hups)
	n.reloader.force.Store(cfg)
	n.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	n.daemon = daemon.New(log, n.reg)
	n.reloader.order = n.daemon.PostOrder
	if err := n.listen(have); err != nil {
		return err
	}
	defer n.close()
	if err := n.build(); err != nil {
		return err
	}
	if n.air.lead == nil || !n.air.lead.again {
		n.lock()
	}
	return n.run(ctx)
}

// listen opens all sockets, so that a port in use is reported before anything has begun.
func (n *node) listen(have map[netip.AddrPort]net.Listener) (err error) {
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	c := n.cfg
	open, err := sockets(c, have)
	if err != nil {
		return err
	}
	n.lanSock, n.pollSock, n.httpSock = open["lan.tcp"], open["lan.http"], open["http.listen"]
	n.tak.sock, n.tak.tls, n.tak.filesSock, n.tak.filesTLS = open["tak.listen"], open["tak.tls"], open["tak.files"], open["tak.files_tls"]
	n.tak.unicast = open["tak.mesh_unicast"]
	n.xmpp.sock, n.xmpp.tls, n.xmpp.web, n.xmpp.filesSock = open["xmpp.listen"], open["xmpp.tls"], open["xmpp.websocket"], open["xmpp.files"]
	n.xmpp.peers = open["xmpp.s2s"]
	if odd := strays(have); odd != "" {
		n.log.Warn("the gateway closed inherited sockets that its configuration does not name", "addresses", odd)
	}
	n.orderSock, err = control.ListenSocket("control.socket", c.Control.Socket, c.Control.GID)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT): // waiting messages must be sent all the same
		n.log.Error("the order socket has no room on the disk; the gateway takes no orders. Free space and restart the gateway", "error", err)
	case err != nil:
		return err
	}
	if c.LAN.Multicast.IsValid() {
		if n.etherSock, err = lan.ListenMulticast(c.LAN.Multicast, cmp.Or(c.LAN.TCP, c.LAN.HTTP).Addr()); err != nil {
			return listenError("lan.multicast", "UDP", c.LAN.Multicast, err)
		}
	}
	for i, l := range c.Bearers() {
		if l.TLS {
			err = n.openTLS(i, l, open[config.LinkKey(l, "listen")])
		} else {
			err = n.openRadio(i, l)
		}
		if err == nil && l.Modem != "" {
			err = n.openModem(i, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openRadio opens the socket of a bearer, whose index is bearer. If there are several bearers and the network of one is not there, its
// socket is opened later.
func (n *node) openRadio(bearer int, l config.Link) error {
	addresses := make([]netip.AddrPort, len(l.Peers))
	for i, p := range l.Peers {
		addresses[i] = p.Address
	}
	open := func() (*radio.Radio, error) {
		r, err := radio.Open(l.Listen, func(d api.Datagram) bool {
			d.Bearer = bearer
			return n.daemon.PostAir(d)
		})
		if err != nil {
			return nil, listenError(config.LinkKey(l, "listen"), "UDP", l.Listen, err)
		}
		if l.Group.IsValid() {
			if err = r.Join(l.Group, l.GroupIface, addresses); err != nil {
				r.Close()
				return nil, fmt.Errorf("link.group: %w", err)
			}
		}
		return r, nil
	}
	r, err := open()
	switch {
	case err == nil:
		n.air.bearers = append(n.air.bearers, r)
	case len(n.cfg.More) > 0 && l.Listen.Addr().IsValid() && !l.Listen.Addr().IsUnspecified() && radio.InterfaceWith(l.Listen.Addr()) == nil:
		n.log.Warn("the network of a link is not there; the link is used once it is", "bearer", l.Name, "error", err)
		n.air.bearers = append(n.air.bearers, await(open, func() { n.log.Info("the network of a link is there", "bearer", l.Name) }))
	default:
		return err
	}
	return nil
}

// send passes datagrams to their bearers.
func (n *node) send(datagrams []api.Datagram) {
	if !n.air.lead.mayTransmit(len(datagrams)) {
		return
	}
	if len(n.air.bearers) == 1 {
		n.air.bearers[0].Send(datagrams)
		return
	}
	for i := range datagrams {
		n.air.bearers[datagrams[i].Bearer].Send(datagrams[i : i+1])
	}
}

// gather makes the bearers hand over datagrams that wait in the kernel.
func (n *node) gather(most int) {
	for _, r := range n.air.bearers {
		r.Gather(most / len(n.air.bearers))
	}
}

// radioStats are the counters of all bearers together.
func (n *node) radioStats() (all radio.Stats) {
	for _, r := range n.air.bearers {
		all = all.Add(r.Stats())
	}
	return all
}

// close stops what has begun; the loop has stopped before, or never ran.
func (n *node) close() {
	if n.lan != nil {
		n.lan.Shutdown()
	}
	n.tak.close()
	n.xmpp.close()
	if n.norm != nil {
		n.norm.Close()
	}
	n.air.close()
	if n.httpSock != nil {
		n.httpSock.Close()
	}
	if n.orderSock != nil {
		n.orderSock.Close()
	}
	if n.tak.sock != nil {
		n.tak.sock.Close()
	}
	if n.tak.tls != nil {
		n.tak.tls.Close()
	}
	if n.lanSock != nil {
		n.lanSock.Close()
	}
	if n.pollSock != nil {
		n.pollSock.Close()
	}
	if n.etherSock != nil {
		n.etherSock.Close()
	}
}

// build makes the gateway from the journal, and the rooms that it gives orders to.
func (n *node) build() error {
	records, identity, lastRun, err := n.restore()
	if err != nil {
		return err
	}
	sinceLast, err := begin(n.keepAtStart, lastRun)
	if err != nil {
		return err
	}
	incarnation, err := n.incarnation()
	if err != nil {
		return err
	}
	spared := newSpared(n.log, records)
	spared.damaged(n.journal.Aside())
	c := n.cfg
	rules := filter.New(c.Filters)
	makers := map[site.Adapter]func([]site.Memory) (gateway.Adapter, error){
		site.JXTA: func(memories []site.Memory) (gateway.Adapter, error) {
			n.bridge = jxtabridge.New(jxtabridge.Config{Name: c.Node.Name, Address: dialled(c.LAN.TCP), HTTP: dialled(c.LAN.HTTP), Identity: identity, SignLater: true,
				Multicast: dialled(c.LAN.Multicast), MaxAway: c.LAN.MaxAway, Hold: gateway.Hold(c.Link.Profile), Filter: rules, Site: c.Node.ID, View: jxtabridge.View(c.LAN.View), Views: c.ViewRules(),
				AskAfter: gateway.AskAfter(c.Link.Profile), Wait: c.Delivery.Wait, Beside: beside(c),
				MaxAwayOctets: c.Delivery.MaxOctets, MaxAwayOctetsOfPeer: c.Delivery.MaxOctetsOfPeer}, memories)
			return n.bridge, nil
		},
	}
	configured := c.Corpus.CorpusFile
	makers[site.Corpora] = func(memories []site.Memory) (gateway.Adapter, error) {
		n.corpora = corpusexchange.New(corpusexchange.Config{Name: c.Node.Name, Configured: configured, From: c.Corpus.From, Refuse: c.Corpus.Refuse,
			Shared: c.Link.Profile.Shared}, memories)
		return n.corpora, nil
	}
	if c.TAK.On() {
		enrolled, _ := gateway.Enrolled(n.trust(), records) // the adapter keeps their pictures
		makers[site.TAK] = n.tak.maker(c, enrolled)
	}
	if c.XMPP.On() {
		makers[site.XMPP] = n.xmpp.maker(c)
	}
	n.gateway, err = gateway.New(gateway.Config{
		ID: c.Node.ID, Name: c.Node.Name, Peers: peersOf(c), Profile: c.Link.Profile, Shore: c.Link.Shore, Key: c.Link.Key, Trust: n.trust(),
		Incarnation: incarnation, Store: n.journal.StoreID(), Keepalive: c.Link.Keepalive, Silent: c.Node.Silent, Windows: c.Silences, SinceLast: sinceLast, TakesOver: n.air.lead != nil, Group: c.Link.Group,
		Bearer: c.Link.Name, Price: c.Link.Price, PerDay: c.Link.Octets, Direct: c.Link.Direct, Routes: c.Routes, Lines: c.Link.TLS, More: moreOf(c), Relay: c.Node.Relay, Groups: groupsOf(c), Fleet: fleetOf(c), Rules: c.Rules, Corpus: n.learned(configured, records), Filter: rules, Messages: c.Messages,
		Refused:  spared.refused,
		Wait:     c.Delivery.Wait,
		Adapters: makers,
		Meeting:  n.meeting.maker(c, identity.Peer),
	}, records)
	if err != nil {
		return fmt.Errorf("%w (node.data_dir %s)", err, c.Node.DataDir)
	}
	if err := n.journal.SetAside(spared.aside); err != nil {
		return err
	}
	// One host that opens all connections it can leaves three quarters to others.
	bounds := lan.Config{
		Peer:               identity.Peer,
		From:               c.LAN.TCP.Addr(),
		MaxConns:           c.LAN.MaxConnections,
		MaxConnsPerAddress: c.LAN.MaxConnections / 4,
		Share:              lan.DefaultShare,
	}
	bounds.Sign = func(message []byte, source string) ([]byte, error) {
		return jxta.SignMessage(message, identity.Key, identity.Cert, source)
	}
	if n.air.lead != nil {
		bounds.Passed = n.air.lead.link.Passed
	}
	n.lan = lan.New(bounds, n.daemon.PostLAN(site.JXTA), n.reg, n.log)
	if err := n.tak.open(n); err != nil {
		return err
	}
	if err := n.xmpp.open(n); err != nil {
		return err
	}
	if n.norm, err = norm.New(normConfig(c, n.log), n.daemon.PostNorm); err != nil {
		return err
	}
	return n.air.lead.begin(n)
}

// dialled is an address in the form of routes; "" if it is not served.
func dialled(at netip.AddrPort) string {
	if !at.IsValid() {
		return ""
	}
	return at.String()
}

// bucketIdentity holds the gateway's identity towards JXTA peers. It belongs to this package, not to the gateway room.
const bucketIdentity = "identity"

// restore reads the journal, and makes an identity if there is none yet. lastRun is the record that begin has left.
func (n *node) restore() (records []api.Record, id jxtabridge.Identity, lastRun []byte, err error) {
	var kept []byte
	err = n.journal.Load(func(bucket string, key, value []byte) error {
		switch bucket {
		case bucketIdentity:
			kept = bytes.Clone(value)
		case bucketRun:
			lastRun = bytes.Clone(value)
		default:
			records = append(records, api.Record{Bucket: bucket, Key: bytes.Clone(key), Value: bytes.Clone(value)})
		}
		return nil
	})
	if err != nil {
		return nil, id, nil, err
	}
	if kept != nil {
		id, err = jxtabridge.ParseIdentity(kept)
		return records, id, lastRun, err
	}
	if id, err = jxtabridge.NewIdentity(rand.Reader); err != nil {
		return nil, id, nil, err
	}
	err = n.keepAtStart([]journal.Op{{Bucket: bucketIdentity, Key: []byte("self"), Value: id.Marshal()}})
	return records, id, lastRun, err
}

// incarnation is the name of this start; its number is durable before anything is sealed with it.
func (n *node) incarnation() (seal.Incarnation, error) {
	previous := n.journal.Incarnation()
	if n.byClock {
		n.log.Warn("this start is numbered by the clock alone; at peers that know a later start, run gateway peer forget",
			"start_before", time.Unix(int64(previous), 0).UTC(), "id", n.cfg.Node.ID)
		previous = 0
	}
	number, err := seal.NextIncarnation(previous, time.Now())
	if err != nil {
		return seal.Incarnation{}, err
	}
	var salt [2]byte
	rand.Read(salt[:])
	return seal.Incarnation{Number: number, Salt: binary.BigEndian.Uint16(salt[:])}, n.journal.SetIncarnation(number)
}

// normConfig sets libnorm's rate to the capacity of this end of the link.
func normConfig(c *config.Config, log *slog.Logger) norm.Config {
	p := c.Link.Profile
	bps := p.Sending(c.Link.Shore).RateBps
	if bps == 0 {
		bps = 100e6 // unlimited: the gateway's own pacing decides
	}
	overhead := profile.IPUDPOctets + seal.OverheadShort + api.NormFrameOctets + p.FrameOverhead
	return norm.Config{
		Self: c.Node.ID, Segment: p.SegmentOctets, GRTT: p.GRTT, TxRate: elide.TxRate(float64(bps), p.SegmentOctets, overhead),
		Command: func() *exec.Cmd { return exec.Command("/proc/self/exe", "norm-child") }, // also when the file was replaced
		Lacks: func(missing []string) {
			log.Warn("this machine does not give the NORM process its whole sandbox; docs/install.md says what to change", "missing", missing)
		},
	}
}

// run drives the loop until ctx ends or a socket fails.
func (n *node) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	serve := func(ln net.Listener, peers func(net.Listener) error) {
		if ln == nil {
			return
		}
		go func() {
			if err := peers(ln); err != nil {
				cancel(err)
			}
		}()
	}
	serve(n.lanSock, n.lan.Serve)
	serve(n.pollSock, n.lan.ServePolling)
	if n.tak.lan != nil {
		serve(n.tak.sock, n.tak.lan.Serve)
		serve(n.tak.tls, n.tak.lan.Serve)
		serve(n.tak.unicast, n.tak.lan.ServeDirect)
		n.tak.dial(n.cfg)
		n.tak.serveFiles(cancel)
		if n.cfg.TAK.Mesh != "" {
			go func() {
				if err := n.tak.lan.ServeMesh(); err != nil {
					cancel(err)
				}
			}()
		}
	}
	n.xmpp.start(serve)
	n.air.hearModems()
	if n.etherSock != nil {
		go func() {
			if err := n.lan.ServeMulticast(n.etherSock, n.cfg.LAN.Multicast); err != nil {
				cancel(err)
			}
		}()
	}
	desk := control.New(control.Source{
		Order:       n.daemon.PostOrder,
		Durable:     n.daemon.Durable,
		Authority:   func() control.Authority { return authority(n.reloader.force.Load()) },
		Names:       func() []string { return n.reloader.force.Load().HTTP.Names },
		Reload:      n.reloader.reload,
		Log:         n.log,
		Audit:       n.keep,
		Backup:      n.backup,
		AdvertKeys:  n.advertKeys,
		AdvertRows:  n.advertRows,
		CorpusFile:  n.corpusFile,
		Messages:    n.messages,
		Known:       n.known,
		Version:     cli.VersionText(),
		Started:     n.started,
		Snapshot:    n.snapshot,
		Trouble:     n.trouble,
		Radio:       n.radioStats,
		NORM:        n.norm.Stats,
		Protections: n.protections,
		Rehearsing:  rehearsing(),
		Site:        n.air.lead.site(),
	}, n.reg)
	for _, ln := range []net.Listener{n.httpSock, n.orderSock} {
		serve(ln, func(ln net.Listener) error { return desk.Serve(ctx, ln) })
	}
	go n.watchJournal(ctx)
	go desk.Watch(ctx)
	if at := n.cfg.Traces.OTLP; at != "" {
		go spans.New(spans.Config{URL: at, Name: n.cfg.Node.Name, ID: n.cfg.Node.ID, Version: cli.Version, Messages: n.lives, Log: n.log}, n.reg).Run(ctx)
	}
	refused := &refusals{n: n, entered: map[string]uint64{}, done: make(chan struct{})}
	go refused.watch(ctx)
	go n.reloader.listen(ctx)
	n.keep(audit.Entry{Kind: audit.Start, What: fmt.Sprintf("version %s, configuration %s, %s", cli.VersionText(), n.cfg.File, keyText(n.cfg))})
	n.log.Info("running", "version", cli.VersionText(), "id", n.cfg.Node.ID, "lan", n.cfg.LAN.Seeds(), "link", n.cfg.Link.Listen,
		"profile", n.cfg.Link.Profile.Name, "peers", len(n.cfg.Link.Peers), "journal_bytes", n.journal.Size())
	err := n.daemon.Run(ctx, daemon.Parts{
		Engine: n.gateway, LAN: n.order, Radio: n.send, Gather: n.gather, Hush: n.hush, Norm: n.norm.Do, Commit: n.commit, Handled: n.handled,
	})
	cancel(nil)
	<-refused.done
	last := n.gateway.Status(time.Now())
	refused.roster(last)
	refused.enter(last) // the loop has stopped: nobody else uses the gateway
	if err == nil {
		n.keep(audit.Entry{Kind: audit.End})
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// handled tells an adapter's LAN room how long the loop took for one of its events.
func (n *node) handled(ev api.LAN, took time.Duration) {
	if ev.Adapter == site.JXTA {
		n.lan.Handled(ev.Event, took)
	}
}

// authority says who may give orders, and where.
func authority(c *config.Config) control.Authority {
	who := "as root or as the user that runs the gateway"
	if c.Control.Group != "" {
		who += ", or in the group " + c.Control.Group
	}
	way := fmt.Sprintf("give them on its machine with the gateway command, %s (over %s)", who, c.Control.Socket)
	if c.HTTP.TokenFile != "" {
		way += ", or over HTTP with the token of http.token_file"
	}
	return control.Authority{Group: c.Control.GID, Token: c.HTTP.Token, Way: way}
}

// order makes an adapter's LAN room carry out the adapter's order.
func (n *node) order(o api.LANOrder) {
	switch o.Adapter {
	case site.JXTA:
		n.lan.Do(o.Order)
	case site.TAK:
		n.tak.do(o.Order)
	case site.XMPP:
		n.xmpp.do(o.Order)
	}
}

func (n *node) commit(records []api.Record) error {
	ops := make([]journal.Op, len(records))
	for i, r := range records {
		ops[i] = journal.Op(r)
	}
	if lead := n.air.lead; lead != nil {
		return lead.link.Commit(lead.run, ops, lead.over)
	}
	return n.journal.Commit(ops)
}
