package control

import (
	"net/http"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
)

// Bill is the answer of GET /bill: for the gateway's first bearer, and for the others if there are several.
type Bill struct {
	Link       string          `json:"link,omitempty"` // name of the bearer, where there are several
	Profile    string          `json:"profile"`
	Tariff     string          `json:"tariff"`                // as the profile has it now
	Price      float64         `json:"price,omitempty"`       // of 1,000 IP octets by the configuration, where there are several bearers
	UnitOctets int             `json:"unit_octets,omitempty"` // by which it bills; 0: by each octet, or not by octets
	Months     []api.BillMonth `json:"months"`                // the newest first
	Others     []Bill          `json:"others,omitempty"`      // the other bearers
}

// billOf is the tariff of a bearer.
func billOf(profile string, link api.LinkStatus, units *api.BillStatus) Bill {
	b := Bill{Profile: profile, Tariff: link.Tariff}
	if units != nil {
		b.UnitOctets = units.UnitOctets
	}
	return b
}

// bill answers GET /bill.
func (s Source) bill(w http.ResponseWriter, r *http.Request) {
	report, err := s.report(r.Context())
	bills := []Bill{billOf(report.Profile, report.Link, report.Bill)}
	for i, one := range report.Bearers {
		if one.Link == nil {
			continue // other gateways: messages that they pass on count on the bearers to them
		}
		b := billOf(one.Profile, *one.Link, one.Bill)
		b.Link, b.Price = one.Name, one.Price
		if i == 0 {
			bills = bills[:0]
		}
		bills = append(bills, b)
	}
	if err == nil {
		err = s.betweenTurns(r.Context(), func(_ time.Time, m gateway.Messages) {
			for i := range bills {
				bills[i].Months = append([]api.BillMonth{}, m.Bill(i, api.BillMonths)...)
			}
		})
	}
	if err != nil {
		failed(w, err)
		return
	}
	bills[0].Others = bills[1:]
	answer(w, bills[0])
}
