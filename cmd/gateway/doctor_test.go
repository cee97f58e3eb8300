package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/commands"
	"aldis/internal/operator/doctor"
)

// examination is the output of doctor.
type examination operator.Examined

// findings are doctor's findings about a site, as JSON; cmd runs doctor.
func findings(t *testing.T, cmd *exec.Cmd) (e examination, code int) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.Output()
	if uerr := json.Unmarshal(out, &e); uerr != nil {
		t.Fatalf("%v, %v: %s", err, uerr, out)
	}
	return e, cmd.ProcessState.ExitCode()
}

func (s *testSite) doctor(t *testing.T) (examination, int) {
	t.Helper()
	return findings(t, gatewayCommand("doctor", "-c", s.file, "--json"))
}

// finds checks for a finding of this kind with these words, and a remedy unless its grade is ok.
func (e examination) finds(t *testing.T, checked string, grade doctor.Grade, words ...string) {
	t.Helper()
	for _, f := range e.Findings {
		good := f.Check == checked && f.Grade == grade && (f.WayOut != "") == (grade != doctor.OK)
		for _, w := range words {
			good = good && strings.Contains(f.About+" "+f.Text+" "+f.WayOut, w)
		}
		if good {
			return
		}
	}
	t.Errorf("no %s of %s with %q among", grade, checked, words)
	for _, f := range e.Findings {
		t.Logf("%s %s %s: %s -> %s", f.Grade, f.Check, f.About, f.Text, f.WayOut)
	}
}

// tree is every file below a directory with its visible attributes.
func tree(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			all = append(all, fmt.Sprintln(path, info.Mode(), info.Size(), info.ModTime()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The findings before the gateway runs; doctor leaves everything as it was.
func TestDoctorBeforeTheStart(t *testing.T) {
	s := newSite(t, 2, "")
	data := filepath.Join(s.dir, "data")
	s.more = fmt.Sprintf("[tak]\nlisten = %q\nfiles = %q\nmesh = \"127.0.0.1\"\nmesh_unicast = %q\n", check.FreeAddress(t, "tcp"), check.FreeAddress(t, "tcp"), check.FreeAddress(t, "tcp"))
	s.write(t, data, "1 127.0.0.1:9")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	before := tree(t, s.dir)
	e, code := s.doctor(t)
	check.Same(t, "what is in the directory afterwards", tree(t, s.dir), before)
	check.Equal(t, "exit code", code, cli.ExitGood)
	check.Equal(t, "a gateway runs", e.Running, false)
	e.finds(t, "configuration", doctor.OK, s.file)
	e.finds(t, "gateway", doctor.Warning, "no gateway runs here", "nothing was sent")
	e.finds(t, "clock", doctor.OK)
	e.finds(t, "key.file", doctor.OK, "0600")
	e.finds(t, "key.check", doctor.OK)
	e.finds(t, "disk", doctor.OK, data)
	e.finds(t, "disk.space", doctor.OK)
	e.finds(t, "disk.sync", doctor.OK)
	for _, key := range []string{"lan.tcp", "http.listen", "link.listen", "tak.listen", "tak.files", "tak.mesh_unicast"} {
		e.finds(t, "port", doctor.OK, key, "is free")
	}
	e.finds(t, "multicast", doctor.OK, "tak.mesh", "takes multicast")
	e.finds(t, "mtu", doctor.OK, "node1", "geo-satcom-128k")

	code, out, errs := run(t, "doctor", "-c", s.file)
	check.Equal(t, "exit code, and "+errs, code, cli.ExitGood)
	wants(t, out, "ok      clock", "WARNING gateway: no gateway runs here", "        -> systemctl start", "faults: 0, warnings: ")
	check.Equal(t, "exit code with an argument", runCode(t, "doctor", "now"), cli.ExitUsage)
}

// Faults of disk and files, each produced.
func TestDoctorFindsFaultsOfTheDisk(t *testing.T) {
	for _, tt := range []struct {
		name    string
		produce func(t *testing.T, s *testSite, data string)
		checked string
		words   []string
	}{
		{"the key is open to others", func(t *testing.T, s *testSite, _ string) { chmod(t, s.key(), 0o644) }, "configuration", []string{"mode 0644", "chmod 600"}},
		{"the data directory is open for writing", func(t *testing.T, _ *testSite, data string) { chmod(t, data, 0o777) }, "disk", []string{"mode 0777", "chmod 700"}},
		{"another user's data directory", func(t *testing.T, _ *testSite, data string) { chown(t, data, 65533) }, "disk", []string{"user 65533"}},
		{"everybody may write above it", func(t *testing.T, s *testSite, _ string) { chmod(t, s.dir, 0o777) }, "key.directory", []string{"chmod o-w"}},
		{"no directory", func(t *testing.T, _ *testSite, data string) {
			if err := os.Remove(data); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(data, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "configuration", []string{"is not a directory"}},
		{"a file system that is read-only", func(t *testing.T, _ *testSite, data string) { mount(t, data, syscall.MS_RDONLY, "") }, "disk.sync", []string{"read-only", "remount"}},
		{"a disk without room", func(t *testing.T, _ *testSite, data string) { mount(t, data, 0, "size=64k,mode=700") }, "disk.space", []string{"64.0 KiB"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, 2, "")
			data := filepath.Join(s.dir, "data")
			if err := os.Mkdir(data, 0o700); err != nil {
				t.Fatal(err)
			}
			if tt.name == "another user's data directory" { // root may do everything: let the key be a user's
				chown(t, s.key(), 65532)
			}
			tt.produce(t, s, data)
			e, code := s.doctor(t)
			check.Equal(t, "exit code", code, cli.ExitRefused)
			e.finds(t, tt.checked, doctor.Fault, tt.words...)
		})
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func chown(t *testing.T, path string, uid int) {
	t.Helper()
	if err := os.Chown(path, uid, -1); err != nil {
		t.Fatalf("%v (this test needs root)", err)
	}
}

func mount(t *testing.T, dir string, flags uintptr, options string) {
	t.Helper()
	if err := syscall.Mount("aldis-doctor", dir, "tmpfs", flags, options); err != nil {
		t.Fatalf("mounting a tmpfs: %v (this test needs root)", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// Ports of others are reported with their program, addresses of other machines as such.
func TestDoctorFindsPortsOfOthers(t *testing.T) {
	s := newSite(t, 2, "")
	ln, err := net.Listen("tcp", s.lan)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	udp, err := net.ListenPacket("udp", s.link)
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	s.http = "192.0.2.1:9142"
	s.write(t, filepath.Join(s.dir, "data"))
	e, code := s.doctor(t)
	check.Equal(t, "exit code", code, cli.ExitRefused)
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	me := fmt.Sprintf("%q (process %d)", strings.TrimSpace(string(comm)), os.Getpid())
	e.finds(t, "port", doctor.Fault, "lan.tcp", "TCP "+s.lan, me)
	e.finds(t, "port", doctor.Fault, "link.listen", "UDP "+s.link, me)
	e.finds(t, "port", doctor.Fault, "http.listen", "192.0.2.1 is no address of this machine")
}

// A network whose interface takes shorter packets than the profile makes, and one without any route.
func TestDoctorFindsShortPackets(t *testing.T) {
	s := newSite(t, 2, "")
	s.write(t, filepath.Join(s.dir, "data"), "1 127.0.0.1:9", "3 192.0.2.9:7142")
	cmd := exec.Command("unshare", "-n", "sh", "-c", `ip link set lo mtu 600 up && exec "$0" "$@"`, "/proc/self/exe", "doctor", "-c", s.file, "--json")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args[5] = exe
	cmd.Env = append(os.Environ(), asGateway+"=1")
	e, code := findings(t, cmd)
	check.Equal(t, "exit code", code, cli.ExitRefused)
	e.finds(t, "mtu", doctor.Fault, "node1", "takes packets of 600 octets", "makes packets of 1500", "smaller datagrams")
	e.finds(t, "route", doctor.Fault, "node3", "192.0.2.9", "no route")
}

// Two running gateways: the findings about each other and themselves, with one key and with two.
func TestDoctorOfRunningGateways(t *testing.T) {
	t.Parallel()
	a, b := two(t)
	e, code := b.doctor(t)
	check.Equal(t, "exit code", code, cli.ExitGood)
	check.Equal(t, "a gateway runs", e.Running, true)
	e.finds(t, "gateway", doctor.OK, fmt.Sprintf("process %d", b.cmd.Process.Pid))
	for _, key := range []string{"lan.tcp", "http.listen", "link.listen"} {
		e.finds(t, "port", doctor.OK, key, "is held by the gateway")
	}
	e.finds(t, "far.heard", doctor.OK, "node1")
	e.finds(t, "far.key", doctor.OK, "node1", "same key")
	e.finds(t, "link.profile", doctor.OK, "too few messages")
	e.finds(t, "rights.hardening", doctor.Warning, "NoNewPrivileges")
	e.finds(t, "rights.files", doctor.OK)

	// The other end gets another key.
	a.stop(t, syscall.SIGTERM)
	if err := os.Remove(a.key()); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := run(t, "keys", "new", "-o", a.key()); code != 0 {
		t.Fatal(errs)
	}
	b.stop(t, syscall.SIGTERM)
	b = b.testSite.start(t)
	a = a.testSite.start(t)
	b.until(t, "datagrams come that do not open", func() bool { return b.peer(t).Unopened > 0 })
	e, code = b.doctor(t)
	check.Equal(t, "exit code with another key", code, cli.ExitRefused)
	e.finds(t, "far.key", doctor.Fault, "node1", "do not open", "another key")
	keyOf := func(e examination) (text string) {
		for _, f := range e.Findings {
			if f.Check == "key.check" {
				text = f.Text
			}
		}
		return text
	}
	other, _ := a.doctor(t)
	check.True(t, "the checks of two keys differ", keyOf(other) != keyOf(e) && keyOf(e) != "", keyOf(e))
}

// A far gateway that does not run, and one that must call first.
func TestDoctorMissesAFarGateway(t *testing.T) {
	s := newSite(t, 2, "")
	s.write(t, filepath.Join(s.dir, "data"), "1 "+check.FreeAddress(t, "udp"), "3")
	s.start(t)
	e, code := s.doctor(t)
	check.Equal(t, "exit code", code, cli.ExitGood)
	e.finds(t, "far.heard", doctor.Warning, "node1", "was not heard yet")
	e.finds(t, "far.heard", doctor.Warning, "node3", "has no address")
}
