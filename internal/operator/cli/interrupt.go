package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// IfInterrupted calls undo if SIGINT or SIGTERM comes before the returned function is called, and raises the signal again: the
// program ends by it as it would have without undo, unless somebody else waits for the signal.
func IfInterrupted(undo func()) (over func()) {
	came, done, ended := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(ended)
		select {
		case s := <-came:
			undo()
			signal.Stop(came)
			syscall.Kill(os.Getpid(), s.(syscall.Signal))
		case <-done:
			signal.Stop(came)
		}
	}()
	return func() { close(done); <-ended }
}
