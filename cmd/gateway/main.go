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
	commands["norm-child"] = func(args []string, _, _ io.Writer) int { return norm.ChildMain(args) } // runs libnorm, started by run
	return cli.Program{Name: "gateway", Commands: commands}
}

// run and lab execute a program in the place of this one. If another thread than the first does that, the kernel forgets that the process
// is to end with its parent (prctl(2), PR_SET_PDEATHSIG): a killed keeper would leave its gateway behind. So the main goroutine has the
// first thread to itself from here on; the gateway gives it back once it runs with few rights.
func init() { runtime.LockOSThread() }

func main() { os.Exit(program().Dispatch(os.Args[1:], os.Stdout, os.Stderr)) }
