package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/config"
)

const (
	leastFree   = 16 << 20 // octets: if less is free, a busy hour fills the disk
	slowSync    = time.Second
	leastInodes = 16
)

// ownerOf is the user that must own a directory or a key: the user that runs the gateway, otherwise the owner of path.
func ownerOf(path string, run *Running) int {
	if run != nil {
		return run.UID
	}
	if info, err := os.Stat(path); err == nil {
		return int(info.Sys().(*syscall.Stat_t).Uid)
	}
	return os.Geteuid()
}

func (f *findings) disk(c *config.Config, run *Running) {
	key := c.Link.KeyFile
	if c.Link.Trust.On() {
		key = c.Link.Trust.NodeKeyFile
	}
	owner := ownerOf(key, run)
	f.keyFile(key, owner)
	f.dataDir(c.Node.DataDir, c.Delivery.MaxOctets, owner)
}

// keyFile checks two things that keyfile.LoadKey does not: the owner of the file, and which users could replace it. Whether the file
// can be read and is closed to others has been checked before.
func (f *findings) keyFile(path string, owner int) {
	const check = "key.file"
	info, err := os.Stat(path)
	if err != nil {
		f.fault(check, "", "put the network's key there", "%v", err)
		return
	}
	if is := int(info.Sys().(*syscall.Stat_t).Uid); is != owner && owner != 0 {
		f.fault(check, "", fmt.Sprintf("chown %s %s", userName(owner), path), "%s belongs to %s, and the gateway runs as %s: the next start cannot read it", path, userName(is), userName(owner))
	} else {
		f.ok(check, "", "%s is closed to others (mode %04o, of %s)", path, info.Mode().Perm(), userName(is))
	}
	f.above("key.directory", path, owner)
}

// above checks the directory of a file: a user that may write there can replace the file.
func (f *findings) above(check, path string, owner int) {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil {
		f.fault(check, "", "make it", "%v", err)
		return
	}
	is, mode := int(info.Sys().(*syscall.Stat_t).Uid), info.Mode()
	switch {
	case mode.Perm()&0o002 != 0 && mode&fs.ModeSticky == 0:
		f.fault(check, "", "chmod o-w "+dir, "everybody may write in %s (mode %04o), and could put something else in the place of %s", dir, mode.Perm(), path)
	case is != 0 && is != owner:
		f.warn(check, "", "chown root "+dir, "%s belongs to %s, who could put something else in the place of %s", dir, userName(is), path)
	default:
		f.ok(check, "", "only %s may change what is in %s", userName(is), dir)
	}
}

// dataDir checks the directory of the journal. max is the most octets that may wait there for local peers.
func (f *findings) dataDir(dir string, max, owner int) {
	const check = "disk"
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.warn(check, "", fmt.Sprintf("the gateway makes it, if it may; otherwise: install -d -m 700 -o %s %s", userName(owner), dir), "%s is not there yet", dir)
		return
	case err != nil:
		f.fault(check, "", "run gateway doctor as root, or as the user that runs the gateway", "%v", err)
		return
	case !info.IsDir():
		f.fault(check, "", "set another node.data_dir", "%s is no directory", dir)
		return
	}
	switch is := int(info.Sys().(*syscall.Stat_t).Uid); {
	case is != owner && owner != 0:
		f.fault(check, "", fmt.Sprintf("chown -R %s %s", userName(owner), dir), "%s belongs to %s, and the gateway's user is %s", dir, userName(is), userName(owner))
	case info.Mode().Perm()&0o022 != 0:
		f.fault(check, "", "chmod 700 "+dir, "others may write in %s (mode %04o)", dir, info.Mode().Perm())
	case info.Mode().Perm()&0o055 != 0:
		f.warn(check, "", "chmod 700 "+dir, "others can look at what is in %s (mode %04o)", dir, info.Mode().Perm())
	default:
		f.ok(check, "", "%s belongs to %s alone (mode %04o)", dir, userName(is), info.Mode().Perm())
	}
	f.above("disk.directory", dir, owner)
	f.space(dir, max)
	f.sync(dir)
}

// space compares the free space with the space that the journal may need: after a failure of the disk it is written anew.
func (f *findings) space(dir string, max int) {
	const check = "disk.space"
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		f.fault(check, "", "look at the disk", "%s: %v", dir, err)
		return
	}
	journal := int64(0)
	if info, err := os.Stat(filepath.Join(dir, "aldis.db")); err == nil {
		journal = info.Size()
	}
	free, want := int64(s.Bavail)*int64(s.Bsize), journal+int64(max)+leastFree
	const out = "make room there, or set node.data_dir to a larger disk"
	switch {
	case s.Flags&unix.ST_RDONLY != 0:
		f.fault(check, "", "dmesg says why; mend it, then mount it anew (mount -o remount,rw)", "the file system of %s is read-only", dir)
	case free < leastFree:
		f.fault(check, "", out, "%s has room for %s: the gateway stops taking messages when there is none", dir, octets(free))
	case free < want:
		f.warn(check, "", out, "%s has room for %s; with a full queue, and to write the journal anew, it may need %s", dir, octets(free), octets(want))
	case s.Files > 0 && s.Ffree < leastInodes:
		f.fault(check, "", out, "the file system of %s has no room for more files", dir)
	default:
		f.ok(check, "", "%s has room for %s; the journal has %s", dir, octets(free), octets(journal))
	}
}

// sync writes a file without a name in a directory, and makes the disk confirm it. Closing removes the file.
func (f *findings) sync(dir string) {
	const check = "disk.sync"
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR):
		f.warn(check, "", "gateway run tells when a write fails", "the file system of %s has no files without a name: writing was not tried", dir)
		return
	case errors.Is(err, unix.EROFS):
		f.fault(check, "", "dmesg says why; mend it, then mount it anew (mount -o remount,rw)", "nothing can be written in %s: its file system is read-only", dir)
		return
	case errors.Is(err, unix.EACCES):
		f.fault(check, "", "run gateway doctor as root, or as the user that runs the gateway; if this is that user: chmod u+rwx "+dir, "%s may not write in %s", userName(os.Geteuid()), dir)
		return
	case err != nil:
		f.fault(check, "", "look at the disk (dmesg, smartctl)", "nothing can be written in %s: %v", dir, err)
		return
	}
	defer unix.Close(fd)
	began := time.Now()
	if _, err = unix.Write(fd, make([]byte, 4096)); err == nil {
		err = unix.Fsync(fd)
	}
	took := time.Since(began)
	switch {
	case err != nil:
		f.fault(check, "", "make room, or look at the disk (dmesg, smartctl)", "a write to %s is not confirmed: %v", dir, err)
	case took > slowSync:
		f.warn(check, "", "use another disk, or find out what else keeps it busy (iostat -x)", "%s took %v to confirm a write: every message waits for that", dir, took.Round(time.Millisecond))
	default:
		f.ok(check, "", "%s confirms a write", dir)
	}
}

// octets is a size for people.
func octets(n int64) string {
	for _, u := range []struct {
		least int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.least {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.least), u.name)
		}
	}
	return fmt.Sprintf("%d octets", n)
}
