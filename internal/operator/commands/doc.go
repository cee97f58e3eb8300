// Package operator is the commands that an operator types beside `gateway run`: they ask or steer a running gateway, or work on its
// files.
//
// # Files
//
//   - adverts.go: `adverts`: the advertisements that a running gateway has
//   - audit.go: `audit`: the record of orders
//   - backup.go: `backup` and `restore`: a copy of the journal
//   - bill.go: `bill`: the traffic of a month
//   - check.go: `check`: a configuration and what it means
//   - commands.go: the table of commands
//   - compact.go: `compact`: how small documents become
//   - corpora.go: `corpus send`, `list`, `save`, `accept` and `forget`: what a network teaches its gateways, over the link
//   - corpus.go: `corpus`: which part of it does what was asked
//   - corpusshow.go: `corpus show`
//   - desk.go: how commands speak to a running gateway
//   - destroy.go: `keys destroy`: keys and journal wiped
//   - doctor.go: `doctor`: what is wrong with a machine and its gateway
//   - drain.go: `drain`: before a stop
//   - example.go: what the rules make of an example message
//   - routeexample.go: which link it takes
//   - init.go: `init`: a first configuration
//   - journal.go: `journal`: a journal checked, repaired, exported
//   - keys.go: `keys`: key files
//   - link.go: `link`: what a modem is doing, said for it
//   - message.go: `message`: one message, and orders about it
//   - messages.go: `messages`: where messages are
//   - passphrase.go: the passphrase of an authority
//   - peer.go: `peer`: the far gateways, and what is known of them
//   - profiles.go: `profiles`: the link profiles
//   - query.go: `compact --query`: what files have at a place
//   - reload.go: `reload`: the configuration read again
//   - rollover.go: `keys rollover`: a newer roster for the gateway that runs here
//   - roster.go: `keys roster`: the nodes that belong to a network
//   - fleet.go: `fleet`: what the gateways of the fleet say of themselves
//   - group.go: `group`: join and leave groups
//   - silence.go: `silence`: radio silence on and off
//   - site.go: `site`: two gateways at a site, and their witness
//   - status.go: `status`: a running gateway's state
//   - summary.go: TAK, XMPP and [[meet]] in the answer of `check`
//   - probe.go: `link probe`: the link measured between two running gateways
//   - takexample.go: what becomes of a CoT event, for `check`
//   - xmppexample.go: the same of an XMPP stanza
//   - xmppusers.go: users of the gateway as XMPP server
//   - top.go: `top`: a running gateway in a terminal, live
//   - view.go: `group view`: what other sites are told of JXTA peers
package operator
