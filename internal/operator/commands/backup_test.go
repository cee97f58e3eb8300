package operator

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
)

// interrupting interrupts the program once it has been read from, and goes on when the program would have ended.
type interrupting struct {
	io.Reader
	came chan os.Signal
	read int
}

func (r *interrupting) Read(b []byte) (int, error) {
	if r.read++; r.read == 2 {
		syscall.Kill(os.Getpid(), syscall.SIGINT)
		<-r.came
		<-r.came // raised again
	}
	return r.Reader.Read(b[:1])
}

// Ctrl-C leaves no half copy that the next backup would not overwrite.
func TestBackupInterrupted(t *testing.T) {
	came := make(chan os.Signal, 2)
	signal.Notify(came, os.Interrupt) // so that the test goes on
	defer signal.Stop(came)
	path := filepath.Join(t.TempDir(), "copy")
	_, err := writeBackup(path, &interrupting{strings.NewReader("journal"), came, 0})
	check.True(t, "no copy", err != nil)
	_, err = os.Stat(path)
	check.True(t, "nothing is left", os.IsNotExist(err), err)
}
