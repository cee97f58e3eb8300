package control

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// A request for the cache holds up the loop for one look at all keys, and then for one batch of rows at a time.
const (
	advertBatch = 200
	// AdvertTotal is the header with the number of all advertisements in the cache.
	AdvertTotal = "Aldis-Adverts"
)

// AdvertLine is one line of GET /adverts: a row, or the last line, which says why there are no more.
type AdvertLine struct {
	api.AdvertRow
	Error string `json:"error,omitempty"`
}

// adverts streams the cache as JSON, a line each, in order of group, type, id and origin. Queries: type, name (a pattern),
// group (unique value), limit.
func (s Source) adverts(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit := 0
	if text := q.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			http.Error(w, "limit must be a number", http.StatusBadRequest)
			return
		}
	}
	ask := func(f func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		return f(ctx)
	}
	var keys []site.EntryKey
	if err := ask(func(ctx context.Context) (err error) { keys, err = s.AdvertKeys(ctx); return err }); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set(AdvertTotal, strconv.Itoa(len(keys)))
	if group := q.Get("group"); group != "" {
		keys = slices.DeleteFunc(keys, func(k site.EntryKey) bool { return k.Scope != group })
	}
	slices.SortFunc(keys, func(a, b site.EntryKey) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Site, b.Site))
	})
	out := json.NewEncoder(w)
	control := http.NewResponseController(w)
	told := 0
	for batch := range slices.Chunk(keys, advertBatch) {
		control.SetWriteDeadline(time.Now().Add(30 * time.Second)) // a deadline for each batch, not for all; if it cannot be set, the old one stays
		var rows []api.AdvertRow
		if err := ask(func(ctx context.Context) (err error) { rows, err = s.AdvertRows(ctx, batch); return err }); err != nil {
			out.Encode(AdvertLine{Error: err.Error()})
			return
		}
		for _, row := range rows {
			if kind := q.Get("type"); kind != "" && kind != row.Type || q.Has("name") && !filter.Match(q.Get("name"), row.Name) {
				continue
			}
			if limit > 0 && told == limit {
				out.Encode(AdvertLine{Error: "limit"})
				return
			}
			told++
			if out.Encode(AdvertLine{AdvertRow: row}) != nil {
				return // the client has gone
			}
		}
	}
}
