package rights

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/rights/calls"
	"aldis/internal/lab/check"
)

// tried is the subcommand of the test program that gives up its rights and then tries something.
const tried = "tried"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == tried {
		attempt(os.Args[2], os.Args[3])
	}
	os.Exit(m.Run())
}

// place makes the directories that the attempts name: own, conf with the file c.toml, out, and sock.
func place(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"conf", "out", "sock"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"conf/c.toml", "out/file"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// older is in the environment of a process that shall behave as on a kernel without Landlock.
const older = "ALDIS_TEST_OLDER_KERNEL"

func attempt(dir, what string) {
	if os.Getenv(older) != "" {
		os.Unsetenv(older)
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err = errors.Join(err, calls.Load(calls.Program(architecture, []calls.Rule{calls.On(unix.SYS_LANDLOCK_CREATE_RULESET, calls.Absent)}, calls.Allow))); err != nil {
			fmt.Println("not older:", err)
		}
	}
	list, err := Enter(Needs{Own: []string{dir + "/own"}, Read: []string{dir + "/conf/c.toml"}, Sockets: []string{dir + "/sock/s"}})
	if err != nil {
		fmt.Println("not entered:", err)
		os.Exit(1)
	}
	key := make([]byte, 32)
	if missing := Missing(append(list, Lock(), Hold(key))); len(missing) > 0 {
		fmt.Println("missing:", missing)
		os.Exit(1)
	}
	err = attempts[what].do(dir)
	for _, known := range []error{fs.ErrPermission, nil} { // EPERM and EACCES
		if errors.Is(err, known) {
			err = known
			break
		}
	}
	fmt.Println(err)
	os.Exit(0)
}

func call(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func socket(family, kind int) error {
	fd, err := unix.Socket(family, kind, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func readable(path string) error { _, err := os.ReadFile(path); return err }

func writable(path string) error { return os.WriteFile(path, []byte("x"), 0o600) }

// attempts are actions of a gateway, and of an attacker who has taken it over. Those that are not allowed must be refused.
var attempts = map[string]struct {
	do      func(dir string) error
	allowed bool
}{
	"its own file": {func(dir string) error {
		path := dir + "/own/file"
		return errors.Join(writable(path), readable(path), os.Rename(path, path+".1"), os.Truncate(path+".1", 0), os.Remove(path+".1"))
	}, true},
	"a file without a name": {func(dir string) error {
		fd, err := unix.Open(dir+"/own", unix.O_TMPFILE|unix.O_RDWR, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}, true},
	"its configuration": {func(dir string) error { return readable(dir + "/conf/c.toml") }, true},
	"its socket": {func(dir string) error {
		for range 2 {
			l, err := net.Listen("unix", dir+"/sock/s")
			if err != nil {
				return err
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			l.Close()
			if err := os.Remove(dir + "/sock/s"); err != nil {
				return err
			}
		}
		return nil
	}, true},
	"a port":      {func(string) error { return listen("tcp", "127.0.0.1:0") }, true},
	"a datagram":  {func(string) error { return socket(unix.AF_INET, unix.SOCK_DGRAM) }, true},
	"interfaces":  {func(string) error { _, err := net.Interfaces(); return err }, true},
	"the program": {func(string) error { return exec.Command("/proc/self/exe", "-test.run", "^$").Run() }, true},
	"own namespaces": {func(string) error {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^$")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 1, HostID: os.Geteuid(), Size: 1}}}
		return cmd.Run()
	}, true},
	"a signal to a child": {func(string) error {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^$")
		return errors.Join(cmd.Start(), cmd.Process.Signal(unix.Signal(0)), cmd.Wait())
	}, true},

	"passwords":           {func(string) error { return readable("/etc/shadow") }, false},
	"another's file":      {func(dir string) error { return readable(dir + "/out/file") }, false},
	"a file elsewhere":    {func(dir string) error { return writable(dir + "/out/new") }, false},
	"over a file":         {func(dir string) error { return writable(dir + "/out/file") }, false},
	"cut a file off":      {func(dir string) error { return os.Truncate(dir+"/out/file", 0) }, false},
	"remove a file":       {func(dir string) error { return os.Remove(dir + "/out/file") }, false},
	"over its rules":      {func(dir string) error { return writable(dir + "/conf/c.toml") }, false},
	"a device":            {func(dir string) error { return unix.Mknod(dir+"/own/d", unix.S_IFCHR|0o600, 0x103) }, false},
	"a shell":             {func(string) error { return exec.Command("/bin/sh", "-c", "true").Run() }, false},
	"an own program":      {func(dir string) error { return foreign(dir + "/own/program") }, false},
	"a program in memory": {func(string) error { _, err := unix.MemfdCreate("x", 0); return err }, false},
	"a signal to another": {func(string) error { return unix.Kill(os.Getppid(), unix.Signal(0)) }, false},
	"ptrace":              {func(string) error { return unix.PtraceAttach(os.Getppid()) }, false},
	"a look into another": {func(string) error { return call(unix.SYS_PROCESS_VM_READV, uintptr(os.Getppid())) }, false},
	"a mount":             {func(string) error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") }, false},
	"another root":        {func(dir string) error { return unix.Chroot(dir) }, false},
	"other mounts":        {func(string) error { return unix.Unshare(unix.CLONE_NEWNS) }, false},
	"bpf":                 {func(string) error { return call(unix.SYS_BPF, 5) }, false},
	"io_uring":            {func(string) error { return call(unix.SYS_IO_URING_SETUP, 1) }, false},
	"a key":               {func(string) error { _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); return err }, false},
	"a raw socket":        {func(string) error { return socket(unix.AF_INET, unix.SOCK_RAW) }, false},
	"a packet socket":     {func(string) error { return socket(unix.AF_PACKET, unix.SOCK_DGRAM) }, false},
	"the clock":           {func(string) error { return unix.Settimeofday(&unix.Timeval{Sec: 1}) }, false},
	"memory to write and execute": {func(string) error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
		return err
	}, false},
	"written memory to execute": {func(string) error {
		b, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return fmt.Errorf("no memory: %v", err)
		}
		return unix.Mprotect(b, unix.PROT_READ|unix.PROT_EXEC)
	}, false},
}

func listen(network, at string) error {
	l, err := net.Listen(network, at)
	if err == nil {
		l.Close()
	}
	return err
}

// foreign writes a program and executes it.
func foreign(path string) error {
	if err := os.WriteFile(path, []byte("#!/bin/true\n"), 0o700); err != nil {
		return fmt.Errorf("not written: %v", err)
	}
	return exec.Command(path).Run()
}

// A process that has given up its rights can do a gateway's work, and none of an attacker's.
func TestAttempts(t *testing.T) {
	dir := place(t)
	for what, a := range attempts {
		out, err := exec.Command("/proc/self/exe", tried, dir, what).CombinedOutput()
		in := check.In(t, what)
		want := fs.ErrPermission.Error()
		if a.allowed {
			want = "<nil>"
		}
		check.Equal(in, "what it said", strings.TrimSpace(string(out)), want)
		check.NoError(in, err)
	}
}

// A protection that is not available is named, and does not stop the program: here its data directory is no directory.
func TestWithoutItsFiles(t *testing.T) {
	dir := place(t)
	if err := os.WriteFile(dir+"/own", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := exec.Command("/proc/self/exe", tried, dir, "passwords").CombinedOutput()
	check.Contains(t, "what it said", string(out), "missing: ["+Files+": mkdir "+dir+"/own: not a directory ")
	check.Lacks(t, "what it said", string(out), NoNewPrivileges)
}

// A kernel without Landlock: the missing protection is reported, and all others are active.
func TestOlderKernel(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", tried, place(t), "passwords")
	cmd.Env = append(os.Environ(), older+"=1")
	out, _ := cmd.CombinedOutput()
	const why = ": this kernel does not have it, or not switched on (lsm=landlock,...)"
	check.Equal(t, "what it said", string(out), "missing: ["+Files+why+" "+Neighbours+why+"]\n")
}

// The first stage's result counts only for its own process.
func TestMarker(t *testing.T) {
	for _, said := range []string{"", "1\n\n\n\n", fmt.Sprint(os.Getpid()), fmt.Sprintf("%d\n\n\n\n\n", os.Getpid())} {
		t.Setenv(marker, said)
		_, ok := entered()
		check.Equal(t, fmt.Sprintf("%q counts", said), ok, false)
	}
	t.Setenv(marker, fmt.Sprintf("%d\n\n\nwhy\nwhy too", os.Getpid()))
	list, ok := entered()
	check.Equal(t, "it counts", ok, true)
	check.Same(t, "what is missing", Missing(list), []string{Files + ": why", Neighbours + ": why too"})
	_, left := os.LookupEnv(marker)
	check.Equal(t, "a child would believe it", left, false)
}

// If a file's directory has more than a gateway's files, only the file itself is allowed.
func TestAround(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(dir+"/there", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/there", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/there/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"/etc/aldis/gateway.toml": "/etc/aldis", "/etc/gateway.toml": "/etc/gateway.toml", "/gateway.toml": "/gateway.toml",
		dir + "/link/file": dir + "/there",
	} {
		check.Equal(t, file, around(file), want)
	}
}

// No call is in two lists: the first rule would hide the other.
func TestListsAreDisjoint(t *testing.T) {
	seen := map[uint32]bool{}
	for _, call := range slices.Concat(never, here) {
		if seen[call] {
			t.Errorf("call %d is there twice", call)
		}
		seen[call] = true
	}
	for _, r := range sometimes() {
		if seen[r.Call] {
			t.Errorf("call %d is refused whatever its arguments are", r.Call)
		}
	}
}
