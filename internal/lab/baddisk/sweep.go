package baddisk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// sweep removes the mounts of killed runs, whose devices no longer answer.
func sweep() error {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	var mounts [][]string // source and place
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 {
			mounts = append(mounts, f[:2])
		}
	}
	for _, m := range mounts {
		if m[0] != childName {
			continue
		}
		if _, err := os.Lstat(filepath.Join(m[1], imageName)); !errors.Is(err, unix.ENOTCONN) && !errors.Is(err, unix.ECONNABORTED) {
			continue // its process lives
		}
		for _, on := range mounts {
			file, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(on[0]), "loop/backing_file"))
			if err != nil || strings.TrimSpace(string(file)) != filepath.Join(m[1], imageName) {
				continue
			}
			for unix.Unmount(on[1], unix.MNT_DETACH) == nil { // the file system, and the shared mounts under it
			}
		}
		if err := unix.Unmount(m[1], unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return nil
}
