package borders

import (
	"path"
	"slices"
	"strings"
)

// Kind says what a room's source may do.
type Kind string

const (
	Pure  Kind = "pure"  // a state machine or a codec: no clock, I/O, goroutine, lock or global random source
	Words Kind = "words" // types and data that other rooms share: as pure, and it decides nothing
	C     Kind = "C"     // C inside, but as deterministic as a pure room, which may import it
	Edge  Kind = "edge"  // sockets, files, clocks, goroutines
)

// Room is one package of the module.
type Room struct {
	Path     string // below internal/; for packages elsewhere, below the module's directory
	Kind     Kind
	District string   // one of Districts
	Adapter  bool     // it speaks with clients of one protocol; it and the rooms below it import no other adapter
	What     string   // one sentence for docs/house.md
	May      []string // the rooms that its source imports, as Path
}

// District is a group of rooms.
type District struct{ Name, What, Folder string }

// fixed are packages outside their district's folder, at paths that users and other programs use.
var fixed = []string{"advcache", "jxtabridge", "pmul", "profiles"}

// Districts are listed from the ground up: a room imports rooms of its own district and of earlier ones.
var Districts = []District{
	{"ground", "arithmetic that any package may use", "ground"},
	{"words", "types that adapters and the core share", "site"},
	{"JXTA", "the formats of JXTA peers", "jxta"},
	{"link", "what both ends of a link share", "link"},
	{"rules", "the operator's rules", "rules"},
	{"carriers", "protocols for long messages, and for several or silent receivers", "pmul"},
	{"adapters", "protocol adapters for local clients", "adapters"},
	{"core", "the gateway as one state machine", "gateway"},
	{"edges", "sockets, files, the clock, and the loop that joins them", "edge"},
	{"operator", "what runs and steers a gateway", "operator"},
	{"lab", "tools for tests and analysis, which no gateway runs", "lab"},
	{"programs", "commands, field tests and checks", ""},
}

// Rooms is the map. Check fails if the source disagrees with it.
var Rooms = []Room{
	{"ground/due", Pure, "ground", false, "Timers as values: picks the earlier of two times; a heap of deadlines.", nil},
	{"ground/share", Pure, "ground", false, "Divides the air among sources by octets: which has used least of it.", nil},
	{"ground/when", Pure, "ground", false, "Reads times as people write them: 10:32, date-time groups, durations.", nil},

	{"site", Words, "words", false, "What adapters and core exchange: items, messages with the marks of rules, outcomes, orders to an adapter, notes.", nil},

	{"jxta", Pure, "JXTA", false, "IDs, addresses, binary messages, framing, XML documents: Append and Parse.", []string{"site"}},
	{"advcache", Pure, "JXTA", false, "Keeps advertisements by group, type and ID, with lifetimes, and answers queries.", []string{"ground/due", "jxta"}},

	{"profiles", Words, "link", false, "One data file per link type, embedded in the binary.", nil},
	{"link/profile", Pure, "link", false, "Link profiles: what a link does to packets and how a gateway uses it.", []string{"profiles"}},
	{"link/seal", C, "link", false, "Encrypts and authenticates datagrams with libsodium; counters, incarnations, replay window.", nil},
	{"link/roster", Pure, "link", false, "The members of a network: ids, names, public keys, signed by an authority.", []string{"link/seal"}},
	{"link/frame", Pure, "link", false, "Reads and writes the frames inside a sealed datagram.", nil},
	{"link/probe", Pure, "link", false, "The messages by which two gateways measure their link, within a budget of octets.", []string{"ground/due", "link/profile"}},
	{"link/custody", Pure, "link", false, "Delivers every message exactly once: numbers, acknowledgements, window, loss detection, probes.", []string{"link/frame"}},
	{"link/segment", Pure, "link", false, "Cuts long messages into segments that fill datagrams, and joins them again.", []string{"link/frame"}},
	{"link/compact", Pure, "link", false, "Compresses documents and messages with tokens, a primed model and earlier messages of the flow.", []string{"jxta"}},
	{"link/envelope", Pure, "link", false, "The content of one message on the link. It alone imports Protocol Buffers.", []string{"link/compact", "site"}},
	{"link/replica", Pure, "link", false, "What each peer gateway holds of this site's state, and which changes to send.", []string{"ground/due", "link/envelope", "site"}},

	{"rules/query", Pure, "rules", false, "Looks into the content of messages: elements of XML, values of JSON, text.", nil},
	{"rules/filter", Pure, "rules", false, "Decides which items and messages may cross the link, and how often.", []string{"rules/query", "site"}},
	{"rules/mark", Pure, "rules", false, "Gives a message its precedence, its lifetime and its last-value key.", []string{"rules/filter", "rules/query", "site"}},
	{"rules/route", Pure, "rules", false, "Says by which links a message may go to a site, and how soon it should be there.", []string{"site"}},
	{"rules/calendar", Pure, "rules", false, "Windows of silence: at which hours and dates nothing is transmitted.", []string{"ground/when"}},

	{"pmul", Pure, "carriers", false, "P_Mul (ACP 142): PDUs, sender, receiver, silent receivers (EMCON).", []string{"ground/due", "ground/share", "link/profile"}},

	{"link/hearing", Pure, "link", false, "Who hears whom on each channel, by greetings; who speaks first for others.", nil},
	{"link/entropy", Pure, "link", false, "Open messages of groups: sent once over each channel, then repaired by whoever has them.", []string{"ground/due", "link/hearing"}},
	{"link/direct", Pure, "link", false, "With which peers direct sessions are kept, where messages otherwise take a relay: priority, limit, greylist.", []string{"ground/due"}},
	{"link/rollup", Pure, "link", false, "What gateways of a fleet say of themselves, summed along a tree to the headquarters.", nil},
	{"link/elide", Pure, "link", false, "Shortens NORM packets for the link and restores them; builds the FLUSH.", nil},

	{"jxtabridge", Pure, "adapters", true, "Serves JXTA peers: rendezvous, relay, discovery, pipes; represents the peers of other sites.", []string{
		"advcache", "ground/due", "jxta", "jxtabridge/reliable", "rules/filter", "site"}},
	{"jxtabridge/reliable", Pure, "adapters", false, "One window for streams and secure pipes: blocks, acknowledgements, repeats.", []string{"ground/due"}},
	{"jxtabridge/peertest", Edge, "adapters", false, "Contains only tests: two joined bridges with unmodified JXTA peers.", nil},
	{"adapters/files", Pure, "adapters", false, "Carries files between sites on demand, for adapters that offer them.", []string{"site"}},
	{"adapters/tak", Pure, "adapters", true, "Serves TAK devices: the TAK server of its LAN; shows the units of other sites.", []string{
		"adapters/files", "adapters/tak/code", "adapters/tak/cot", "adapters/tak/rule", "adapters/tak/track", "ground/due", "site"}},
	{"adapters/tak/cot", Pure, "adapters", false, "CoT events: as XML, in version 1 of the TAK protocol, and as a stream of either form.", nil},
	{"adapters/tak/code", Pure, "adapters", false, "CoT events and positions of units as typed records for the link.", []string{"adapters/tak/cot"}},
	{"adapters/tak/rule", Pure, "adapters", false, "Which CoT events cross, how precisely positions are sent, and what goes first.", []string{"adapters/tak/cot", "rules/filter", "site"}},
	{"adapters/tak/track", Pure, "adapters", false, "Keeps the units of this and other sites, and decides when another site shows a unit too far from its true position.", []string{"adapters/tak/code", "adapters/tak/cot", "ground/due"}},
	{"adapters/xmpp", Pure, "adapters", true, "Serves XMPP clients: a component of the LAN's own server for the users of other sites, or the server itself.", []string{
		"adapters/files", "adapters/xmpp/code", "adapters/xmpp/rule", "adapters/xmpp/server", "adapters/xmpp/stanza", "ground/due", "site"}},
	{"adapters/xmpp/server", Pure, "adapters", false, "The XMPP server of a LAN that has no other: logins, rosters, presence, messages, archive, resumption.", []string{
		"adapters/xmpp/stanza", "ground/due", "site"}},
	{"adapters/xmpp/stanza", Pure, "adapters", false, "XMPP streams and stanzas: reads them within bounds, and writes them.", nil},
	{"adapters/xmpp/code", Pure, "adapters", false, "Messages, outcomes, presence and items of nodes of XMPP as typed records for the link.", []string{"adapters/xmpp/stanza"}},
	{"adapters/xmpp/rule", Pure, "adapters", false, "What of XMPP crosses, and what goes first.", []string{"rules/filter", "site"}},
	{"adapters/corpusexchange", Pure, "adapters", true, "Exchanges corpora with other gateways; the operator decides which is used.", []string{"link/compact", "site"}},
	{"adapters/interop", Pure, "adapters", false, "Passes positions and chat between the adapters of one gateway, by rule.", []string{
		"adapters/tak", "adapters/tak/code", "adapters/tak/cot", "adapters/tak/rule", "adapters/xmpp", "ground/due", "jxta",
		"jxtabridge", "rules/filter", "rules/query", "site"}},

	{"gateway/api", Words, "core", false, "What the gateway and the edges tell each other: events, outputs, records of the journal, rows of status.", []string{"link/probe", "rules/filter", "site"}},
	{"gateway/pair", Pure, "core", false, "Decides which of two machines of a site leads: epochs, votes, the lease, the witness.", nil},
	{"gateway/quorum", Pure, "core", false, "Decides which of three and more machines of a site leads, and which records a majority has: raft, with a lease.", []string{"gateway/pair"}},
	{"gateway/mail/history", Pure, "core", false, "The history of each message of this site.", []string{"site"}},
	{"gateway/mail", Pure, "core", false, "Custody: holds every message until the message has an outcome for each recipient.", []string{
		"gateway/api", "gateway/mail/history", "ground/due", "ground/share", "link/compact", "link/custody", "link/envelope", "link/frame",
		"link/profile", "link/replica", "link/seal", "site"}},
	{"gateway/unicast", Pure, "core", false, "The carrier of datagrams to each peer: HELLOs, acknowledgements, the direct queue, NORM.", []string{
		"gateway/api", "gateway/mail", "ground/due", "link/compact", "link/custody", "link/elide", "link/envelope", "link/frame",
		"link/profile", "link/seal", "link/segment", "site"}},
	{"gateway/group", Pure, "core", false, "The carrier of messages to several peers at once: P_Mul.", []string{
		"gateway/api", "gateway/mail", "gateway/mail/history", "ground/due", "link/compact", "link/envelope", "link/frame",
		"link/profile", "link/seal", "pmul", "site"}},
	{"gateway/relay", Pure, "core", false, "The carrier of messages that other gateways pass on: sealed from end to end, in sets of recipients.", []string{
		"gateway/api", "gateway/mail", "ground/due", "link/compact", "link/envelope", "link/frame", "link/seal", "site"}},
	{"gateway/carriage", Pure, "core", false, "Makes the carriers of a bearer from the bearer's profile; no other package of the gateway names a particular carrier.", []string{
		"gateway/api", "gateway/group", "gateway/mail", "gateway/relay", "gateway/unicast", "link/custody", "link/frame", "link/profile", "site"}},
	{"gateway/keys", Pure, "core", false, "Decides which keys and rosters a node uses, and which datagrams it accepts.", []string{
		"gateway/api", "gateway/mail", "ground/due", "link/frame", "link/roster", "link/seal"}},
	{"gateway/forecast", Pure, "core", false, "Tells operators where messages and advertisements are, and when they will arrive.", []string{
		"gateway/api", "gateway/mail", "gateway/mail/history", "link/frame", "link/profile", "link/replica", "rules/filter",
		"site"}},
	{"gateway", Pure, "core", false, "Takes a message its whole way in one Step: adapters, rules, replication, bearers.", []string{
		"gateway/api", "gateway/carriage", "gateway/forecast", "gateway/keys", "gateway/mail", "gateway/mail/history", "gateway/relay",
		"ground/due", "link/compact", "link/custody", "link/direct", "link/entropy", "link/envelope", "link/frame", "link/hearing", "link/probe", "link/profile",
		"link/replica", "link/rollup", "link/roster", "link/seal", "rules/calendar", "rules/filter", "rules/mark", "rules/route", "site"}},

	{"edge/lan", Edge, "edges", false, "TCP, HTTP and multicast sockets towards JXTA peers, with deadlines and bounds.", []string{"ground/due", "jxta", "jxtabridge", "site"}},
	{"edge/lan/taklan", Edge, "edges", false, "Sockets towards TAK devices: streams and the multicast mesh, with bounds.", []string{"adapters/tak", "adapters/tak/cot", "edge/lan", "ground/due", "site"}},
	{"edge/lan/fileroom", Edge, "edges", false, "Stores files and serves them over HTTP: data packages to TAK devices, uploads (XEP-0363) to XMPP clients.", []string{"adapters/files", "edge/atrest", "site"}},
	{"edge/lan/xmpplan", Edge, "edges", false, "Connections to the XMPP server of the LAN, or of its clients, with bounds.", []string{
		"adapters/xmpp", "adapters/xmpp/server", "adapters/xmpp/stanza", "edge/infile", "edge/keyfile", "site"}},
	{"edge/radio", Edge, "edges", false, "The UDP sockets on the link.", []string{"gateway/api"}},
	{"edge/modem", Edge, "edges", false, "The sockets on which modems say what they are doing.", []string{"gateway/api", "ground/due"}},
	{"edge/tlslink", Edge, "edges", false, "The TLS connections of a bearer without UDP.", []string{"edge/radio", "gateway/api", "ground/due"}},
	{"edge/pairlink", Edge, "edges", false, "Joins the gateways of a site, two or more: their journals follow the leader's; the witness.", []string{
		"edge/atrest", "edge/infile", "edge/journal", "edge/tlslink", "gateway/pair", "gateway/quorum", "ground/due"}},
	{"edge/infile", Edge, "edges", false, "Reads files that an operator has named; accepts regular files only.", nil},
	{"edge/journal", Edge, "edges", false, "Durable keys and values with checksums in one bbolt file: commits, check at the start, repair.", []string{
		"edge/atrest", "edge/infile", "edge/journal/pages"}},
	{"edge/journal/pages", Pure, "edges", false, "Reads the pages of a bbolt file without trusting them.", nil},
	{"edge/atrest", Edge, "edges", false, "Encrypts files with a key that is not on their disk; overwrites the unencrypted files.", nil},
	{"edge/rights/calls", Edge, "edges", false, "Makes filters of system calls from rules.", nil},
	{"edge/rights", Edge, "edges", false, "Drops rights that the gateway's process does not need: files, system calls, core dumps.", []string{"edge/rights/calls"}},
	{"edge/norm/cell", Edge, "edges", false, "Confines a process: namespaces, no capabilities, a short list of system calls.", []string{"edge/rights/calls"}},
	{"edge/norm", Edge, "edges", false, "Runs libnorm in a confined child process, behind loopback addresses.", []string{"edge/norm/cell", "gateway/api", "link/elide"}},
	{"edge/keyfile", Edge, "edges", false, "Reads, makes and destroys the files that hold keys, tokens and certificates.", []string{"adapters/xmpp/server", "edge/atrest", "edge/infile", "link/roster", "link/seal"}},
	{"edge/config", Edge, "edges", false, "Reads the configuration by one table of keys, and reports every mistake at once.", []string{
		"adapters/interop", "adapters/tak/cot", "adapters/tak/rule", "adapters/xmpp/rule", "adapters/xmpp/server", "edge/infile", "edge/keyfile", "jxta", "jxtabridge", "link/compact",
		"link/entropy", "link/profile", "link/roster", "link/seal", "rules/calendar", "rules/filter", "rules/mark", "rules/query", "rules/route", "site"}},
	{"edge/daemon", Edge, "edges", false, "The loop: clock, inboxes, commit before send, behaviour on a full disk.", []string{"gateway/api", "site"}},
	{"edge/audit", Edge, "edges", false, "The record of orders and refusals, chained by hashes.", []string{"edge/atrest", "edge/infile"}},

	{"operator/logbook", Pure, "operator", false, "Names the key and the meaning of every line of the log, as docs/log.md shows them.", nil},
	{"operator/manual", Pure, "operator", false, "Help, man pages and shell completions from one description of the commands.", nil},
	{"operator/control/glance", Pure, "operator", false, "Condenses the status for the page and `gateway top`: alarms, waiting messages, use of the link.", []string{"gateway/api", "gateway/pair", "site"}},
	{"operator/control/page", Edge, "operator", false, "The page in a browser: one static bundle in the binary.", nil},
	{"operator/control", Edge, "operator", false, "HTTP for the operator: status, metrics, health, the page and its events, and orders.", []string{
		"adapters/corpusexchange", "edge/audit", "edge/norm", "edge/radio", "edge/rights", "gateway", "gateway/api", "gateway/forecast",
		"gateway/mail/history", "ground/when", "jxtabridge", "link/compact", "link/entropy", "link/probe", "link/roster", "gateway/pair",
		"operator/control/glance", "operator/control/page", "rules/filter", "site"}},
	{"operator/control/spans", Edge, "operator", false, "Sends outcomes of messages to an OpenTelemetry collector.", []string{"gateway/api"}},
	{"operator/control/top", Edge, "operator", false, "The page's views Now and Messages in a terminal.", []string{"gateway/api", "operator/control", "operator/control/glance"}},
	{"operator/doctor", Edge, "operator", false, "`gateway doctor`: finds faults of a machine and its gateway, with remedies.", []string{
		"edge/config", "edge/radio", "edge/rights", "gateway/api", "link/profile", "operator/control"}},

	{"lab/pmulfile", Edge, "lab", false, "Transfers files by plain ACP 142 over UDP multicast.", []string{"edge/journal", "link/profile", "pmul"}},

	{"operator/cli", Edge, "operator", false, "What the commands of both programs share: list, help, manual, and the start of the second program.", []string{
		"edge/config", "edge/infile", "link/compact", "link/profile", "operator/control/glance", "operator/manual"}},
	{"operator/node", Edge, "operator", false, "`gateway run`: joins the rooms of a gateway, starts and stops them, and keeps its sockets.", []string{
		"adapters/corpusexchange", "adapters/files", "adapters/interop", "adapters/tak", "adapters/xmpp", "adapters/xmpp/server", "edge/atrest", "edge/audit", "edge/config", "edge/daemon",
		"edge/journal", "edge/keyfile", "edge/lan", "edge/lan/fileroom", "edge/lan/taklan", "edge/lan/xmpplan", "edge/modem", "edge/norm", "edge/pairlink", "edge/radio",
		"edge/rights", "edge/tlslink", "gateway", "gateway/api", "gateway/mail", "jxta", "jxtabridge", "link/compact", "link/elide",
		"link/profile", "link/roster", "link/seal", "operator/cli", "operator/control", "operator/control/glance", "operator/control/spans",
		"operator/logbook", "rules/filter", "site"}},
	{"operator/commands", Edge, "operator", false, "Commands that ask or steer a running gateway, or work on its files.", []string{
		"adapters/corpusexchange", "adapters/interop", "adapters/tak/code", "adapters/tak/cot", "adapters/tak/rule",
		"adapters/xmpp", "adapters/xmpp/rule", "adapters/xmpp/server", "adapters/xmpp/stanza",
		"edge/atrest", "edge/audit", "edge/config", "edge/infile", "edge/journal", "edge/journal/pages", "edge/keyfile",
		"edge/rights", "gateway", "gateway/api", "gateway/pair", "ground/when", "jxta", "jxtabridge", "link/compact", "link/probe",
		"link/profile", "link/roster", "link/seal", "operator/cli", "operator/control", "operator/control/glance",
		"operator/control/top", "operator/doctor", "operator/node", "rules/filter", "rules/mark", "rules/query", "rules/route", "site"}},

	{"lab/browser", Edge, "lab", false, "A real browser without a window, for tests of pages.", nil},
	{"lab/baddisk", Edge, "lab", false, "A block device with a file system whose sectors fail when a test says so.", nil},
	{"lab/check", Edge, "lab", false, "Assertions of tests, one to a line.", nil},
	{"lab/shapes", Pure, "lab", false, "Draws from a seed messages of invented applications, and their times.", nil},
	{"lab/primer", Pure, "lab", false, "Generates the corpus of the compression model.", nil},
	{"lab/teach", Pure, "lab", false, "Makes a network's own corpus from samples, and measures its gain.", []string{"link/compact"}},
	{"lab/packed", Edge, "lab", false, "Reads files that gzip, zstd or xz has packed, within a bound of memory.", nil},
	{"lab/linkemu", Pure, "lab", false, "A link as arithmetic: rate, delay, loss, queues, half-duplex turns, outages. It also fits a profile to packets seen at both ends.", []string{
		"ground/due", "link/probe", "link/profile"}},
	{"lab/sim", Pure, "lab", false, "Runs whole gateways over emulated links in virtual time.", []string{
		"gateway", "gateway/api", "jxtabridge", "lab/linkemu", "link/compact", "link/elide", "link/profile", "link/roster", "link/seal", "site"}},
	{"lab/carriernet", Pure, "lab", false, "Carriers and custody over an emulated link in virtual time, without a gateway around them.", []string{
		"gateway/api", "gateway/carriage", "gateway/mail", "ground/due", "lab/linkemu", "link/compact", "link/elide",
		"link/envelope", "link/frame", "link/profile", "link/replica", "link/seal", "site"}},
	{"lab/toyface", Pure, "lab", true, "A second adapter, invented for tests: a bulletin board.", []string{"site"}},
	{"lab/edgepeer", Pure, "lab", false, "A minimal JXTA edge peer for tests, replays and benchmarks.", []string{"jxta"}},
	{"lab/edgepeer/tcp", Edge, "lab", false, "Edge peers on TCP sockets.", []string{"jxta", "lab/edgepeer"}},
	{"lab/xmpppeer", Edge, "lab", false, "A minimal XMPP client for tests: logs in to the gateway over TLS.", nil},
	{"lab/trace", Pure, "lab", false, "Analyses captures, and reads and writes trace files.", []string{
		"adapters/tak/cot", "adapters/xmpp/stanza", "ground/due", "jxta", "lab/linkemu", "link/compact", "link/elide", "link/envelope", "link/frame",
		"link/profile", "link/seal", "link/segment", "pmul", "site"}},
	{"lab/replay", Pure, "lab", false, "Plays a trace through whole gateways, judges plays (`rehearse`), and searches a profile for better values (`tune`).", []string{
		"adapters/tak", "adapters/tak/cot", "adapters/xmpp", "adapters/xmpp/stanza", "gateway", "gateway/api", "gateway/mail/history", "jxta", "jxtabridge",
		"lab/edgepeer", "lab/linkemu", "lab/sim", "lab/trace", "link/compact", "link/profile", "rules/filter", "rules/mark", "rules/route", "site"}},
	{"lab/air", Pure, "lab", false, "`gateway air`: how full a link gets as traffic grows.", []string{"gateway", "gateway/api", "jxtabridge", "lab/linkemu", "lab/sim", "link/compact", "link/envelope", "link/profile", "link/roster", "link/seal", "rules/mark", "site"}},
	{"lab/fleet", Pure, "lab", false, "Scripts of fleets with several bearers and accidents, and the end of each message.", []string{"link/entropy", "link/profile"}},
	{"lab/report", Pure, "lab", false, "Writes figures as one HTML file or as text.", []string{"lab/air", "lab/fleet", "lab/replay", "lab/trace"}},
	{"lab/field", Edge, "lab", false, "Field trials on one machine: network namespaces, the emulator, real gateways, unmodified JXTA peers, TAK devices, XMPP servers.", []string{
		"adapters/tak/cot", "edge/infile", "edge/keyfile", "gateway/api", "jxta", "lab/air", "lab/baddisk", "lab/edgepeer", "lab/edgepeer/tcp",
		"lab/fleet", "lab/linkemu", "lab/replay", "lab/report", "lab/shapes", "lab/trace", "link/compact", "link/profile", "operator/cli"}},
	{"lab/field/gametest", Edge, "lab", false, "Contains only tests: whole Blue Games in the field trial.", nil},
	{"lab/bench", Edge, "lab", false, "`gateway bench`: the load of published experiments on a running gateway and on JXSE 2.7.", []string{
		"adapters/xmpp/stanza", "edge/daemon", "edge/keyfile", "edge/radio", "gateway", "gateway/api", "jxta", "jxtabridge", "lab/air", "lab/check", "lab/edgepeer",
		"lab/edgepeer/tcp", "lab/field", "lab/replay", "lab/report", "lab/trace", "link/profile", "link/seal", "site"}},
	{"lab/commands", Edge, "lab", false, "Commands of gateway-lab.", []string{
		"edge/config", "edge/infile", "edge/keyfile", "lab/air", "lab/bench", "lab/field", "lab/linkemu", "lab/packed",
		"lab/pmulfile", "lab/primer", "lab/replay", "lab/report", "lab/sim", "lab/teach", "lab/trace", "link/compact", "link/profile",
		"link/roster", "operator/cli", "pmul"}},

	{"borders", Edge, "programs", false, "Checks the rules of this page.", nil},
	{"cmd/gateway", Edge, "programs", false, "The program of a ship: the table of its commands.", []string{"edge/norm", "operator/cli", "operator/commands", "operator/node"}},
	{"cmd/gateway-lab", Edge, "programs", false, "The second program, with the commands of the lab.", []string{"lab/commands"}},
	{"ops/package", Edge, "programs", false, "Contains only tests: the packages on a Debian of their own.", nil},
	{"ops/sbom", Edge, "programs", false, "Writes the bill of materials of a program.", nil},
	{"ops/site", Edge, "programs", false, "Makes a site of the documentation.", nil},
	{"field-tests/engines", Edge, "programs", false, "Measures replicated engines: docs/decisions/three-at-a-site.md. A module of its own.", []string{"lab/baddisk"}},
	{"field-tests/blue-game", Edge, "programs", false, "Checks a game's capture and writes its results.", []string{"lab/field", "lab/trace", "link/profile"}},
	{"field-tests/peers", Edge, "programs", false, "Unmodified JXTA peers (Java) and their tests.", nil},
	{"field-tests/pmul", Edge, "programs", false, "Measures P_Mul beside UFTP, NORM and TCP: docs/transports.md.", []string{"edge/norm", "gateway/api", "lab/field", "link/elide", "link/profile"}},
	{"field-tests/road", Edge, "programs", false, "Plays every run of docs/measured.md.", nil},
}

// Upward are the imports that go from a district to a later one for now. An entry without such an import is a fault.
var Upward = map[string][]string{}

// dir is the room's directory, below the module's.
func (r Room) dir() string {
	if first, _, _ := strings.Cut(r.Path, "/"); slices.Contains(outside, first) {
		return r.Path
	}
	return "internal/" + r.Path
}

// outside are the directories of packages that are not below internal/.
var outside = []string{"cmd", "field-tests", "ops", "profiles"}

// pathOf is the Path of the room in a directory.
func pathOf(dir string) string { return strings.TrimPrefix(dir, "internal/") }

// table is a map of rooms: Rooms, or a sample in a test.
type table []Room

func (t table) find(p string) (r Room, ok bool) {
	if i := slices.IndexFunc(t, func(r Room) bool { return r.Path == p }); i >= 0 {
		return t[i], true
	}
	return Room{}, false
}

// pure says whether a room's source must be free of clocks, I/O and goroutines.
func (r Room) pure() bool { return r.Kind == Pure || r.Kind == Words }

// adapter is the Path of the adapter that a room is or belongs to; "": it belongs to none.
func (t table) adapter(p string) string {
	for ; p != "." && p != ""; p = path.Dir(p) {
		if r, ok := t.find(p); ok && r.Adapter {
			return p
		}
	}
	return ""
}
