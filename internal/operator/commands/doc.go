// Package operator is the commands that an operator types besides `gateway run`: they query or steer a running gateway, or work on
// its files.
//
// # Files
//
//   - adverts.go: `adverts`: the advertisements that a running gateway has
//   - audit.go: `audit`: the record of orders
//   - backup.go: `backup` and `restore`: a copy of the journal
//   - bill.go: `bill`: the traffic of a month
//   - check.go: `check`: a configuration and what it means
//   - commands.go: the table of commands
//   - compact.go: `compact`: the size of documents after compression
//   - corpora.go: `corpus send`, `list`, `save`, `accept` and `forget`: corpora that sites exchange over the link
//   - corpus.go: `corpus`: dispatch to its subcommands
//   - corpusshow.go: `corpus show`
//   - desk.go: how commands speak to a running gateway
//   - destroy.go: `keys destroy`: keys and journal wiped
//   - doctor.go: `doctor`: what is wrong with a machine and its gateway
//   - drain.go: `drain`: before a stop
//   - example.go: what the rules decide about an example message
//   - routeexample.go: which link an example takes
//   - init.go: `init`: a first configuration
//   - journal.go: `journal`: a journal checked, repaired, exported
//   - keys.go: `keys`: key files
//   - link.go: `link`: reports the state of a modem in its place
//   - message.go: `message`: one message, and orders about it
//   - messages.go: `messages`: where messages are
//   - passphrase.go: the passphrase of an authority
//   - peer.go: `peer`: the far gateways, and the gateway's knowledge of them
//   - profiles.go: `profiles`: the link profiles
//   - query.go: `compact --query`: the values that files have at a place
//   - reload.go: `reload`: the configuration read again
//   - rollover.go: `keys rollover`: a newer roster for the gateway that runs here
//   - roster.go: `keys roster`: the nodes that belong to a network
//   - fleet.go: `fleet`: the reports of the fleet's gateways about themselves
//   - group.go: `group`: join and leave groups
//   - silence.go: `silence`: radio silence on and off
//   - site.go: `site`: two gateways at a site, and their witness
//   - status.go: `status`: a running gateway's state
//   - summary.go: TAK, XMPP and [[meet]] in the output of `check`
//   - probe.go: `link probe`: the link measured between two running gateways
//   - takexample.go: what happens to a CoT event, for `check`
//   - xmppexample.go: what happens to an XMPP stanza, for `check`
//   - xmppusers.go: users of the gateway as XMPP server
//   - top.go: `top`: a running gateway in a terminal, live
//   - view.go: `group view`: how much other sites learn of JXTA peers
package operator
