package main

// chapter is pages for one purpose.
type chapter struct {
	title string
	pages []entry
}

// entry is a page: its file in the repository, and what the guide calls it.
type entry struct{ file, title string }

// guide is the order in which the site shows its pages. A directory with a slash behind it stands for all pages in it that
// are named nowhere else.
var guide = []chapter{
	{"Start", []entry{
		{"README.md", "What it is"}, {tourFile, "A tour"}, {"docs/limits.md", "What it does not do"}, {"docs/measured.md", "Measured"},
		{"docs/security.md", "Security"}, {"SECURITY.md", "Reporting a weakness"}, {"docs/glossary.md", "Glossary"}, {"docs/README.md", "All pages by reader"},
	}},
	{"Deploy", []entry{
		{"docs/install.md", "Installing"}, {"docs/configure.md", "Configuration"}, {"docs/fleet.md", "Fleets"}, {"docs/tak.md", "TAK devices"}, {"docs/pipes.md", "Pipes"}, {"docs/decisions/packages.md", "Packages"},
	}},
	{"Operate", []entry{
		{"docs/watch.md", "Watching"}, {"docs/orders.md", "Orders"}, {"docs/faults.md", "Faults"}, {"docs/alerts.md", "Alerts"}, {"docs/restart.md", "Restarts"},
		{"docs/promise.md", "What is promised"},
	}},
	{"Tune", []entry{
		{"docs/traces.md", "Captures and traces"}, {"docs/probe.md", "Measuring a link"}, {"docs/emulator.md", "The link emulator"}, {"docs/air.md", "How full a link gets"}, {"docs/sizes.md", "Sizes"}, {"docs/strangers.md", "Sizes of other software"},
		{"docs/load.md", "Load"}, {"docs/pmul.md", "P_Mul"}, {"docs/transports.md", "Transports"},
	}},
	{"Replay", []entry{
		{"docs/replay.md", "Traces played again"}, {"docs/bench.md", "Beside JXSE"}, {"field-tests/blue-game/README.md", "Blue Game"},
	}},
	{"Reference", []entry{
		{"docs/commands.md", "Commands"}, {"docs/metrics.md", "Metrics"}, {"docs/log.md", "Lines of the log"}, {"CHANGELOG.md", "Changes"},
	}},
	{"Change the code", []entry{
		{"CONTRIBUTING.md", "Contributing"}, {"docs/house.md", "The house"}, {"field-tests/peers/README.md", "JXTA peers"}, {"docs/", ""},
	}},
	{"Decisions", []entry{{"docs/decisions/", ""}}},
	{"Protocols", []entry{{"docs/reference/", ""}}},
}

// tourFile is the page that is made of pictures and of a session.
const tourFile = "tour"
