package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
)

// Trouble is why a journal cannot write now. The same ops may be committed again later.
type Trouble struct {
	Path string
	Err  error
	what string
	way  string
}

// Error says what is wrong with the disk, and the remedy.
func (t *Trouble) Error() string {
	return fmt.Sprintf("journal: %s: %s: %v; %s", t.Path, t.what, t.Err, t.way)
}

// Unwrap is the error of the operating system.
func (t *Trouble) Unwrap() error { return t.Err }

// Remedy tells the operator what to do. It is the same for errors of one kind.
func (t *Trouble) Remedy() string { return t.way }

// trouble turns a disk's error into words. It returns other errors unchanged.
func (j *Journal) trouble(err error) error {
	what, way := explain(err)
	switch {
	case what == "":
		return fmt.Errorf("journal: %w", err)
	case j.doubtful && isFull(err):
		what, way = "its disk has failed, and is too full to write the journal anew", "make as much room on it as the journal has octets"
	case j.doubtful && errors.Is(err, ErrGone):
		what, way = "its disk has failed, and it cannot be written anew", "move the journal back to where it was"
	}
	return &Trouble{Path: filepath.Join(j.dir, fileName), Err: err, what: what, way: way}
}

// explain says what an error of a disk means, and what to do; "": it is no such error.
func explain(err error) (what, way string) {
	var unsound *unsoundError
	var number syscall.Errno
	switch {
	case isFull(err):
		return "its disk is full", "make room on it"
	case errors.Is(err, syscall.EROFS):
		return "its file system is read-only, as the kernel makes it when its disk has failed",
			"stop the gateway, unmount the file system, check it (fsck), mount it anew, start the gateway"
	case errors.Is(err, ErrGone), errors.As(err, &unsound), errors.As(err, &number):
		return "its disk fails", "look at the disk and its cable (dmesg, smartctl): the gateway goes on by itself when the disk is back"
	}
	return "", ""
}
