package journal

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/debug"
	"syscall"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"aldis/internal/edge/journal/pages"
)

// store is one file that bbolt writes, and facts about it that need no look into the file. A failing disk must not end the
// process: bbolt maps the file, and a goroutine faults if the disk does not return the page that it reads.
type store struct {
	db    *bolt.DB
	file  *os.File // bbolt's
	last  state    // the last durable state
	alarm *alarm
	dense bool // every page that the tree may use is on the disk
	spent bool // bbolt no longer knows which pages are free: reopen
	stuck bool // a fault has left bbolt's lock behind: not even Close returns
}

// state is a transaction and what the tree held after it.
type state struct {
	tx uint64
	tally
}

// openStore has bbolt open a file, which is locked. On success it belongs to the store.
func openStore(f *os.File, last state) (*store, error) {
	s := &store{file: f, last: last, alarm: &alarm{DefaultLogger: &bolt.DefaultLogger{Logger: log.New(io.Discard, "", 0)}}}
	var err error
	s.db, err = bolt.Open(f.Name(), 0o600, &bolt.Options{
		Timeout:        lockWait,
		NoFreelistSync: true, // one write less per commit; the list is rebuilt at the start
		FreelistType:   bolt.FreelistMapType,
		NoStatistics:   true,
		OpenFile:       func(string, int, os.FileMode) (*os.File, error) { return f, nil },
		Logger:         s.alarm,
	})
	if err != nil {
		return nil, err
	}
	s.dense = fill(f) == nil
	return s, nil
}

// update runs f in a transaction. After an error that casts doubt on the file, it may only be read with renew.
func (s *store) update(f func(*bolt.Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	s.alarm.armed = true
	var tx *bolt.Tx
	defer func() {
		s.alarm.armed = false
		if p := recover(); p != nil {
			err = caught(p)
			s.stuck = s.stuck || tx == nil
		}
		if err != nil && tx != nil {
			_ = tx.Rollback() // it reads no page; if bbolt itself failed it has rolled back already
		}
	}()
	if tx, err = s.db.Begin(true); err != nil {
		return err
	}
	if err = f(tx); err != nil {
		return err
	}
	now := state{uint64(tx.ID()), tallyOf(tx)}
	s.spent = true
	if err = tx.Commit(); err != nil {
		return err
	}
	s.spent = false
	if s.dense && !s.db.NoSync {
		if at, err := dropped(s.file); err != nil || at != nil {
			return &unsoundError{"the kernel has dropped a page and not said so"}
		}
	}
	s.last = now
	return nil
}

// view runs f on the content of the file.
func (s *store) view(f func(*bolt.Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case fault:
			err = caught(p)
		default:
			panic(p) // f's own
		}
	}()
	return s.db.View(f)
}

// close closes the file and writes nothing.
func (s *store) close() error {
	if s.stuck {
		return s.file.Close()
	}
	return s.db.Close()
}

// reopen has bbolt read the same file again. The lock is free only for a moment.
func (s *store) reopen() (*store, error) {
	fd, err := unix.FcntlInt(s.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), s.file.Name())
	fresh, err := openStore(f, s.last)
	if err != nil {
		f.Close()
		return nil, err
	}
	s.close() // this also frees the lock, which both share
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		fresh.db.Close()
		return nil, ErrInUse
	}
	return fresh, nil
}

// doubt says whether an error of update leaves the content of the file uncertain: the kernel drops pages that it could not
// write, but returns them from its memory until that runs short. A full disk is no doubt: it has taken nothing.
func (s *store) doubt(err error) bool {
	var unsound *unsoundError
	var number syscall.Errno
	switch {
	case errors.As(err, &unsound):
		return true
	case !errors.As(err, &number): // not an error of the disk
		return false
	case !isFull(err):
		return true
	}
	var path *os.PathError // otherwise the error comes from a flush
	if !errors.As(err, &path) || path.Op == "sync" {
		return true
	}
	file, err := heads(s.file)
	return err != nil || file.Newest() != s.last.tx
}

func heads(f *os.File) (*pages.File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return pages.Open(f, info.Size())
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// alarm is bbolt's logger. bbolt logs an error before it reads the whole file again, in a goroutine of its own whose fault
// nobody could catch. While armed, alarm leaves bbolt at that point by a panic.
type alarm struct {
	*bolt.DefaultLogger
	armed bool
}

// left is the panic value that carries the error out of bbolt.
type left struct{ error }

func (a *alarm) Errorf(_ string, args ...any) {
	if !a.armed {
		return
	}
	for _, v := range args {
		if err, is := v.(error); is {
			panic(left{err})
		}
	}
}

// unsoundError says that the file cannot be read, or differs from what was written.
type unsoundError struct{ why string }

func (e *unsoundError) Error() string { return e.why }

// fault is the runtime's panic, under SetPanicOnFault, when a mapped page cannot be read.
type fault interface{ Addr() uintptr }

func caught(p any) error {
	switch p := p.(type) {
	case left:
		return p.error
	case fault:
		return &unsoundError{"the disk does not give a page of the file"}
	}
	return &unsoundError{fmt.Sprintf("the disk gives other data than was written (%v)", p)}
}

// forget has the kernel drop its cached pages of a file that nobody maps, so that the next reader reads the disk. The cache
// could hold a page that an earlier process has failed to write: such a page is not on the disk, and no later fsync reports it.
func forget(f *os.File) {
	_ = f.Sync() // octets that cannot be written now are not on the disk either way
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
