package control

import (
	"net/http"

	"aldis/internal/gateway/api"
)

// Distance is the answer of GET /distance for a site: the way that messages take, and all ways if there are several.
type Distance struct {
	ID        uint16 `json:"id"`   // in the network
	Site      string `json:"site"` // its name
	Link      string `json:"link"` // as in /status
	LastHeard string `json:"last_heard,omitempty"`
	api.Quality
	Ways []api.PeerBearer `json:"ways,omitempty"`
}

// distance answers GET /distance.
func (s Source) distance(w http.ResponseWriter, r *http.Request) {
	report, err := s.report(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	list := []Distance{}
	for _, p := range report.Peers {
		list = append(list, Distance{p.ID, p.Name, p.Link, p.LastHeard, p.Quality, p.Bearers})
	}
	answer(w, list)
}
