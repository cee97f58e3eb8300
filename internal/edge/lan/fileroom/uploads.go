package fileroom

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"aldis/internal/adapters/files"
)

// slot is a place for a file that a client is about to upload.
type slot struct {
	name, mime string
	size       int64
	until      time.Time
}

const (
	mostSlots = 1000
	slotLife  = 10 * time.Minute
	mostIDs   = 32 // of one file, besides the newest
)

// reserve makes a slot. Its id cannot be guessed: anybody with the id may upload the file, and then download it.
func (r *Room) reserve(o files.Reserve, now time.Time) files.Reserved {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.slots, func(_ string, s slot) bool { return now.After(s.until) })
	if len(r.slots) >= mostSlots {
		return files.Reserved{Ask: o.Ask, Err: "too many uploads have been asked for and not begun"}
	}
	id, name := rand.Text(), plainName(o.Name)
	r.slots[id] = slot{name, cmp.Or(o.MIME, "application/octet-stream"), o.Size, now.Add(slotLife)}
	at := r.cfg.URL + "/" + id + "/" + url.PathEscape(name)
	return files.Reserved{Ask: o.Ask, Put: at, Get: at}
}

// uploads serves XMPP clients (XEP-0363): PUT to a slot, GET of an uploaded file, or of a far file by its hash.
func (r *Room) uploads() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /{id}/{name}", r.put)
	mux.HandleFunc("GET /{id}/{name}", func(w http.ResponseWriter, req *http.Request) {
		id := req.PathValue("id")
		if m, here := r.store.called(id); here {
			id = m.Hash
		}
		if !isHash(id) {
			r.deny(w, req, http.StatusNotFound, "unknown_file", errors.New("no file here has this address, or it was deleted"))
			return
		}
		r.bring(w, req, id)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodOptions { // a browser asks whether a page of another host may upload
			w.Header().Set("Access-Control-Allow-Methods", "OPTIONS, HEAD, GET, PUT")
			w.Header().Set("Access-Control-Allow-Headers", "Content-Type")
			return
		}
		r.deny(w, req, http.StatusNotFound, "unknown_path", errors.New("this gateway serves uploaded files alone"))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		mux.ServeHTTP(w, req)
	})
}

// put stores the file that is uploaded to a slot.
func (r *Room) put(w http.ResponseWriter, req *http.Request) {
	id := req.PathValue("id")
	r.mu.Lock()
	s, is := r.slots[id]
	r.mu.Unlock()
	if !is || time.Now().After(s.until) {
		r.deny(w, req, http.StatusForbidden, "slot", errors.New("nobody has asked for this address, or the time for it is over: ask for another"))
		return
	}
	leave := r.enter(w, req)
	if leave == nil {
		return
	}
	defer leave()
	body, err := io.ReadAll(io.LimitReader(req.Body, s.size+1))
	if err == nil && int64(len(body)) != s.size {
		err = fmt.Errorf("the file has not the %d octets that the slot is for", s.size)
	}
	if err != nil {
		r.denyBody(w, req, err)
		return
	}
	m := meta{Hash: hashOf(body), Name: s.name, MIME: s.mime, At: time.Now(), IDs: []string{id}}
	if _, err = r.store.change(m.Hash, func(known *meta) {
		known.IDs, known.At = append(known.IDs[max(0, len(known.IDs)-mostIDs):], id), m.At
	}); err != nil {
		err = r.store.put(body, m)
	}
	if err != nil {
		r.deny(w, req, http.StatusInsufficientStorage, "disk", err)
		return
	}
	r.mu.Lock()
	delete(r.slots, id)
	r.mu.Unlock()
	r.post(files.Uploaded{ID: id, Hash: m.Hash, Name: m.Name, MIME: m.MIME, Size: s.size})
	w.WriteHeader(http.StatusCreated)
}
