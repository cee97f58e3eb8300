package main

import (
	"bytes"
	"flag"
	"io"
	"strings"

	"aldis/internal/lab/field"
	"aldis/internal/link/profile"
	"aldis/internal/manual"
	"aldis/internal/norm"
)

type command func(args []string, stdout, stderr io.Writer) int

// entry is a command of the list. Help, man pages and completions are made of it and of what it says to -h.
type entry struct {
	name    string // one inside of another has two words, and no run
	summary string // a phrase
	run     command
	words   []string // what may stand behind the name
	files   bool     // file names may
}

// group is commands for one purpose.
type group struct {
	title   string
	entries []entry
}

// groups are all commands that an operator types.
func groups() []group {
	return []group{
		{"A gateway", []entry{
			{name: "init", summary: "write a first configuration, and the net's key", run: initCommand},
			{name: "run", summary: "run the gateway", run: runCommand},
			{name: "check", summary: "read a configuration and report every mistake", run: checkCommand, files: true},
			{name: "keys", summary: "make keys, rosters and certificates, or show fingerprints", run: keysCommand,
				words: []string{"new", "show", "node", "authority", "roster", "rollover", "destroy", "tak"}, files: true},
			{name: "doctor", summary: "look at this machine and the gateway on it: what is wrong, and the way out", run: doctorCommand},
			{name: "status", summary: "show peers, queues and octets of the gateway on this machine", run: statusCommand},
			{name: "top", summary: "show all that live in the terminal; a browser shows it at http.listen", run: topCommand},
			{name: "messages", summary: "find messages: where they are, and when they will be there", run: messagesCommand},
			{name: "message", summary: "show the life of one; hold, release, withdraw or raise it", run: messageCommand, words: []string{"hold", "release", "withdraw", "raise"}},
			{name: "bill", summary: "show what a month's traffic was, by site and tariff", run: billCommand},
			{name: "adverts", summary: "list its advertisements, and why one does not travel", run: advertsCommand},
			{name: "peer", summary: "list the far gateways, or forget what is known of one's starts", run: peerCommand, words: []string{"list", "forget"}},
			{name: "survey", summary: "measure the link to a far gateway, and write its profile", run: surveyCommand},
			{name: "silence", summary: "transmit nothing (EMCON), or end that", run: silenceCommand, words: []string{"on", "off", "status"}},
			{name: "reload", summary: "have the gateway read its configuration again", run: reloadCommand},
			{name: "drain", summary: "take no more messages and send what waits, before a stop", run: drainCommand},
			{name: "backup", summary: "copy the journal while the gateway runs", run: backupCommand, files: true},
			{name: "restore", summary: "put such a copy in the place of the journal", run: restoreCommand, files: true},
			{name: "journal", summary: "check, repair or export the journal of a gateway that does not run", run: journalCommand,
				words: []string{"check", "stats", "export", "repair", "new"}},
			{name: "audit", summary: "show who ordered what, and check that nobody changed the record", run: auditCommand, words: []string{"show", "verify"}},
			{name: "profiles", summary: "list the links that have a name", run: profilesCommand, words: profile.Names()},
		}},
		{"Traffic", []entry{
			{name: "analyse", summary: "show what JXTA cost in a capture", run: analyseCommand, files: true},
			{name: "record", summary: "make a trace from a capture: what the applications did", run: recordCommand, files: true},
			{name: "synth", summary: "make a trace of a run of the Blue Game of 2004", run: synthCommand, words: []string{"blue-game"}},
			{name: "replay", summary: "play a trace through gateways: what it would cost on which link", run: replayCommand, files: true},
			{name: "rehearse", summary: "judge a trace on a link: in time or not, and what it costs", run: rehearseCommand},
			{name: "tune", summary: "search a profile for better settings for your traces", run: tuneCommand},
			{name: "compact", summary: "show how small a file becomes on the link", run: compactCommand, files: true},
			{name: "corpus", summary: "teach the gateways of a net its own formats", run: corpusCommand, words: []string{"build", "show", "send", "list", "save", "accept", "forget"}, files: true},
		}},
		{"Other", []entry{
			{name: "pmul", summary: "send and receive files by plain P_Mul (ACP 142)", run: pmulCommand},
			{name: "pmul send", summary: "send a file and report what became of it at each recipient", files: true},
			{name: "pmul receive", summary: "write the files for this node into a directory"},
			{name: "air", summary: "measure how full links get, in virtual time", run: airCommand},
			{name: "bench", summary: "compare this gateway with JXSE 2.7", run: benchCommand},
			{name: "lab", summary: "play gateways, peers and a link on this machine", run: field.Main},
			{name: "lab blue-game", summary: "play HQ and ships on a satellite link, as in the exercise of 2004"},
			{name: "lab hf-net", summary: "play HQ and ships on one half-duplex HF channel, some of them silent for the first part"},
			{name: "manual", summary: "write the man pages, or the completion of a shell", run: manualCommand, words: []string{"man", "bash", "zsh", "fish"}},
			{name: "version", summary: "print the version", run: versionCommand},
		}},
	}
}

// names are the commands by themselves.
func names() (names []string) {
	for _, g := range groups() {
		for _, e := range g.entries {
			if e.run != nil {
				names = append(names, e.name)
			}
		}
	}
	return names
}

// find is the command of this name, nil when there is none.
func find(name string) command {
	if name == "norm-child" { // the child that runs libnorm, started by run
		return func(args []string, _, _ io.Writer) int { return norm.ChildMain(args) }
	}
	for _, g := range groups() {
		for _, e := range g.entries {
			if e.name == name {
				return e.run
			}
		}
	}
	return nil
}

// description is given to a command instead of standard output, and is told what the command takes.
type description struct {
	bytes.Buffer // the help of a command without flags
	about        string
	flags        *flag.FlagSet
}

// choices are values of flags that have names.
var choices = map[string][]string{"profile": profile.Names()}

// describe asks a command what it takes.
func describe(e entry) manual.Command {
	var d description
	if about, flags := field.Describe(e.name); flags != nil {
		d.about, d.flags = about, flags
	} else {
		dispatch(append([]string{"help"}, strings.Fields(e.name)...), &d, io.Discard)
	}
	c := manual.Command{Name: e.name, Summary: e.summary, About: d.about, Words: e.words, Files: e.files}
	if d.flags != nil {
		c.Flags = manual.FlagsOf(d.flags, choices)
	} else {
		c.About = d.String()
	}
	return c
}
