package field

import (
	"fmt"
	"os/exec"
	"runtime"
)

// squeeze keeps the machine busy with one endless loop for each processor, until stop is called or this program ends.
func squeeze() (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	for range runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		done, _, err := StartBound(cmd)
		if err != nil {
			stop()
			return nil, fmt.Errorf("lab: busy loop: %w", err)
		}
		stops = append(stops, func() {
			_ = cmd.Process.Kill() // it may have exited already
			<-done
		})
	}
	return stop, nil
}
