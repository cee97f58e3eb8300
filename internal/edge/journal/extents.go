package journal

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A file system that finds no room for a page when it writes it back drops the page. fsync of ext4 then succeeds all the same,
// for instance when it cannot read its own bitmaps. So after each commit the journal asks whether all pages are on the disk.

// Constants to ask where a file lies on its disk (linux/fiemap.h).
const (
	fiemapIoctl   = 0xC020660B        // FS_IOC_FIEMAP
	fiemapNowhere = 0x2 | 0x4 | 0x800 // unknown, not placed yet, placed and not written
	extentsOfAsk  = 64
	zerosAtOnce   = 1 << 16
)

type fiemap struct {
	start, length                  uint64
	flags, mapped, count, reserved uint32
	extents                        [extentsOfAsk]struct {
		logical, physical, length uint64
		_                         [2]uint64
		flags                     uint32
		_                         [3]uint32
	}
}

// stretch is a part of a file, in octets.
type stretch struct{ from, to int64 }

// nowhere is the first stretch among a file's first octets that is not on the disk; nil: all of them are. An error says that
// the file system cannot tell.
func nowhere(f *os.File, from, octets int64) (*stretch, error) {
	for from < octets {
		ask := fiemap{start: uint64(from), length: uint64(octets - from), count: extentsOfAsk}
		switch _, _, number := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fiemapIoctl, uintptr(unsafe.Pointer(&ask))); {
		case number == unix.EINTR:
			continue
		case number != 0:
			return nil, number
		}
		for _, e := range ask.extents[:ask.mapped] {
			begin, end := int64(e.logical), int64(e.logical+e.length)
			switch {
			case begin > from:
				return &stretch{from, min(begin, octets)}, nil
			case e.flags&fiemapNowhere != 0:
				return &stretch{from, min(end, octets)}, nil
			}
			from = max(from, end)
		}
		if ask.mapped == 0 {
			return &stretch{from, octets}, nil
		}
	}
	return nil, nil
}

// dropped is a stretch that the newest tree may use and that is not on the disk.
func dropped(f *os.File) (*stretch, error) {
	file, err := heads(f)
	if err != nil {
		return nil, err
	}
	return nowhere(f, 0, file.Used())
}

// fill allocates the blocks that a file lacks: a sparse copy lacks some. After it, a page without a block was dropped.
func fill(f *os.File) error {
	file, err := heads(f)
	if err != nil {
		return err
	}
	zero := make([]byte, zerosAtOnce)
	for from := int64(0); ; {
		at, err := nowhere(f, from, file.Used())
		if err != nil || at == nil {
			return err
		}
		for n := at.from; n < at.to; n += zerosAtOnce {
			if _, err := f.WriteAt(zero[:min(at.to-n, zerosAtOnce)], n); err != nil {
				return err
			}
		}
		if err := f.Sync(); err != nil {
			return err
		}
		if again, err := nowhere(f, at.from, at.to); err != nil || again != nil {
			return errors.Join(err, unix.ENOSPC)
		}
		from = at.to
	}
}
