// Command gateway is the Aldis daemon and the commands of its operators. The commands that stay ashore are in gateway-lab.
package main

import (
	"io"
	"maps"
	"os"

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

func main() { os.Exit(program().Dispatch(os.Args[1:], os.Stdout, os.Stderr)) }
