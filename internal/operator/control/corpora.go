package control

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"aldis/internal/adapters/corpusexchange"
	"aldis/internal/gateway/api"
	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// CorpusSend is the body of POST /corpora/send: send this file of a corpus to sites. The answer is the CorpusSent that has begun.
type CorpusSend struct {
	File  []byte   `json:"file"`  // as gateway corpus build makes it
	Sites []string `json:"sites"` // names or ids of peers
}

// CorpusSent describes a transfer that has begun.
type CorpusSent struct {
	Name     string   `json:"corpus"`
	Messages int      `json:"messages"`
	Octets   int      `json:"octets"` // of the file
	Sites    []string `json:"sites"`  // by name
}

func (CorpusSend) octets() int64 { return 2*compact.MaxCorpusFile + orderOctets }

// String is the order in words, for the log.
func (o CorpusSend) String() string {
	name := "what is no corpus"
	if c, err := compact.ReadCorpus(o.File); err == nil {
		name = "corpus " + corpusexchange.Name(c)
	}
	return fmt.Sprintf("%s to %s", name, strings.Join(o.Sites, ", "))
}

// sendCorpus gives the gateway the order, and waits until the transfer has begun.
func (s Source) sendCorpus(ctx context.Context, order CorpusSend) (any, error) {
	c, err := compact.ReadCorpus(order.File)
	if err != nil {
		return nil, Refusal{http.StatusBadRequest, "the file is no corpus of a network, or is damaged: make one with gateway corpus build"}
	}
	now, err := s.Snapshot(ctx)
	if err != nil {
		return nil, Refusal{http.StatusServiceUnavailable, err.Error()}
	}
	if now.Gateway.Drain != nil {
		return nil, Refusal{http.StatusConflict, "the gateway drains: it takes no messages (gateway drain --off ends that)"}
	}
	sites, names, err := sitesOf(now.Gateway.Peers, order.Sites)
	if err != nil {
		return nil, err
	}
	s.Order(api.LAN{Adapter: site.Corpora, Event: corpusexchange.Send{Sites: sites, File: order.File}})
	before := now.Corpora.Sent
	err = Obeyed(ctx, func() (bool, error) {
		now, err := s.Snapshot(ctx)
		return err == nil && now.Corpora.Sent > before, err
	})
	if err == nil && s.Durable != nil {
		err = s.Durable(ctx)
	}
	return CorpusSent{Name: corpusexchange.Name(c), Messages: len(c.Messages), Octets: len(order.File), Sites: names}, err
}

// sitesOf finds peers by name or id; "all" means all peers.
func sitesOf(peers []api.PeerStatus, asked []string) (sites []uint16, names []string, err error) {
	for _, name := range asked {
		found := false
		for _, p := range peers {
			if name != "all" && name != p.Name && name != fmt.Sprint(p.ID) {
				continue
			}
			found = true
			if !slices.Contains(sites, p.ID) {
				sites, names = append(sites, p.ID), append(names, p.Name)
			}
		}
		if !found {
			return nil, nil, Refusal{http.StatusNotFound, fmt.Sprintf("%q is neither name nor id of a [[link.peer]]", name)}
		}
	}
	if len(sites) == 0 {
		return nil, nil, Refusal{http.StatusBadRequest, "to which sites?"}
	}
	return sites, names, nil
}

// CorpusOrder is the body of POST /corpora/accept and /corpora/forget, the decision about a corpus that another site has sent. The
// answer is the corpora.Status afterwards.
type CorpusOrder struct {
	Name string `json:"corpus"`
}

// decide gives such an order, and waits until done says that a status shows it.
func (s Source) decide(ctx context.Context, o CorpusOrder, ev site.Event, done func(corpusexchange.Status) bool) (any, error) {
	now, err := s.Snapshot(ctx)
	if err != nil {
		return nil, Refusal{http.StatusServiceUnavailable, err.Error()}
	}
	if !slices.ContainsFunc(now.Corpora.Received, func(r corpusexchange.Row) bool { return r.Name == o.Name }) && now.Corpora.Accepted != o.Name {
		return nil, Refusal{http.StatusNotFound, fmt.Sprintf("no corpus %q is here: gateway corpus list shows those that other sites have sent", o.Name)}
	}
	s.Order(api.LAN{Adapter: site.Corpora, Event: ev})
	var got corpusexchange.Status
	err = Obeyed(ctx, func() (bool, error) {
		now, err := s.Snapshot(ctx)
		got = now.Corpora
		return err == nil && done(got), err
	})
	if err == nil && s.Durable != nil {
		err = s.Durable(ctx)
	}
	return got, err
}

func (s Source) acceptCorpus(ctx context.Context, o CorpusOrder) (any, error) {
	return s.decide(ctx, o, corpusexchange.Accept{Name: o.Name}, func(got corpusexchange.Status) bool { return got.Accepted == o.Name })
}

func (s Source) forgetCorpus(ctx context.Context, o CorpusOrder) (any, error) {
	return s.decide(ctx, o, corpusexchange.Forget{Name: o.Name}, func(got corpusexchange.Status) bool {
		return got.Accepted != o.Name && !slices.ContainsFunc(got.Received, func(r corpusexchange.Row) bool { return r.Name == o.Name })
	})
}

// corpusFile answers GET /corpora/{name} with the file. It contains messages of the network, so only callers that may give
// orders get it.
func (s Source) corpusFile(w http.ResponseWriter, r *http.Request) {
	by, err := s.Authority().who(r)
	if err != nil {
		s.refuse(w, "corpus", by, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	file, ok, err := s.CorpusFile(ctx, r.PathValue("name"))
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case !ok:
		http.Error(w, fmt.Sprintf("no corpus %q is here: gateway corpus list shows those that other sites have sent", r.PathValue("name")), http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(file)
	}
}
