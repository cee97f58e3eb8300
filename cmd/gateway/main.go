// Command gateway is the Aldis daemon and what an operator does with it.
//
// # Files
//
//   - air.go: `air`: how full a link gets
//   - adverts.go: `adverts`: the advertisements that a running gateway has
//   - analyse.go: `analyse`: figures of captures
//   - audit.go: `audit`: the record of orders, and what goes into it
//   - backup.go: `backup` and `restore`: a copy of the journal
//   - bench.go: `bench`: load on a running gateway
//   - bill.go: `bill`: the traffic of a month
//   - check.go: `check`: a configuration and what it means
//   - clear.go: datagrams of a capture in clear
//   - commands.go: the list of commands, and what each says of itself
//   - compact.go: `compact`: how small documents become
//   - corpus.go: `corpus`: documents of the compression model
//   - corpora.go: `corpus send`, `list`, `save`, `accept` and `forget`: what a net teaches its gateways, over the link
//   - corpusbuild.go: `corpus build` and `show`: what a net teaches its gateways
//   - desk.go: how commands speak to a running gateway
//   - destroy.go: `keys destroy`: keys and journal wiped
//   - doctor.go: `doctor`: what is wrong with a machine and its gateway
//   - drain.go: `drain`: before a stop
//   - example.go: what the rules make of an example message
//   - fit.go: gateway tune --fit
//   - gone.go: the journal taken away while the gateway runs
//   - init.go: `init`: a first configuration
//   - journal.go: `journal`: a journal checked, repaired, exported
//   - journald.go: the log as fields of systemd's journal
//   - keep.go: the keeper: holds the LAN's sockets while gateways come and go
//   - keys.go: `keys`: key files
//   - lastrun.go: how long ago the last run began, whatever the wall clock says
//   - log.go: the log, with a limit on repeats
//   - looks.go: what a running gateway is asked between two turns of its loop
//   - main.go: which command is called, exit codes
//   - manual.go: `manual`: man pages and completions
//   - meet.go: where faces meet, in `run` and `check`
//   - message.go: `message`: one message, and orders about it
//   - messages.go: `messages`: where messages are
//   - passphrase.go: the passphrase of an authority
//   - peer.go: `peer`: the far gateways, and what is known of them
//   - plain.go: text for a terminal
//   - plays.go: several plays at once
//   - pmul.go: `pmul`: files by plain ACP 142
//   - profiles.go: `profiles`: the link profiles
//   - query.go: `compact --query`: what files have at a place
//   - record.go: `record`: a trace from a capture
//   - rehearse.go: `rehearse`: a verdict before the mission
//   - reload.go: `reload`: the configuration read again
//   - replay.go: `replay`: a trace played again
//   - rights.go: what a running gateway may not do
//   - rollover.go: `keys rollover`: a newer roster for the gateway that runs here
//   - roster.go: `keys roster`: who belongs to a net
//   - run.go: `run`: joins the rooms of a gateway
//   - samples.go: messages of files, captures and traces
//   - secret.go: what seals the journal, from a file or the keyboard
//   - show.go: figures as JSON, text or a page
//   - silence.go: `silence`: radio silence on and off
//   - sockets.go: listening sockets, own or inherited
//   - spared.go: records of the journal that a start goes on without
//   - status.go: `status`: a running gateway's state
//   - survey.go: `survey`: the link measured between two running gateways
//   - synth.go: `synth`: traces of published runs
//   - tak.go: the TAK face of `run`
//   - takcosts.go: what the events of TAK devices in a capture would cost, for `analyse`
//   - takplays.go: traces of TAK devices, for `replay` and `rehearse`
//   - takexample.go: what becomes of a CoT event, for `check`
//   - top.go: `top`: a running gateway in a terminal, live
//   - tune.go: `tune`: better values of a profile
//   - unpack.go: captures that gzip, zstd or xz has packed
//   - version.go: `version`: the release and its commit
//   - whatif.go: a rehearsal in a process of its own, for the page
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"aldis/internal/config"
)

// Exit codes.
const (
	exitGood    = 0
	exitRefused = 1
	exitUsage   = 2
)

// defaultConfig is where the configuration is when nobody says otherwise.
const defaultConfig = "/etc/aldis/gateway.toml"

func main() { os.Exit(dispatch(os.Args[1:], os.Stdout, os.Stderr)) }

func dispatch(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, program().Help())
		return exitUsage
	}
	name, rest := args[0], args[1:]
	switch name {
	case "-h", "--help", "help":
		if len(rest) == 0 {
			fmt.Fprint(stdout, program().Help())
			return exitGood
		}
		name, rest = rest[0], append(slices.Clone(rest[1:]), "-h")
	case "-version", "--version":
		name = "version"
	}
	c := find(name)
	if c == nil {
		fmt.Fprintf(stderr, "gateway: there is no command %q%s\ngateway help lists the commands\n", name, config.Nearest(name, names()))
		return exitUsage
	}
	if _, asked := stdout.(*description); !asked && tells[name] && !slices.ContainsFunc(rest, func(a string) bool { return strings.TrimLeft(a, "-") == "json" }) {
		stdout = newPlain(stdout)
	}
	return c(rest, stdout, stderr)
}

// tells are the commands that print names and texts which others have chosen.
var tells = map[string]bool{"adverts": true, "bill": true, "check": true, "doctor": true, "drain": true, "journal": true, "message": true, "messages": true,
	"peer": true, "reload": true, "restore": true, "silence": true, "status": true}

// parse reads flags that stand before, between and behind the other arguments, of which there may be most. It
// returns these, and an exit code when the command is over. A description on stdout gets the flags instead.
func parse(fs *flag.FlagSet, args []string, most int, about string, stdout, stderr io.Writer) (rest []string, code int, done bool) {
	fs.SetOutput(io.Discard)
	if d, ok := stdout.(*description); ok {
		d.about, d.flags = about, fs
		return nil, exitGood, true
	}
	wrong := func(format string, args ...any) ([]string, int, bool) {
		usage, _, _ := strings.Cut(about, "\n\n")
		fmt.Fprintf(stderr, "gateway %s: "+format+"\n%s\ngateway %s -h says more\n", slices.Concat([]any{fs.Name()}, args, []any{usage, fs.Name()})...)
		return nil, exitUsage, true
	}
	for {
		err := fs.Parse(args)
		switch {
		case errors.Is(err, flag.ErrHelp):
			help(fs, about, stdout)
			return nil, exitGood, true
		case err != nil:
			return wrong("%v%s", err, meantFlag(fs, err))
		case fs.NArg() == 0:
			return rest, 0, false
		case len(rest) == most:
			return wrong("what is %q for?", fs.Arg(0))
		}
		rest = append(rest, fs.Arg(0))
		args = fs.Args()[1:]
	}
}

// help prints what a command is and takes.
func help(fs *flag.FlagSet, about string, w io.Writer) {
	fmt.Fprint(w, about)
	some := false
	fs.VisitAll(func(*flag.Flag) { some = true })
	if some {
		fmt.Fprint(w, "\nFlags:\n")
		fs.SetOutput(w)
		fs.PrintDefaults()
		fs.SetOutput(io.Discard)
	}
}

// meantFlag suggests the flag that was meant when err says that there is none of a name.
func meantFlag(fs *flag.FlagSet, err error) string {
	_, name, unknown := strings.Cut(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return ""
	}
	var names []string
	fs.VisitAll(func(f *flag.Flag) {
		if len(f.Name) > 1 {
			names = append(names, "--"+f.Name)
		}
	})
	return config.Nearest("--"+name, names)
}

// fail says why a command was refused.
func fail(stderr io.Writer, name string, err error) int {
	fmt.Fprintf(stderr, "gateway %s: %s\n", name, printable(err.Error()))
	return exitRefused
}
