package commands

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
)

// Ctrl-C leaves no part of a file, under no name.
func TestWriteInterrupted(t *testing.T) {
	came := make(chan os.Signal, 2)
	signal.Notify(came, os.Interrupt) // so that the test goes on
	defer signal.Stop(came)
	dir := t.TempDir()
	err := writeTo(filepath.Join(dir, "my.trace"), nil, func(w io.Writer) error {
		io.WriteString(w, "half")
		syscall.Kill(os.Getpid(), syscall.SIGINT)
		<-came
		<-came // raised again, when the program would have ended
		left, err := os.ReadDir(dir)
		check.NoError(t, err)
		check.Equal(t, "files that are left", len(left), 0)
		return nil
	})
	check.True(t, "no file", err != nil)
}
