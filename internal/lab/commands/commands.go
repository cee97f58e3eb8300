package commands

import (
	"aldis/internal/lab/field"
	"aldis/internal/operator/cli"
)

// all are the commands by their names.
var all = map[string]cli.Command{
	"air":      airCommand,
	"analyse":  analyseCommand,
	"bench":    benchCommand,
	"corpus":   labCorpusCommand,
	"lab":      field.Main,
	"pmul":     pmulCommand,
	"record":   recordCommand,
	"rehearse": rehearseCommand,
	"replay":   replayCommand,
	"synth":    synthCommand,
	"tune":     tuneCommand,
}

// Program is gateway-lab.
func Program() cli.Program {
	return cli.Program{Name: cli.LabName, Commands: all, Inner: field.Describe}
}
