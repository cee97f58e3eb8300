package cli

import (
	"io"

	"aldis/internal/link/profile"
)

// Command runs a command with its arguments, and returns the exit code.
type Command func(args []string, stdout, stderr io.Writer) int

// entry is a command of the list. Help, man pages and completions are made from it and from the command's answer to -h.
type entry struct {
	name    string   // a subcommand has two words
	summary string   // a phrase
	words   []string // words that may follow the name
	files   bool     // file names may follow
	lab     bool     // the second program has it
}

// group is commands for one purpose.
type group struct {
	title   string
	entries []entry
}

// groups are all commands of both programs that an operator types.
func groups() []group {
	return []group{
		{"A gateway", []entry{
			{name: "init", summary: "write a first configuration, and the network's key"},
			{name: "run", summary: "run the gateway"},
			{name: "check", summary: "read a configuration and report every mistake", files: true},
			{name: "keys", summary: "make keys, rosters and certificates, or show fingerprints",
				words: []string{"new", "show", "node", "authority", "roster", "rollover", "destroy", "tak"}, files: true},
			{name: "doctor", summary: "look at this machine and the gateway on it: what is wrong, and the way out"},
			{name: "status", summary: "show peers, queues and octets of the gateway on this machine"},
			{name: "top", summary: "show all that live in the terminal; a browser shows it at http.listen"},
			{name: "messages", summary: "find messages: where they are, and when they will be there"},
			{name: "message", summary: "show the life of one; hold, release, cancel or raise it", words: []string{"hold", "release", "cancel", "raise"}},
			{name: "bill", summary: "show what a month's traffic was, by site and tariff"},
			{name: "adverts", summary: "list its advertisements, and why one does not travel"},
			{name: "peer", summary: "list the far gateways, or forget what is known of one's starts", words: []string{"list", "forget"}},
			{name: "fleet", summary: "show what the gateways of the fleet say of themselves"},
			{name: "group", summary: "list the groups that it is in, join or leave one", words: []string{"list", "join", "leave"}},
			{name: "probe", summary: "measure the link to a far gateway, and write its profile"},
			{name: "link", summary: "say for a modem whether it is up, its rate and its queue", words: []string{"up", "down", "rate", "queue", "free"}},
			{name: "silence", summary: "transmit nothing (EMCON), or end that", words: []string{"on", "off", "status"}},
			{name: "reload", summary: "have the gateway read its configuration again"},
			{name: "drain", summary: "take no more messages and send what waits, before a stop"},
			{name: "site", summary: "two gateways at a site: show which leads, have this one lead or retire, or be the witness", words: []string{"status", "lead", "retire", "witness"}},
			{name: "backup", summary: "copy the journal while the gateway runs", files: true},
			{name: "restore", summary: "put such a copy in the place of the journal", files: true},
			{name: "journal", summary: "check, repair or export the journal of a gateway that does not run",
				words: []string{"check", "stats", "export", "repair", "new"}},
			{name: "audit", summary: "show who ordered what, and check that nobody changed the record", words: []string{"show", "verify"}},
			{name: "xmpp", summary: "change the users whom the gateway serves as XMPP server", words: []string{"user"}},
			{name: "profiles", summary: "list the links that have a name", words: profile.Names()},
		}},
		{"Traffic", []entry{
			{name: "analyse", summary: "show what JXTA cost in a capture", files: true, lab: true},
			{name: "record", summary: "make a trace from a capture: what the applications did", files: true, lab: true},
			{name: "synth", summary: "make a trace of a run of the Blue Game of 2004", words: []string{"blue-game"}, lab: true},
			{name: "replay", summary: "play a trace through gateways: what it would cost on which link", files: true, lab: true},
			{name: "rehearse", summary: "judge a trace on a link: in time or not, and what it costs", lab: true},
			{name: "tune", summary: "search a profile for better settings for your traces", lab: true},
			{name: "compact", summary: "show how small a file becomes on the link", files: true},
			{name: "corpus", summary: "teach the gateways of a network its own formats", words: []string{"build", "show", "send", "list", "save", "accept", "forget"}, files: true},
		}},
		{"Other", []entry{
			{name: "pmul", summary: "send and receive files by plain P_Mul (ACP 142)", lab: true},
			{name: "pmul send", summary: "send a file and report what became of it at each recipient", files: true, lab: true},
			{name: "pmul receive", summary: "write the files for this node into a directory", lab: true},
			{name: "air", summary: "measure how full links get, in virtual time", lab: true},
			{name: "bench", summary: "compare this gateway with JXSE 2.7", lab: true},
			{name: "lab", summary: "play gateways, peers and a link on this machine", lab: true},
			{name: "lab blue-game", summary: "play HQ and ships on a satellite link, as in the exercise of 2004", lab: true},
			{name: "lab hf-net", summary: "play HQ and ships on one half-duplex HF channel, some of them silent for the first part", lab: true},
			{name: "lab fleet", summary: "play sites with several bearers, and accidents, from a script", files: true, lab: true},
			{name: "lab site", summary: "play HQ and a ship of several gateways each, whose machines lose their power and are upgraded", lab: true},
			{name: "manual", summary: "write the man pages, or the completion of a shell", words: []string{"man", "bash", "zsh", "fish"}},
			{name: "version", summary: "print the version"},
		}},
	}
}
