package api

import (
	"time"
)

// BillRow counts the traffic on the link. Octets are IP octets of datagrams, authentic or not. Units are those that the tariff bills
// by, 0 where it has none. Minutes are those in which something was on the air.
type BillRow struct {
	SentOctets     uint64 `json:"sent_octets"`              // from this end
	ReceivedOctets uint64 `json:"received_octets"`          // at this end
	SentUnits      uint64 `json:"sent_units,omitempty"`     // that the datagrams sent have begun
	ReceivedUnits  uint64 `json:"received_units,omitempty"` // that the datagrams received have begun
	Minutes        uint64 `json:"minutes"`                  // in which something was on the air
}

// BillSite is the part of a bill for one site.
type BillSite struct {
	Site string `json:"site"` // "": datagrams to all at once, and datagrams from an address that is no peer's
	BillRow
}

// BillMonth is a calendar month, UTC.
type BillMonth struct {
	Month string     `json:"month"` // 2026-11
	Since time.Time  `json:"since"` // when counting began in it
	Total BillRow    `json:"total"` // of all sites
	Sites []BillSite `json:"sites"` // by name
}

const BillMonths = 24 // how many months are kept
