package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// LabName is the name of the second program. It has the commands that stay ashore: analyses, traces, replays, field trials.
const LabName = "gateway-lab"

// ErrNoLab says that the second program is not on this machine, and which package has it.
var ErrNoLab = errors.New("this needs the program gateway-lab, which is not installed: install the package aldis-gateway-lab")

// Beside finds a program of this name in the directory of the running program, or on the PATH.
func Beside(name string) (path string, err error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(name)
}

// Lab finds the second program. The error is ErrNoLab.
func Lab() (path string, err error) {
	path, err = Beside(LabName)
	if err != nil {
		return "", ErrNoLab
	}
	return path, nil
}

// RunLab replaces this process with the second program, which runs a command. It returns, with an exit code, only if that is
// impossible.
func RunLab(name string, args []string, stderr io.Writer) int {
	path, err := Lab()
	if err != nil {
		Fail(stderr, name, err)
		return ExitUsage
	}
	return Fail(stderr, name, syscall.Exec(path, append([]string{path, name}, args...), os.Environ()))
}
