package control

import (
	"net/http"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
)

// Bill is what GET /bill says.
type Bill struct {
	Profile    string          `json:"profile"`
	Tariff     string          `json:"tariff"`                // as the profile has it now
	UnitOctets int             `json:"unit_octets,omitempty"` // by which it bills; 0: by each octet, or not by octets
	Months     []api.BillMonth `json:"months"`                // the newest first
}

// bill answers GET /bill.
func (s Source) bill(w http.ResponseWriter, r *http.Request) {
	report, err := s.report(r.Context())
	b := Bill{Profile: report.Profile, Tariff: report.Link.Tariff, Months: []api.BillMonth{}}
	if report.Bill != nil {
		b.UnitOctets = report.Bill.UnitOctets
	}
	if err == nil {
		err = s.betweenTurns(r.Context(), func(_ time.Time, m gateway.Messages) { b.Months = append(b.Months, m.Bill(api.BillMonths)...) })
	}
	if err != nil {
		failed(w, err)
		return
	}
	answer(w, b)
}
