package rights

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Needs are the files that a process needs once it runs.
type Needs struct {
	Own     []string // directories that it may use freely; they are made if they are missing
	Read    []string // files that it reads, also after somebody has replaced them
	Run     []string // programs that it starts, besides itself
	Sockets []string // paths of unix sockets that it makes, and removes if they are stale
}

// Rights to files, with Landlock's names.
const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readTree = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	execute  = readFile | unix.LANDLOCK_ACCESS_FS_EXECUTE
	writeOne = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	own      = readTree | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	sockets = unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | readFile | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// handled are the rights that a version of Landlock knows: a right that is handled and not allowed is refused.
func handled(version int) (files, scoped uint64) {
	files = 1<<13 - 1
	if version >= 2 {
		files |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		files |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		files |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	return files, scoped
}

// rule allows access to a file, or to everything in a directory.
type rule struct {
	path   string
	rights uint64
	must   bool // a missing file is an error, not just skipped
}

// rules are the rules of a process. exe is its program.
func rules(n Needs, exe string) (list []rule) {
	for _, dir := range n.Own {
		list = append(list, rule{dir, own, true})
	}
	for _, file := range n.Read {
		list = append(list, rule{around(file), readTree, true})
	}
	for _, path := range n.Sockets {
		list = append(list, rule{filepath.Dir(path), sockets, true})
	}
	list = append(list, rule{exe, execute, true})
	for _, program := range n.Run {
		list = append(list, rule{program, execute, false})
	}
	if loader := interpreter(exe); loader != "" {
		list = append(list, rule{loader, execute, true})
	}
	for _, path := range mapped() {
		list = append(list, rule{path, readFile, false})
	}
	// Go's runtime, glibc, names of users, time zones. A parent writes the user ids of a new user namespace there.
	for _, path := range []string{"/proc"} {
		list = append(list, rule{path, readTree | unix.LANDLOCK_ACCESS_FS_WRITE_FILE, false})
	}
	for _, path := range []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/sys/devices/system/cpu",
		"/sys/kernel/mm/transparent_hugepage", "/sys/fs/cgroup"} {
		list = append(list, rule{path, readTree, false})
	}
	for _, path := range []string{"/dev/urandom", "/dev/random", "/dev/zero"} {
		list = append(list, rule{path, readFile, false})
	}
	list = append(list, rule{"/dev/null", writeOne, false})
	if os.Geteuid() != 0 { // of /etc, everything that the user may read: passwd and group are replaced when they change
		return append(list, rule{"/etc", readTree, false})
	}
	for _, name := range []string{"ld.so.cache", "ld.so.preload", "nsswitch.conf", "passwd", "group", "hosts", "host.conf", "resolv.conf", "localtime"} {
		list = append(list, rule{"/etc/" + name, readFile, false})
	}
	return list
}

// around is the path that must be readable so that a file is, even after an editor has replaced it: its directory. A directory
// just below the root holds too much; then it is the file itself, as it is now.
func around(file string) string {
	file, err := filepath.Abs(file)
	if real, rerr := filepath.EvalSymlinks(file); err == nil && rerr == nil {
		file = real
	}
	dir := filepath.Dir(file)
	if strings.Count(dir, "/") < 2 {
		return file
	}
	return dir
}

// interpreter is the loader of a program, or "" if it needs none.
func interpreter(program string) string {
	f, err := elf.Open(program)
	if err != nil {
		return ""
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name, err := io.ReadAll(io.LimitReader(p.Open(), unix.PathMax))
			if err == nil {
				return strings.TrimRight(string(name), "\x00")
			}
		}
	}
	return ""
}

// mapped are the files that this process has mapped: its libraries, wherever they are.
func mapped() (list []string) {
	maps, _ := os.ReadFile("/proc/self/maps")
	seen := map[string]bool{}
	for line := range strings.Lines(string(maps)) {
		if at := strings.IndexByte(line, '/'); at >= 0 {
			if path := strings.TrimSpace(line[at:]); !seen[path] {
				seen[path] = true
				list = append(list, path)
			}
		}
	}
	return list
}

// landlock is the kernel's version of Landlock.
func landlock() (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
		return int(version), nil
	case unix.ENOSYS, unix.EOPNOTSUPP:
		return 0, errors.New("this kernel does not have it, or not switched on (lsm=landlock,...)")
	}
	return 0, errno
}

// restrict leaves this thread only the files of n. The errors say which protections are missing.
func restrict(n Needs) (files, neighbours error) {
	version, err := landlock()
	if err != nil {
		return err, err
	}
	for _, dir := range n.Own {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err, err
		}
	}
	var set unix.LandlockRulesetAttr
	set.Handled_access_fs, set.Scoped = handled(version)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&set)), unsafe.Sizeof(set), 0)
	if errno != 0 {
		return errno, errno
	}
	defer unix.Close(int(fd))
	for _, r := range rules(n, "/proc/self/exe") {
		if err := r.add(int(fd), set.Handled_access_fs); err != nil && r.must {
			err = fmt.Errorf("%s: %w", r.path, err)
			return err, err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return errno, errno
	}
	if version < 3 {
		files = fmt.Errorf("this kernel has version %d, which does not keep files from being cut off: 3 does", version)
	}
	if set.Scoped == 0 {
		neighbours = fmt.Errorf("this kernel has version %d, and 6 brings it", version)
	}
	return files, neighbours
}

// add adds a rule to a set.
func (r rule) add(set int, handled uint64) error {
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil {
		return err
	}
	rights := r.rights & handled
	if is.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	beneath := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&beneath)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
