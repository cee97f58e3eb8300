package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// cache serves a cache of n advertisements; after failAfter batches the loop no longer answers.
func cache(t *testing.T, n, failAfter int) *httptest.Server {
	largest, batches := 0, 0
	s := httptest.NewServer(New(Source{
		Snapshot: func(context.Context) (Snapshot, error) { return Snapshot{}, nil },
		AdvertKeys: func(context.Context) ([]site.EntryKey, error) {
			keys := make([]site.EntryKey, n)
			for i := range keys {
				keys[i] = site.EntryKey{Scope: "g", Type: 2, ID: fmt.Sprintf("%06d", n-1-i)}
			}
			return keys, nil
		},
		AdvertRows: func(_ context.Context, keys []site.EntryKey) (rows []api.AdvertRow, err error) {
			if batches++; batches > failAfter {
				return nil, errors.New("the loop does not answer")
			}
			largest = max(largest, len(keys))
			for _, k := range keys {
				rows = append(rows, api.AdvertRow{ID: k.ID, Type: "pipe", Name: "n" + k.ID})
			}
			return rows, nil
		},
	}, prometheus.NewRegistry()))
	t.Cleanup(func() {
		s.Close()
		if largest > advertBatch {
			t.Errorf("the loop was asked for %d rows at once", largest)
		}
	})
	return s
}

func read(t *testing.T, s *httptest.Server, query string) (rows []AdvertLine, total string) {
	t.Helper()
	r, err := s.Client().Get(s.URL + "/adverts" + query)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	in := bufio.NewScanner(r.Body)
	for in.Scan() {
		var l AdvertLine
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			t.Fatalf("%v: %s", err, in.Text())
		}
		rows = append(rows, l)
	}
	return rows, r.Header.Get(AdvertTotal)
}

func TestAdverts(t *testing.T) {
	const many = 100_000
	s := cache(t, many, many)
	rows, total := read(t, s, "")
	check.Equal(check.Fatal(t), "len(rows)", len(rows), many)
	check.Equal(t, "total", total, "100000")
	check.Equal(t, "rows[0].ID", rows[0].ID, "000000")
	check.Equal(t, "rows[many-1].ID", rows[many-1].ID, "099999")
	rows, _ = read(t, s, "?limit=10")
	if len(rows) != 11 || rows[10].Error != "limit" || rows[9].ID != "000009" {
		t.Errorf("limited: %+v", rows)
	}
	rows, _ = read(t, s, "?name=n09999*&type=pipe")
	if len(rows) != 10 {
		t.Errorf("%d rows of ten names", len(rows))
	}
	if rows, _ = read(t, s, "?type=spec"); len(rows) != 0 {
		t.Errorf("another type: %d", len(rows))
	}
	if rows, _ = read(t, s, "?group=h"); len(rows) != 0 {
		t.Errorf("another group: %d", len(rows))
	}
	r, err := s.Client().Get(s.URL + "/adverts?limit=x")
	if err != nil || r.StatusCode != 400 {
		t.Errorf("no number: %v %v", r, err)
	}
}

func TestAdvertsWhenTheLoopStops(t *testing.T) {
	rows, _ := read(t, cache(t, 1000, 2), "")
	if len(rows) != 2*advertBatch+1 || rows[len(rows)-1].Error != "the loop does not answer" {
		t.Errorf("%d rows, last %+v", len(rows), rows[len(rows)-1])
	}
}
