// Command gateway is the Aldis daemon and what an operator does with it.
//
// # Files
//
//   - air.go: `air`: how full a link gets
//   - adverts.go: `adverts`: the advertisements that a running gateway has
//   - analyse.go: `analyse`: figures of captures
//   - bench.go: `bench`: load on a running gateway
//   - check.go: `check`: a configuration and what it means
//   - compact.go: `compact`: how small documents become
//   - corpus.go: `corpus`: documents of the compression model
//   - desk.go: how commands speak to a running gateway
//   - example.go: what the rules make of an example message
//   - fit.go: gateway tune --fit
//   - gone.go: the journal taken away while the gateway runs
//   - init.go: `init`: a first configuration
//   - journal.go: `journal`: a journal checked, repaired, exported
//   - keep.go: the keeper: holds the LAN's sockets while gateways come and go
//   - keys.go: `keys`: key files
//   - lastrun.go: how long ago the last run began, whatever the wall clock says
//   - log.go: the log, with a limit on repeats
//   - main.go: the list of commands, exit codes
//   - message.go: `message`: one message, and orders about it
//   - messages.go: `messages`: where messages are
//   - peer.go: `peer`: the far gateways, and what is known of them
//   - plays.go: several plays at once
//   - pmul.go: `pmul`: files by plain ACP 142
//   - profiles.go: `profiles`: the link profiles
//   - record.go: `record`: a trace from a capture
//   - rehearse.go: `rehearse`: a verdict before the mission
//   - reload.go: `reload`: the configuration read again
//   - replay.go: `replay`: a trace played again
//   - run.go: `run`: joins the rooms of a gateway
//   - show.go: figures as JSON, text or a page
//   - silence.go: `silence`: radio silence on and off
//   - sockets.go: listening sockets, own or inherited
//   - spared.go: records of the journal that a start goes on without
//   - status.go: `status`: a running gateway's state
//   - synth.go: `synth`: traces of published runs
//   - top.go: `top`: a running gateway in a terminal, live
//   - tune.go: `tune`: better values of a profile
//   - version.go: `version`: the release and its commit
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"aldis/internal/lab/field"
	"aldis/internal/norm"
)

// Exit codes.
const (
	exitGood    = 0
	exitRefused = 1
	exitUsage   = 2
)

// defaultConfig is where the configuration is when nobody says otherwise.
const defaultConfig = "/etc/aldis/gateway.toml"

const usage = `usage: gateway COMMAND [flags]

Connects JXTA peers of two or more sites over a narrow link.

  init      write a first configuration, and the net's key
  run       run the gateway
  check     read a configuration and report every mistake
  keys new  make the key of a net
  status    show peers, queues and octets of the gateway on this machine
  messages  find messages: where they are, and when they will be there
  message   show the life of one; hold, release, withdraw or raise it
  top       show all that live in the terminal; a browser shows it at http.listen
  adverts   list its advertisements, and why one does not travel
  peer      list the far gateways, or forget what is known of one's starts
  silence   transmit nothing (EMCON), or end that
  reload    have the gateway read its configuration again
  journal   check, repair or export the journal of a gateway that does not run
  profiles  list the links that have a name

  analyse   show what JXTA cost in a capture
  record    make a trace from a capture: what the applications did
  synth     make a trace of a run of the Blue Game of 2004
  replay    play a trace through gateways: what it would cost on which link
  rehearse  judge a trace on a link: in time or not, and what it costs
  tune      search a profile for better settings for your traces
  compact   show how small a file becomes on the link
  corpus    rebuild and check the model that compact uses

  pmul      send and receive files by plain P_Mul (ACP 142)
  air       measure how full links get, in virtual time
  bench     compare this gateway with JXSE 2.7
  lab       play gateways, peers and a link on this machine
  version   print the version

gateway COMMAND -h says more. Exit: 0 good, 1 refused or failed, 2 wrong usage.
`

type command func(args []string, stdout, stderr io.Writer) int

var commands = map[string]command{
	"air":      airCommand,
	"bench":    benchCommand,
	"record":   recordCommand,
	"reload":   reloadCommand,
	"run":      runCommand,
	"analyse":  analyseCommand,
	"check":    checkCommand,
	"init":     initCommand,
	"journal":  journalCommand,
	"keys":     keysCommand,
	"status":   statusCommand,
	"rehearse": rehearseCommand,
	"top":      topCommand,
	"tune":     tuneCommand,
	"replay":   replayCommand,
	"synth":    synthCommand,
	"silence":  silenceCommand,
	"adverts":  advertsCommand,
	"message":  messageCommand,
	"messages": messagesCommand,
	"peer":     peerCommand,
	"profiles": profilesCommand,
	"compact":  compactCommand,
	"corpus":   corpusCommand,
	"pmul":     pmulCommand,
	"lab":      field.Main,
	"version":  versionCommand,
	// The child that runs libnorm, started by run.
	"norm-child": func(args []string, _, _ io.Writer) int { return norm.ChildMain(args) },
}

func main() { os.Exit(dispatch(os.Args[1:], os.Stdout, os.Stderr)) }

func dispatch(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	switch args[0] {
	case "-h", "--help", "help":
		fmt.Fprint(stdout, usage)
		return exitGood
	}
	c := commands[args[0]]
	if c == nil {
		fmt.Fprintf(stderr, "gateway: there is no command %q\n\n%s", args[0], usage)
		return exitUsage
	}
	return c(args[1:], stdout, stderr)
}

// parse reads flags that stand before, between and behind the other arguments, of which there may be most. It
// returns these, and an exit code when the command is over.
func parse(fs *flag.FlagSet, args []string, most int, about string, stdout, stderr io.Writer) (rest []string, code int, done bool) {
	fs.SetOutput(io.Discard)
	help := func(w io.Writer) {
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
	for {
		err := fs.Parse(args)
		switch {
		case errors.Is(err, flag.ErrHelp):
			help(stdout)
			return nil, exitGood, true
		case err != nil:
			fmt.Fprintf(stderr, "gateway %s: %v\n\n", fs.Name(), err)
			help(stderr)
			return nil, exitUsage, true
		case fs.NArg() == 0:
			return rest, 0, false
		case len(rest) == most:
			fmt.Fprintf(stderr, "gateway %s: what is %q for?\n\n", fs.Name(), fs.Arg(0))
			help(stderr)
			return nil, exitUsage, true
		}
		rest = append(rest, fs.Arg(0))
		args = fs.Args()[1:]
	}
}

// fail says why a command was refused.
func fail(stderr io.Writer, name string, err error) int {
	fmt.Fprintf(stderr, "gateway %s: %v\n", name, err)
	return exitRefused
}
