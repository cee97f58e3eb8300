package cli

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/check"
)

// Ctrl-C while a passphrase is typed gives the terminal its echo back, and ends the program: the signal comes again.
func TestQuietTerminalInterrupted(t *testing.T) {
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	check.NoError(t, err)
	defer pty.Close()
	check.NoError(t, unix.IoctlSetPointerInt(int(pty.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(pty.Fd()), unix.TIOCGPTN)
	check.NoError(t, err)
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	check.NoError(t, err)
	defer tty.Close()
	echo := func() bool {
		is, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		check.NoError(t, err)
		return is.Lflag&unix.ECHO != 0
	}
	for _, interrupted := range []bool{false, true} {
		came := make(chan os.Signal, 2)
		signal.Notify(came, os.Interrupt) // so that the test goes on
		over := quiet(tty)
		check.True(t, "it shows nothing", !echo())
		if interrupted {
			syscall.Kill(os.Getpid(), syscall.SIGINT)
			<-came
			<-came // raised again, after the echo is back
			check.True(t, "the echo is back", echo())
		}
		over()
		signal.Stop(came)
		check.True(t, "the echo is back in the end", echo())
	}
}
