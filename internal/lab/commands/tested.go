package commands

import (
	"fmt"
	"os"
	"path/filepath"

	"aldis/internal/operator/cli"
)

// IfCalled lets a test program be gateway-lab too: in a process that was started under that name it runs gateway-lab, and does not
// return.
func IfCalled() {
	if filepath.Base(os.Args[0]) == cli.LabName {
		os.Exit(Program().Dispatch(os.Args[1:], os.Stdout, os.Stderr))
	}
}

// WithLab runs tests (a *testing.M) that find this program as gateway-lab on the PATH, and returns their exit code.
func WithLab(m interface{ Run() int }) int {
	dir, err := onPath()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	return m.Run()
}

// onPath puts a directory with gateway-lab on the PATH.
func onPath() (dir string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", cli.LabName); err != nil {
		return "", err
	}
	os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return dir, os.Symlink(self, filepath.Join(dir, cli.LabName))
}
