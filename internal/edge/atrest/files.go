package atrest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// leftName is the suffix of the second name that a file has while its octets are overwritten, after the new file has replaced
// it.
const leftName = ".clear"

const zerosAtOnce = 1 << 16

// Replace puts the file fresh, which is durable, in the place of path, and overwrites the octets that path held before. If the
// process is killed in the middle, path is either the old or the new file, and WipeLeft completes the work. Flash and copying
// file systems do not overwrite in place, so the old octets may stay there.
func Replace(path, fresh string) error {
	old, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer old.Close()
	if err := os.Remove(path + leftName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = os.Link(path, path+leftName)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EOPNOTSUPP) {
		err = nil // a file system without second names: a kill now leaves the octets
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err == nil {
		err = SyncDir(filepath.Dir(path))
	}
	if err == nil {
		err = wipe(old)
	}
	if err != nil {
		return err
	}
	return removeLeft(path)
}

// WipeLeft overwrites and removes the file that a killed Replace of path has left.
func WipeLeft(path string) error {
	f, err := os.OpenFile(path+leftName, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	left, err := f.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Stat(path); err == nil && os.SameFile(now, left) { // it was not replaced
		return removeLeft(path)
	}
	if err := wipe(f); err != nil {
		return err
	}
	return removeLeft(path)
}

func removeLeft(path string) error {
	if err := os.Remove(path + leftName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// wipe overwrites the octets of a file.
func wipe(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	zero := make([]byte, zerosAtOnce)
	for at := int64(0); at < info.Size(); at += zerosAtOnce {
		if _, err := f.WriteAt(zero[:min(info.Size()-at, zerosAtOnce)], at); err != nil {
			return err
		}
	}
	return f.Sync()
}

// SyncDir makes the names of the files in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
