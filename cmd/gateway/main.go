// Command gateway is the Aldis daemon and the commands of its operators. The commands that stay ashore are in gateway-lab.
package main

import (
	"io"
	"maps"
	"os"
	"runtime"

	"aldis/internal/edge/norm"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/commands"
	"aldis/internal/operator/node"
)

func program() cli.Program {
	commands := maps.Clone(operator.Commands)
	commands["run"] = node.Run
	commands["norm-child"] = func(args []string, _, _ io.Writer) int { // runs libnorm, started by run
		runtime.UnlockOSThread()
		return norm.ChildMain(args)
	}
	return cli.Program{Name: "gateway", Commands: commands}
}

// init gives the main goroutine the first thread. run and lab execute a program in the place of this one. If another thread does that, the
// kernel forgets that the process is to end with its parent (prctl(2), PR_SET_PDEATHSIG), and a killed keeper leaves its gateway behind.
// run gives the thread back in its second stage, and norm-child, which ends when its pipe does, at once.
func init() { runtime.LockOSThread() }

func main() { os.Exit(program().Dispatch(os.Args[1:], os.Stdout, os.Stderr)) }
