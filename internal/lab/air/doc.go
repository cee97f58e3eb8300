// Package air measures how full a link gets: whole gateways over emulated links in virtual time, with a load of more than one
// message every five seconds. It plays the table of docs/air.md, a scenario and a seed at a time. It judges each row against its goal and
// against the bound of every sender. Tests of the core play the same scenarios.
//
// A Scenario has rows. Play gives the samples of one seed for each row; Judge puts those of all seeds together. One play shares
// nothing with another, so that a caller may run several at once.
//
// # Units
//
// A limit is the time that a message needs on an otherwise empty link: its octets at the rate, and the mean delay one way. Figures in "x the
// limit" are times divided by it. Sizes are octets, shares percent of the rate, times seconds.
//
// # Files
//
//   - air.go: scenarios, rows, and their verdicts
//   - traffic.go: a load on whole gateways, what arrives of it, and when
//   - load.go: what is offered: in turn, by chance, at once, urgent beside routine
//   - judge.go: figures of what came of a load
//   - channel.go: what a radio channel carries that all sites share
//   - star.go: star links to the ship, with 40 octets, and the slowest of single messages
//   - stage.go: two gateways, what is offered, and what must arrive
//   - bound.go: what no sender can beat
//   - fleet.go: gateways with several bearers
//   - relayed.go: what other gateways pass on
//   - lies.go: a relay that lies
//   - changing.go: links that change, what is said of them, and many ships
//   - joining.go: a gateway that joins, and one that was away for long
//   - groups.go: groups of gateways
//   - paper.go: the experiments of a paper on group middleware
//   - rollup.go: what gateways say of themselves to the headquarters
//   - flow.go: a ship that offers more and more: goodput, bursts, queues
//   - bulk.go: long messages, alone and beside short ones
//   - crowd.go: several local peers that share a ship's link
//   - repair.go: losses and outages
//   - live.go: what real gateways play of it, in real time
//   - sites.go: many sites, and what idle gateways send
//   - takeover.go: what it costs that the other machine of a site leads, and what survives
package air
