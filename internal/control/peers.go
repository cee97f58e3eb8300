package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"aldis/internal/gateway"
)

// ForgetOrder is the body of POST /peers/forget. The answer is the gateway.PeerStatus that came of it.
type ForgetOrder struct {
	Peer     uint16 `json:"peer"`                // id of a [[link.peer]]
	AnyStart bool   `json:"any_start,omitempty"` // its next start may have any number
}

// forget takes the order of somebody on this machine.
func (s Source) forget(w http.ResponseWriter, r *http.Request) {
	var order ForgetOrder
	if !takeOrder(w, r, &order) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	before, ok := s.peer(ctx, w, order.Peer)
	if !ok {
		return
	}
	if before.Forgotten == gateway.ForgetMost {
		http.Error(w, fmt.Sprintf("peer %d was forgotten %d times since the gateway's start: restart it first", order.Peer, before.Forgotten), http.StatusConflict)
		return
	}
	s.Order(gateway.Forget{Peer: order.Peer, AnyStart: order.AnyStart})
	for {
		now, ok := s.peer(ctx, w, order.Peer)
		if !ok {
			return
		}
		if now.Forgotten > before.Forgotten {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(now)
			return
		}
		select { // the loop takes orders and questions in no certain order
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// peer is the status of a peer; where there is none it answers with an error.
func (s Source) peer(ctx context.Context, w http.ResponseWriter, id uint16) (gateway.PeerStatus, bool) {
	now, err := s.Snapshot(ctx)
	if err != nil {
		http.Error(w, "the gateway has not said that the order was obeyed: "+err.Error(), http.StatusServiceUnavailable)
		return gateway.PeerStatus{}, false
	}
	for _, p := range now.Gateway.Peers {
		if p.ID == id {
			return p, true
		}
	}
	http.Error(w, fmt.Sprintf("no [[link.peer]] has the id %d", id), http.StatusNotFound)
	return gateway.PeerStatus{}, false
}

// takeOrder reads an order of somebody on this machine. A page in a browser here cannot give one: it may not send JSON to
// another origin.
func takeOrder(w http.ResponseWriter, r *http.Request, order any) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		http.Error(w, "orders are taken from this machine only", http.StatusForbidden)
		return false
	}
	if r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "an order is application/json", http.StatusUnsupportedMediaType)
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096))
	d.DisallowUnknownFields()
	if err := d.Decode(order); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}
