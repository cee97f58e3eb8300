// Package glance condenses a gateway's status into the facts that an operator wants to see first: whether all is well, which
// messages wait and for how long, and how the link is and was used. The browser page and `gateway top` both show its View,
// which is computed once for all viewers.
//
// The package is pure: callers pass the time and the status. It makes names that peers chose printable (Plain), so
// that no terminal and no page has to. Rates are bits per second. Sizes are IP octets of the airtime ledger unless a
// comment says otherwise.
//
// Files: view.go the View; alarms.go alarms in words; history.go the airtime ledger over time; plain.go printable names.
package glance
