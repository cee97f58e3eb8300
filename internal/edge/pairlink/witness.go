package pairlink

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"aldis/internal/edge/atrest"
	"aldis/internal/edge/infile"
	"aldis/internal/edge/tlslink"
	"aldis/internal/gateway/pair"
	"aldis/internal/ground/due"
)

const (
	askTime    = 2 * time.Second
	probeEvery = 30 * time.Second
)

// ask has the witness judge a claim. The caller holds mu.
func (l *Link) ask(c pair.Claim) {
	if l.asking || l.life.Err() != nil {
		return
	}
	l.asking = true
	l.wait.Add(1)
	go func() {
		defer l.wait.Done()
		v, err := l.judged(c)
		l.mu.Lock()
		l.asking = false
		if err == nil {
			l.heard = time.Now()
			l.step(v)
		}
		l.mu.Unlock()
		if err != nil {
			l.warn("witness", "the witness of the site does not answer", "witness", l.cfg.Witness, "error", err)
		}
	}()
}

// probe checks now and then whether the witness answers. Epoch 0 belongs to nobody.
func (l *Link) probe() {
	defer l.wait.Done()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		l.mu.Lock()
		l.ask(pair.Claim{Machine: l.m.Stored().Machine})
		l.mu.Unlock()
		select {
		case <-l.life.Done():
			return
		case <-tick.C:
		}
	}
}

// judged asks the witness over a connection of its own.
func (l *Link) judged(c pair.Claim) (v pair.Verdict, err error) {
	ctx, cancel := context.WithTimeout(l.life, askTime)
	defer cancel()
	d := tls.Dialer{Config: l.anybody, NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: l.cfg.Listen.Addr().AsSlice()}}}
	raw, err := d.DialContext(ctx, "tcp", l.cfg.Witness.String())
	if err != nil {
		return v, err
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(askTime))
	if _, err := raw.Write(appendFrame(nil, kindClaim, appendClaim(c))); err != nil {
		return v, err
	}
	k, content, err := readFrame(raw, mostGreeting)
	if err == nil && k != kindVerdict {
		err = errFrame
	}
	if err != nil {
		return v, err
	}
	return parseVerdict(content)
}

// Witness is the third voter, for any site of its network.
type Witness struct {
	own  tlslink.Identity
	tls  *tls.Config
	path string
	log  *slog.Logger

	mu    sync.Mutex
	sites map[uint16]pair.Witness // by node
	hosts due.Each[netip.Addr]
	told  due.Seldom[string]
	open  int
}

// Bounds of a witness.
const (
	witnessFile  = "aldis.witness"
	mostWitness  = 4 << 20
	mostAsking   = 64  // connections
	askRate      = 4.0 // claims a second from one address, and how many at once
	askBurst     = 40
	mostAskHosts = 4096
)

// NewWitness reads the stored votes of a witness from its data directory.
func NewWitness(own tlslink.Identity, dir string, log *slog.Logger) (*Witness, error) {
	own.Twin = true // its key may be the site's own
	w := &Witness{own: own, path: filepath.Join(dir, witnessFile), log: log, sites: map[uint16]pair.Witness{},
		hosts: due.Each[netip.Addr]{Rate: askRate, Burst: askBurst, Most: mostAskHosts}, told: due.Seldom[string]{Every: time.Minute, Most: 64}}
	var err error
	if w.tls, err = own.Config(0); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	text, err := infile.Read(w.path, mostWitness)
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &w.sites)
	}
	if err != nil {
		return nil, fmt.Errorf("the witness does not know for whom it has voted: %s: %w; two machines could lead if it voted again: restore the file, or remove it while both gateways of each site are up", w.path, err)
	}
	return w, nil
}

// Serve answers claims until ctx ends.
func (w *Witness) Serve(ctx context.Context, ln net.Listener) error {
	var wait sync.WaitGroup
	defer wait.Wait()
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	for {
		raw, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		now, host := time.Now(), hostOf(raw.RemoteAddr())
		w.mu.Lock()
		bucket := w.hosts.Of(now, host)
		fits := w.open < mostAsking && bucket != nil && bucket.Allow(now, askRate, askBurst)
		if fits {
			w.open++
		}
		w.mu.Unlock()
		if !fits {
			raw.Close()
			continue
		}
		wait.Add(1)
		go func() {
			defer wait.Done()
			err := w.answer(ctx, tls.Server(raw, w.tls))
			raw.Close()
			w.mu.Lock()
			w.open--
			may := err != nil && w.told.May(time.Now(), host.String())
			w.mu.Unlock()
			if may {
				w.log.Warn("a claim was not answered", "remote", host, "error", err)
			}
		}()
	}
}

func (w *Witness) answer(ctx context.Context, raw *tls.Conn) error {
	raw.SetDeadline(time.Now().Add(askTime))
	if err := raw.HandshakeContext(ctx); err != nil {
		return err
	}
	node, err := w.own.Peer(raw.ConnectionState())
	if err != nil {
		return err
	}
	k, content, err := readFrame(raw, mostGreeting)
	if err == nil && k != kindClaim {
		err = errFrame
	}
	if err != nil {
		return err
	}
	claim, err := parseClaim(content)
	if err != nil {
		return err
	}
	v, err := w.judge(node, claim)
	if err != nil {
		return err
	}
	_, err = raw.Write(appendFrame(nil, kindVerdict, appendVerdict(v)))
	return err
}

// judge votes, and stores the vote before it returns.
func (w *Witness) judge(node uint16, c pair.Claim) (pair.Verdict, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.sites[node]
	is := before
	v := is.Judge(c)
	if is == before {
		return v, nil
	}
	w.sites[node] = is
	text, err := json.Marshal(w.sites)
	if err == nil {
		err = store(w.path, text)
	}
	if err != nil {
		w.sites[node] = before
		return v, fmt.Errorf("the vote cannot be stored: %w", err)
	}
	w.log.Info("the witness has voted", "node", node, "epoch", c.Epoch, "machine", fmt.Sprintf("%016x", c.Machine), "order", c.Forced)
	return v, nil
}

// store replaces a file durably.
func store(path string, text []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return atrest.SyncDir(filepath.Dir(path))
}
