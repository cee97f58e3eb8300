package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/field"
)

const (
	serverReady = 30 * time.Second // to take connections
	serverStop  = 10 * time.Second // from SIGTERM to SIGKILL
	pollEvery   = 10 * time.Millisecond
)

// server is a rendezvous under test.
type server struct {
	name    string // "JXSE 2.7" or "gateway"
	address string // "ip:port" of its LAN over TCP
	http    string // address of a gateway's counters; "" for the reference
	pid     int
	stop    func() error
	kill    func()  // as a loss of power does; stop is called after it
	other   *server // a second server at its side or behind it, which has the receivers
}

// far is the server of the receivers.
func (s *server) far() *server {
	if s.other != nil {
		return s.other
	}
	return s
}

// counters are a gateway's counters, by the name and the labels of each: none for the reference.
func (s *server) counters(ctx context.Context) (map[string]float64, error) {
	found := map[string]float64{}
	if s.http == "" {
		return found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, serverStop)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.http+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(io.LimitReader(resp.Body, 4<<20))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			found[name] = v
		}
	}
	return found, lines.Err()
}

// cost is the resources that a process has used so far.
type cost struct {
	cpu      time.Duration
	resident float64 // MB
}

// cost reads the cost from /proc, with that of a second server; zero if there is none.
func (s *server) cost() cost {
	if s == nil {
		return cost{}
	}
	if s.other != nil {
		one := *s
		one.other = nil
		a, b := one.cost(), s.other.cost()
		return cost{a.cpu + b.cpu, a.resident + b.resident}
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		return cost{}
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // the name before may hold any characters
	number := func(i int) float64 { v, _ := strconv.ParseFloat(f[i], 64); return v }
	if len(f) < 22 {
		return cost{}
	}
	const tick = 100 // USER_HZ, the same on every Linux
	return cost{time.Duration((number(11) + number(12)) / tick * 1e9), number(21) * float64(os.Getpagesize()) / 1e6}
}

// freePorts finds free ports of loopback, for TCP or UDP.
func freePorts(network string, n int) (ports []int, err error) {
	list, err := check.FreeAddresses(network, n)
	for _, a := range list {
		ports = append(ports, int(a.Port()))
	}
	return ports, err
}

// site is the settings of a gateway under test.
type site struct {
	id      int
	profile string
	radio   int            // its UDP port on loopback; 0: any, because it has no peer
	peers   map[int]string // other gateways, by node id
	more    string         // of its configuration
	http    bool           // peers come over HTTP
	dir     string         // of its files, kept for the next start; "": a new one
	lan     string         // its address for peers; "": any
	witness string         // address of the site's witness, which this is; "": it is none
}

// networkKey is the key file of all gateways under test.
func networkKey(ctx context.Context, r *run) (string, error) {
	key := filepath.Join(r.dir, "net.key")
	if _, err := os.Stat(key); err != nil {
		if out, err := exec.CommandContext(ctx, r.Gateway, "keys", "new", "-o", key).CombinedOutput(); err != nil {
			return "", fmt.Errorf("gateway keys new: %w: %s", err, bytes.TrimSpace(out))
		}
	}
	return key, nil
}

// gateway starts `gateway run` on loopback and waits until it takes connections.
func (r *run) gateway(ctx context.Context, s site) (*server, error) {
	tcp, err := freePorts("tcp", 2)
	if err == nil && s.radio == 0 {
		var udp []int
		if udp, err = freePorts("udp", 1); err == nil {
			s.radio = udp[0]
		}
	}
	if err != nil {
		return nil, err
	}
	key, err := networkKey(ctx, r)
	if err != nil {
		return nil, err
	}
	dir := s.dir
	if dir == "" {
		dir, err = os.MkdirTemp(r.dir, "gateway-")
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "data"), 0o700)
	}
	if err != nil {
		return nil, err
	}
	address := cmp.Or(s.lan, fmt.Sprintf("127.0.0.1:%d", tcp[0]))
	transport := "tcp"
	if s.http {
		transport = "http"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[node]\nid = %d\nname = \"bench-%d\"\ndata_dir = %q\n\n[lan]\n%s = %q\n", s.id, s.id, filepath.Join(dir, "data"), transport, address)
	fmt.Fprintf(&b, "\n[link]\nprofile = %q\nlisten = \"127.0.0.1:%d\"\nkey_file = %q\n", s.profile, s.radio, key)
	status := fmt.Sprintf("127.0.0.1:%d", tcp[1])
	fmt.Fprintf(&b, "\n[http]\nlisten = %q\n", status)
	for id, at := range s.peers {
		fmt.Fprintf(&b, "\n[[link.peer]]\nid = %d\naddress = %q\n", id, at)
	}
	b.WriteString(s.more)
	config, logFile := filepath.Join(dir, "gateway.toml"), filepath.Join(dir, "gateway.log")
	if err := os.WriteFile(config, []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(r.Gateway, "run", "-c", config)
	if s.witness != "" {
		cmd = exec.Command(r.Gateway, "site", "witness", "-c", config)
		address = s.witness
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	done, ended, err := field.StartBound(cmd)
	if err != nil {
		return nil, err
	}
	srv := &server{name: "gateway", address: address, http: status, pid: cmd.Process.Pid}
	killed := false
	srv.kill = func() {
		killed = true
		_ = cmd.Process.Kill() // it may have exited already
		<-done
	}
	srv.stop = func() error {
		if killed {
			return nil
		}
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have exited already
		select {
		case <-done:
		case <-time.After(serverStop):
			_ = cmd.Process.Kill()
			<-done
			return fmt.Errorf("the gateway did not end within %v of SIGTERM", serverStop)
		}
		if err := ended(); err != nil {
			return fmt.Errorf("the gateway ended: %w: %s", err, lastLine(logFile))
		}
		return nil
	}
	if err := answers(ctx, address, done); err != nil {
		return nil, errors.Join(err, srv.stop(), errors.New(lastLine(logFile)))
	}
	return srv, nil
}

// answers waits until a program takes connections at an address.
func answers(ctx context.Context, address string, done <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, serverReady)
	defer cancel()
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-done:
			return errors.New("it ended at its start")
		case <-ctx.Done():
			return fmt.Errorf("no connection on %s: %w", address, err)
		case <-time.After(pollEvery):
		}
	}
}

func lastLine(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	b = bytes.TrimSpace(b)
	return string(b[bytes.LastIndexByte(b, '\n')+1:])
}

// serverJVM lets a rendezvous take the resources that it wants.
var serverJVM = []string{"-Xmx1g", "-Djava.security.egd=file:/dev/urandom"}

const (
	rendezvousSigned   = field.KindJXSE27
	rendezvousUnsigned = field.KindJXSE27Unsigned
)

// rendezvous starts the reference, JXSE 2.7 as rendezvous and relay.
func (r *run) rendezvous(ctx context.Context, kind string, overHTTP bool, seed string) (*server, error) {
	ports, err := freePorts("tcp", 1)
	if err != nil {
		return nil, err
	}
	p, err := field.StartPeer(ctx, field.PeerConfig{Kind: kind, Name: "bench-rdv", Host: "127.0.0.1", Port: ports[0], Role: "rdv", Seed: seed, HTTP: overHTTP, JarDir: r.Jars, JVM: serverJVM})
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, serverReady)
	defer cancel()
	if _, err := p.Wait(wait, func(e field.Event) bool { return e.Ev == "ready" }); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	srv := &server{name: "JXSE 2.7", address: fmt.Sprintf("127.0.0.1:%d", ports[0]), pid: p.Events()[0].PID, stop: p.Stop}
	srv.kill = func() {
		_ = syscall.Kill(srv.pid, syscall.SIGKILL) // it may have exited already
		srv.stop = func() error { _ = p.Stop(); return nil }
	}
	return srv, nil
}
