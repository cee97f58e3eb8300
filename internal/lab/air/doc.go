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
//   - traffic.go: a load on whole gateways, its arrivals and their times
//   - load.go: the offered messages: in turn, by chance, at once, urgent besides routine ones
//   - judge.go: figures of the results of a load
//   - channel.go: the load of a radio channel that all sites share
//   - star.go: star links to the ship, with 40 octets, and the slowest of single messages
//   - stage.go: two gateways, the offered messages, and their arrival
//   - bound.go: bounds for every sender
//   - fleet.go: gateways with several bearers
//   - relayed.go: messages that other gateways pass on
//   - lies.go: a relay that lies
//   - changing.go: links that change, forecasts for them, and many ships
//   - joining.go: a gateway that joins, and one that was away for long
//   - groups.go: groups of gateways
//   - paper.go: the experiments of a paper on group middleware
//   - rollup.go: reports of gateways on themselves to the headquarters
//   - flow.go: a ship that offers more and more: goodput, bursts, queues
//   - bulk.go: long messages, alone and together with short ones
//   - crowd.go: several local peers that share a ship's link
//   - repair.go: losses and outages
//   - live.go: the scenarios that real gateways play, in real time
//   - sites.go: many sites, and the traffic of idle gateways
//   - takeover.go: the cost of a change of leader at a site of two, and the losses through deaths
package air
