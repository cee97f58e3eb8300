// Command gateway-lab is the laboratory: analyses, traces, replays, rehearsals, field trials. `gateway` runs it for a user who types
// one of its commands.
package main

import (
	"os"

	"aldis/internal/lab/commands"
)

func main() { os.Exit(commands.Program().Dispatch(os.Args[1:], os.Stdout, os.Stderr)) }
