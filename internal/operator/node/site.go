package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"aldis/internal/edge/config"
	"aldis/internal/edge/journal"
	"aldis/internal/edge/lan"
	"aldis/internal/edge/pairlink"
	"aldis/internal/edge/tlslink"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
)

// machine is this machine of a site: a pairlink.Link of two, or a pairlink.Cluster of three or more.
type machine interface {
	prometheus.Collector
	control.Site
	Leadership() (run uint64, changed <-chan struct{}, err error)
	MayTransmit(run uint64) bool
	Begin(run uint64) error
	Keep(run uint64, ops []journal.Op) error
	Commit(run uint64, ops []journal.Op, most <-chan struct{}) error
	Pass(key string, ln net.Listener)
	Passed(remote netip.AddrPort) (has uint64, passed bool)
	Close()
}

// leadership is this machine's leadership of the site. Nil: the site has one machine.
type leadership struct {
	link    machine
	run     uint64
	again   bool            // this process has led before
	over    <-chan struct{} // closed when the gateway stops: commits then no longer wait for the other machine
	dropped prometheus.Counter
}

// mayTransmit says whether the gateway may transmit now.
func (l *leadership) mayTransmit(datagrams int) bool {
	if l == nil || l.link.MayTransmit(l.run) {
		return true
	}
	l.dropped.Add(float64(datagrams))
	return false
}

// begin reports that the gateway has been made.
func (l *leadership) begin(n *node) error {
	if l == nil {
		return nil
	}
	n.reg.MustRegister(l.link, l.dropped)
	return l.link.Begin(l.run)
}

// site is the control desk's access to the machines of the site; nil: there is one machine.
func (l *leadership) site() control.Site {
	if l == nil {
		return nil
	}
	return l.link
}

// lastCommits is how long commits of a stopping gateway wait for the other machine.
const lastCommits = 2 * time.Second

// serveSite runs this machine of a site of several until ctx ends: the gateway while it leads, otherwise the follower.
func serveSite(ctx context.Context, n *node, have map[netip.AddrPort]net.Listener, level *slog.LevelVar) error {
	hups := make(chan os.Signal, 1) // a machine that follows has nothing to reload; SIGHUP must not kill it
	signal.Notify(hups, syscall.SIGHUP)
	defer signal.Stop(hups)
	if err := n.open(); err != nil {
		return err
	}
	defer n.closeFiles()
	own, err := n.listenSite()
	if err != nil {
		return err
	}
	held, err := sockets(n.cfg, have)
	if err != nil {
		own.Close()
		return err
	}
	defer func() {
		for _, ln := range held {
			ln.Close()
		}
	}()
	link, err := n.joinSite(own)
	if err != nil {
		own.Close()
		return err
	}
	defer link.Close()
	for again := false; ctx.Err() == nil; {
		run, changed, err := link.Leadership()
		switch {
		case err != nil:
			return err
		case run == 0:
			if err := n.follow(ctx, link, held, changed); err != nil {
				return err
			}
			continue
		}
		leader := &node{cfg: n.cfg, byClock: n.byClock, log: n.log, journal: n.journal, audit: n.audit, protections: n.protections}
		leader.air.lead = &leadership{link: link, run: run, again: again, dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aldis_site_not_sent_total", Help: "Datagrams that were not sent because the other machine of the site may lead."})}
		err = leader.leads(ctx, held, level)
		n.protections, n.byClock, again = leader.protections, false, true
		if still, _, _ := link.Leadership(); ctx.Err() != nil || still == run {
			return err
		}
		n.log.Warn("this machine does not lead the site any more; its gateway has ended", "error", err)
	}
	return nil
}

// listenSite listens for the other machines. Of cluster.members it uses the address that this machine has.
func (n *node) listenSite() (net.Listener, error) {
	c := n.cfg.Cluster
	if !c.On() {
		ln, err := lan.Listen(n.cfg.Site.Listen.String())
		if err != nil {
			return nil, listenError("site.listen", "TCP", n.cfg.Site.Listen, err)
		}
		return ln, nil
	}
	for _, at := range c.Members {
		if c.Listen.IsValid() && at != c.Listen {
			continue
		}
		ln, err := lan.Listen(at.String())
		if errors.Is(err, syscall.EADDRNOTAVAIL) && !c.Listen.IsValid() {
			continue
		} else if err != nil {
			return nil, listenError("cluster.members", "TCP", at, err)
		}
		return ln, nil
	}
	return nil, errors.New("cluster.members: none of them is an address of this machine: correct the list, or bring the interface up first")
}

// beside are the addresses of the site's other machines, which pass connections on to this one.
func beside(c *config.Config) (list []string) {
	if c.Site.Other.IsValid() {
		list = append(list, c.Site.Other.Addr().String())
	}
	for _, at := range c.Cluster.Members {
		list = append(list, at.Addr().String())
	}
	return list
}

// joinSite makes this machine one of the site's.
func (n *node) joinSite(own net.Listener) (machine, error) {
	c := n.pairConfig()
	if !n.cfg.Cluster.On() {
		return pairlink.Open(c, own)
	}
	c.Listen, c.Members = own.Addr().(*net.TCPAddr).AddrPort(), n.cfg.Cluster.Members
	return pairlink.OpenCluster(c, own)
}

// keepAtStart makes operations of a start durable.
func (n *node) keepAtStart(ops []journal.Op) error {
	if lead := n.air.lead; lead != nil {
		return lead.link.Keep(lead.run, ops)
	}
	return n.journal.Commit(ops)
}

// leads runs the gateway until ctx or the leadership ends.
func (n *node) leads(ctx context.Context, held map[string]net.Listener, level *slog.LevelVar) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lead := n.air.lead
	over := make(chan struct{})
	lead.over = over
	context.AfterFunc(ctx, func() { time.AfterFunc(lastCommits, func() { close(over) }) })
	go func() {
		for {
			run, changed, err := lead.link.Leadership()
			if run != lead.run || err != nil {
				cancel()
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}()
	have := map[netip.AddrPort]net.Listener{}
	for _, l := range n.cfg.Listens() {
		ln, err := again(held[l.Key])
		if err != nil {
			return err
		}
		have[l.At] = ln
	}
	return n.serve(ctx, have, level)
}

// again duplicates a listening socket: peers that connect between two uses of it wait in the kernel.
func again(ln net.Listener) (net.Listener, error) {
	f, err := ln.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileListener(f)
}

// follow serves the parts of a machine that does not lead, until this one may lead or ctx ends.
func (n *node) follow(ctx context.Context, link machine, held map[string]net.Listener, changed <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), link)
	desk := control.Following(control.Source{Version: cli.VersionText(), Site: link, Log: n.log, Audit: n.keep,
		Authority: func() control.Authority { return authority(n.cfg) }, Names: func() []string { return n.cfg.HTTP.Names }}, reg)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	orders, err := control.ListenSocket("control.socket", n.cfg.Control.Socket, n.cfg.Control.GID)
	if err != nil {
		return err
	}
	serve := func(ln net.Listener) {
		wait.Add(1)
		go func() { defer wait.Done(); _ = desk.Serve(ctx, ln) }()
	}
	serve(orders)
	for key, ln := range held {
		t := ln.(*net.TCPListener)
		if key == "http.listen" {
			ln, err := again(ln)
			if err != nil {
				return err
			}
			serve(ln)
			continue
		}
		t.SetDeadline(time.Time{})
		wait.Add(1)
		go func() { defer wait.Done(); link.Pass(key, t) }()
		defer t.SetDeadline(time.Unix(1, 0))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		var run uint64
		if run, changed, err = link.Leadership(); run != 0 || err != nil {
			return err
		}
	}
}

// pairConfig is the configuration of the link between this machine and the other one.
func (n *node) pairConfig() pairlink.Config {
	c := n.cfg
	var ways []pairlink.Way
	for _, l := range c.Listens() {
		if !strings.HasPrefix(l.Key, "link.") && l.Key != "http.listen" {
			ways = append(ways, pairlink.Way{Key: l.Key, At: l.At})
		}
	}
	return pairlink.Config{Identity: siteIdentity(c), Listen: c.Site.Listen, Other: c.Site.Other, Witness: c.Site.Witness, Journal: n.journal,
		Facts: facts(c), Ways: ways, Version: cli.VersionText(), Wall: time.Now, Log: n.log}
}

// siteIdentity is the identity of a machine towards the other one and a witness.
func siteIdentity(c *config.Config) tlslink.Identity {
	t := c.Link.Trust
	if !t.On() {
		own := tlslink.KeyOfNetwork(c.Link.Key[:])
		return tlslink.Identity{Self: c.Node.ID, Key: own, Member: func(_ uint16, key ed25519.PublicKey) bool { return key.Equal(own.Public()) }}
	}
	seed := t.Own.Seed()
	return tlslink.Identity{Self: c.Node.ID, Key: ed25519.NewKeyFromSeed(seed[:]), Member: func(id uint16, key ed25519.PublicKey) bool {
		m, ok := t.Roster.Node(id)
		return ok && bytes.Equal(key, m.Public[:])
	}}
}

// facts are the values in which all machines of the site must agree.
func facts(c *config.Config) []pairlink.Fact {
	list := []pairlink.Fact{{Name: "node.id", Value: fmt.Sprint(c.Node.ID)}, {Name: "node.name", Value: c.Node.Name}, {Name: "the format of the journal", Value: fmt.Sprint(journal.Format)}}
	if t := c.Link.Trust; t.On() {
		list = append(list, pairlink.Fact{Name: "link.roster", Value: fmt.Sprintf("serial %d, authority %s", t.Roster.Serial, t.Authority.Fingerprint())})
	}
	corpus := "none"
	if c.Corpus.CorpusFile != nil {
		corpus = hex.EncodeToString(c.Corpus.Hash[:4])
	}
	list = append(list, pairlink.Fact{Name: "compact.corpus", Value: corpus})
	for _, l := range c.Bearers() {
		list = append(list, pairlink.Fact{Name: config.LinkKey(l, "profile"), Value: l.Profile.Name})
	}
	return list
}

// Witness runs the third voter of the sites of a network until ctx ends.
func Witness(ctx context.Context, cfg *config.Config, stderr io.Writer) error {
	log, _ := newLogger(cfg, stderr)
	ln, err := lan.Listen(cfg.Site.Listen.String())
	if err != nil {
		return listenError("site.listen", "TCP", cfg.Site.Listen, err)
	}
	w, err := pairlink.NewWitness(siteIdentity(cfg), cfg.Node.DataDir, log)
	if err != nil {
		ln.Close()
		return err
	}
	log.Info("the witness runs", "listen", cfg.Site.Listen)
	return w.Serve(ctx, ln)
}
