package field

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/baddisk"
)

// lockDir holds one locked file per living run. The kernel releases the lock however the run ends.
const lockDir = "/run/aldis-lab"

var spaceName = regexp.MustCompile(`^aldis-([0-9a-f]{4})-`)

// world is the namespaces of one run, and the disks of its machines.
type world struct {
	id     string
	lock   *os.File
	spaces []string
	disks  []*baddisk.Disk
}

// newWorld cleans up after dead runs and claims a free run id.
func newWorld() (*world, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("lab: network namespaces need root (sudo)")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, fmt.Errorf("lab: iproute2 is not installed: %w", err)
	}
	if err := os.MkdirAll(lockDir, 0o755); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	if err := cleanStale(); err != nil {
		return nil, err
	}
	for range 100 {
		var b [2]byte
		if _, err := rand.Read(b[:]); err != nil {
			return nil, err
		}
		w := &world{id: hex.EncodeToString(b[:])}
		f, err := os.OpenFile(filepath.Join(lockDir, w.id), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("lab: %w", err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			continue // another run took it for a dead run's
		}
		_, _ = f.WriteString(strconv.Itoa(os.Getpid()) + "\n") // for people; the lock decides
		w.lock = f
		return w, nil
	}
	return nil, errors.New("lab: no free run id in " + lockDir)
}

// cleanStale removes the namespaces of runs whose lock no process holds. Namespaces without a lock file are not ours.
func cleanStale() error {
	files, err := os.ReadDir(lockDir)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	for _, e := range files {
		path := filepath.Join(lockDir, e.Name())
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue // removed meanwhile
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && isAt(f, path) {
			dead := &world{id: e.Name(), lock: f}
			list, err := os.ReadDir("/run/netns")
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("lab: %w", err)
			}
			for _, ns := range list {
				if m := spaceName.FindStringSubmatch(ns.Name()); m != nil && m[1] == dead.id {
					dead.spaces = append(dead.spaces, ns.Name())
				}
			}
			if err := dead.close(); err != nil {
				return err
			}
			continue
		}
		f.Close()
	}
	return nil
}

// isAt says whether an open file still has that name: a run that ends removes its file before it releases the lock.
func isAt(f *os.File, path string) bool {
	held, err1 := f.Stat()
	named, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(held, named)
}

// workDir is the directory of a run's files, which is removed with the run. It is made only when it is needed.
func (w *world) workDir() string { return filepath.Join(os.TempDir(), "aldis-lab-"+w.id) }

// unfinished is the directory of a Debian that the run is making.
func (w *world) unfinished() string { return filepath.Join(debianCache, w.id) }

// add makes a namespace with loopback up. IPv6 is off, because its neighbour discovery would be counted on the link.
func (w *world) add(name string) (string, error) {
	ns := "aldis-" + w.id + "-" + name
	if err := ip("netns", "add", ns); err != nil {
		return "", err
	}
	w.spaces = append(w.spaces, ns)
	err := InNetns(ns, func() error {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0)
		if errors.Is(err, os.ErrNotExist) {
			return nil // a kernel without IPv6
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("lab: %s: %w", ns, err)
	}
	return ns, ip("-n", ns, "link", "set", "lo", "up")
}

// close removes the namespaces with all processes in them, then the claim.
func (w *world) close() error {
	var errs []error
	for _, ns := range w.spaces {
		if out, err := exec.Command("ip", "netns", "pids", ns).Output(); err == nil {
			for _, f := range strings.Fields(string(out)) {
				if pid, err := strconv.Atoi(f); err == nil && pid != os.Getpid() {
					_ = unix.Kill(pid, unix.SIGKILL) // it may have exited meanwhile
				}
			}
		}
		if err := ip("netns", "del", ns); err != nil {
			errs = append(errs, err)
		}
	}
	w.spaces = nil
	for _, d := range w.disks {
		if err := d.Close(); err != nil {
			errs = append(errs, err)
		}
	}
	w.disks = nil
	if err := errors.Join(w.detach(), os.RemoveAll(w.workDir()), os.RemoveAll(w.unfinished())); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		errs = append(errs, os.Remove(filepath.Join(lockDir, w.id)))
	}
	errs = append(errs, w.lock.Close())
	return errors.Join(errs...)
}

// detach takes away what a killed run has left mounted in its directory.
func (w *world) detach() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	lines := strings.Split(string(mounts), "\n")
	for _, line := range slices.Backward(lines) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], w.workDir()+"/") {
			err = errors.Join(err, unix.Unmount(f[1], unix.MNT_DETACH))
		}
	}
	return err
}

// ip runs iproute2.
func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		said := strings.TrimSpace(string(out))
		if strings.Contains(said, "ermi") { // "Operation not permitted", "Permission denied"
			said += "; the lab makes network namespaces: run it as root, in a container with --privileged. gateway replay needs neither"
		}
		return fmt.Errorf("lab: ip %s: %w: %s", strings.Join(args, " "), err, said)
	}
	return nil
}

// InNetns runs f on a thread inside the namespace. Sockets and devices that f opens stay there. The thread comes back: if it ended, the
// processes that it started with Pdeathsig would end with it.
func InNetns(name string, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		back, err := enter(name)
		if err != nil {
			done <- err
			return // still locked: in whatever namespace the thread is, it ends with the goroutine
		}
		defer back.Close()
		err = f()
		if rerr := unix.Setns(int(back.Fd()), unix.CLONE_NEWNET); rerr != nil {
			done <- errors.Join(err, rerr)
			return
		}
		runtime.UnlockOSThread()
		done <- err
	}()
	return <-done
}

// enter moves the thread into the namespace and returns the way back.
func enter(name string) (back *os.File, err error) {
	ns, err := os.Open("/run/netns/" + name)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	if back, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return nil, err
	}
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		back.Close()
		return nil, fmt.Errorf("setns %s: %w", name, err)
	}
	return back, nil
}

// DialIn opens a TCP connection from inside a namespace.
func DialIn(ctx context.Context, ns, addr string) (net.Conn, error) {
	var conn net.Conn
	err := InNetns(ns, func() (err error) {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "tcp4", addr)
		return err
	})
	return conn, err
}

// lan joins a gateway's namespace and its peers' by a bridge in the gateway's, which has the first address. The bridge forwards nothing,
// so a peer reaches only its own LAN.
func lan(gateway string, own netip.Prefix) error {
	return errors.Join(
		ip("-n", gateway, "link", "add", "lan0", "type", "bridge"),
		ip("-n", gateway, "addr", "add", own.String(), "dev", "lan0"),
		ip("-n", gateway, "link", "set", "lan0", "up"),
	)
}

// plug puts a peer's namespace on the LAN of a gateway's. port is unique on that LAN.
func plug(gateway, peer, port string, addr netip.Prefix) error {
	return errors.Join(
		ip("-n", gateway, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", peer),
		ip("-n", gateway, "link", "set", port, "master", "lan0", "up"),
		ip("-n", peer, "addr", "add", addr.String(), "dev", "eth0"),
		ip("-n", peer, "link", "set", "eth0", "up"),
	)
}

// wall puts a namespace with a translation of addresses between a site and its links, and returns it. Connections that the site opens go
// out, over TCP only to port if port is not 0; unsolicited packets do not come in. Those to the wall itself are dropped too: what the
// kernel accepts there counts as a connection, and the translation would then give the site another port to the sender.
func (w *world) wall(site, name string, port int) (string, error) {
	ns, err := w.add(name)
	if err != nil {
		return "", err
	}
	only := ""
	if port != 0 {
		only = fmt.Sprintf("tcp dport %d ", port)
	}
	rules := exec.Command("ip", "netns", "exec", ns, "nft", "-f", "-")
	rules.Stdin = strings.NewReader(`table ip wall {
	chain out { type nat hook postrouting priority 100; oifname "link*" masquerade; }
	chain in { type filter hook input priority 0; policy drop; ct state established,related accept; iifname { "lo", "in0" } accept; }
	chain pass { type filter hook forward priority 0; policy drop; ct state established,related accept; iifname "in0" ` + only + `accept; }
}`)
	out, err := rules.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("lab: nft: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return ns, errors.Join(err,
		InNetns(ns, func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) }),
		ip("-n", site, "link", "add", "out0", "type", "veth", "peer", "name", "in0", "netns", ns),
		ip("-n", site, "addr", "add", "192.168.77.2/30", "dev", "out0"),
		ip("-n", site, "link", "set", "out0", "up"),
		ip("-n", ns, "addr", "add", "192.168.77.1/30", "dev", "in0"),
		ip("-n", ns, "link", "set", "in0", "up"),
		ip("-n", site, "route", "add", "default", "via", "192.168.77.1"),
	)
}

// openTUN makes an IP interface inside a namespace, up and with an address, and returns its other end.
func openTUN(ns, name string, addr netip.Prefix, mtu int) (*os.File, error) {
	var file *os.File
	err := InNetns(ns, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("/dev/net/tun: %w", err)
		}
		req, err := unix.NewIfreq(name)
		if err == nil {
			req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI) // no IFF_VNET_HDR, so no offloads either
			err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
		}
		if err != nil {
			unix.Close(fd)
			return fmt.Errorf("tun %s in %s: %w", name, ns, err)
		}
		file = os.NewFile(uintptr(fd), "tun "+name)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	err = errors.Join(
		ip("-n", ns, "link", "set", name, "mtu", strconv.Itoa(mtu)),
		ip("-n", ns, "addr", "add", addr.String(), "dev", name),
		ip("-n", ns, "link", "set", name, "up"),
	)
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
