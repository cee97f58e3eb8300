// Package glance says in a few words and figures what an operator wants to see of a gateway: is all well, what waits and until
// when, how the link is used now and how it was used before. The page and `gateway top` show its View, which is made once for
// all who look.
//
// It is pure: it is given the time and what the gateway says. Names that peers choose are made Plain here, so that no terminal
// and no page has to. Rates are bits per second, sizes IP octets of the airtime ledger unless their comment says otherwise.
//
// Files: view.go what is shown; alarms.go what is wrong, in words; history.go the ledger over time; plain.go names.
package glance
