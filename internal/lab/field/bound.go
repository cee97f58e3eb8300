package field

import (
	"os/exec"
	"runtime"
	"syscall"
)

// StartBound starts a program that must not outlive this one, even when this one is killed; Ctrl-C does not reach it. done is closed when
// the program has ended and been waited for; ended then returns the result of Wait.
func StartBound(cmd *exec.Cmd) (done <-chan struct{}, ended func() error, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started, over := make(chan error), make(chan struct{})
	var result error // valid when over is closed
	go func() {
		// Pdeathsig follows the thread that made the process: keep it as long as the process lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			result = cmd.Wait()
			close(over)
		}
	}()
	if err := <-started; err != nil {
		return nil, nil, err
	}
	return over, func() error { <-over; return result }, nil
}
