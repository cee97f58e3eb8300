package fileroom

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"aldis/internal/adapters/files"
)

// marti serves the part of the Marti API that data packages need.
func (r *Room) marti() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /Marti/sync/missionquery", r.query)
	mux.HandleFunc("POST /Marti/sync/missionupload", r.upload)
	mux.HandleFunc("PUT /Marti/sync/missionupload", r.upload)
	mux.HandleFunc("POST /Marti/sync/upload", r.upload)
	mux.HandleFunc("GET /Marti/sync/content", r.content)
	mux.HandleFunc("GET /Marti/sync/search", r.search)
	mux.HandleFunc("PUT /Marti/api/sync/metadata/{hash}/tool", r.tool)
	mux.HandleFunc("GET /Marti/api/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "aldis-"+r.cfg.Version) })
	mux.HandleFunc("GET /Marti/api/version/config", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"version": "2", "type": "ServerConfig", "nodeId": "aldis",
			"data": map[string]string{"version": "aldis-" + r.cfg.Version, "api": "2", "hostname": hostOf(r.cfg.URL)}})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		r.deny(w, req, http.StatusNotFound, "unknown_path", errors.New("this gateway serves data packages alone"))
	})
	return mux
}

func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "//")
	host, _, err := net.SplitHostPort(rest)
	if err != nil {
		return rest
	}
	return host
}

// hostOfPeer is the host that sent a request.
func hostOfPeer(req *http.Request) string {
	host, _, _ := net.SplitHostPort(req.RemoteAddr)
	return host
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

// deny refuses a request, and says why in plain words.
func (r *Room) deny(w http.ResponseWriter, req *http.Request, status int, reason string, err error) {
	r.refuse(reason, req.RemoteAddr, err)
	http.Error(w, err.Error(), status)
}

func (r *Room) urlOf(hash string) string { return r.cfg.URL + "/Marti/sync/content?hash=" + hash }

// hash is the hash of the file that a request names; "": it named none and was answered.
func (r *Room) hash(w http.ResponseWriter, req *http.Request, text string) string {
	text = strings.ToLower(text)
	if isHash(text) {
		return text
	}
	r.deny(w, req, http.StatusBadRequest, "hash", errors.New("hash must be a SHA-256, 64 hexadecimal digits"))
	return ""
}

// query says where a file is, so that a device need not upload it again.
func (r *Room) query(w http.ResponseWriter, req *http.Request) {
	hash := r.hash(w, req, req.URL.Query().Get("hash"))
	if hash == "" {
		return
	}
	if _, here := r.store.find(hash); !here {
		http.Error(w, "no file here has this hash", http.StatusNotFound)
		return
	}
	fmt.Fprint(w, r.urlOf(hash))
}

// upload takes a file: a form with assetfile in it, or the file alone.
func (r *Room) upload(w http.ResponseWriter, req *http.Request) {
	leave := r.enter(w, req)
	if leave == nil {
		return
	}
	defer leave()
	q := req.URL.Query()
	m := meta{Name: q.Get("filename"), Creator: q.Get("creatorUid"), At: time.Now()}
	if m.Name == "" {
		m.Name = q.Get("name")
	}
	body, err := r.body(w, req, &m)
	if err != nil {
		r.denyBody(w, req, err)
		return
	}
	m.Hash, m.Name, m.Creator = hashOf(body), plainName(m.Name), plainText(m.Creator)
	if said := strings.ToLower(q.Get("hash")); said != "" && said != m.Hash {
		r.deny(w, req, http.StatusBadRequest, "hash", fmt.Errorf("the file's SHA-256 is %s, not the one that was said: upload it again", m.Hash))
		return
	}
	if _, here := r.store.find(m.Hash); !here {
		if err := r.store.put(body, m); err != nil {
			r.deny(w, req, http.StatusInsufficientStorage, "disk", err)
			return
		}
	}
	if strings.HasSuffix(req.URL.Path, "/upload") {
		answer(w, listed(m))
		return
	}
	fmt.Fprint(w, r.urlOf(m.Hash))
}

// enter waits for a place for an upload; nil: there is none, and the client has got its answer.
func (r *Room) enter(w http.ResponseWriter, req *http.Request) (leave func()) {
	leave, err := r.bodies.enter(req.Context(), hostOfPeer(req), time.After(r.cfg.Patience))
	if errors.Is(err, errBusy) {
		w.Header().Set("Retry-After", "30")
		r.deny(w, req, http.StatusServiceUnavailable, "busy", err)
	}
	if err != nil {
		return nil
	}
	req.Body = newSteady(w, req.Body, r.cfg.Patience)
	return leave
}

// denyBody refuses an upload, and says why.
func (r *Room) denyBody(w http.ResponseWriter, req *http.Request, err error) {
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong), errors.Is(err, errLong):
		r.deny(w, req, http.StatusRequestEntityTooLarge, "too_large", fmt.Errorf("a file of this gateway has at most %d octets (%s.max_file)", r.cfg.MostFile, r.cfg.Face))
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.deny(w, req, http.StatusRequestTimeout, "slow", fmt.Errorf("a file has to come at %d octets a second or more", leastRate))
	default:
		r.deny(w, req, http.StatusBadRequest, "form", err)
	}
}

var errLong = errors.New("too long")

// body reads the file out of an upload.
func (r *Room) body(w http.ResponseWriter, req *http.Request, m *meta) ([]byte, error) {
	const formOctets = 64 << 10 // octets of the form around the file
	req.Body = http.MaxBytesReader(w, req.Body, r.cfg.MostFile+formOctets)
	m.MIME = usualMIME
	from := io.Reader(req.Body)
	if kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err == nil && kind == "multipart/form-data" {
		form, err := req.MultipartReader()
		if err != nil {
			return nil, err
		}
		for {
			part, err := form.NextPart()
			if errors.Is(err, io.EOF) {
				return nil, errors.New("the form has no assetfile")
			}
			if err != nil {
				return nil, err
			}
			if part.FormName() == "assetfile" {
				from = part
				if m.Name == "" {
					m.Name = part.FileName()
				}
				break
			}
		}
	}
	b, err := io.ReadAll(io.LimitReader(from, r.cfg.MostFile+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(b)) > r.cfg.MostFile:
		return nil, errLong
	case len(b) == 0:
		return nil, errors.New("the file is empty")
	}
	return b, nil
}

// plainText is a uid that is safe in an answer, or "".
func plainText(text string) string {
	if len(text) > mostName || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }) {
		return ""
	}
	return text
}

// content serves a file. If a far site has offered it, it is fetched now, and the device waits a little for it.
func (r *Room) content(w http.ResponseWriter, req *http.Request) {
	if hash := r.hash(w, req, req.URL.Query().Get("hash")); hash != "" {
		r.bring(w, req, hash)
	}
}

// bring serves a file, and first asks for it if it is not here.
func (r *Room) bring(w http.ResponseWriter, req *http.Request, hash string) {
	late := time.After(r.cfg.Patience)
	for asked := false; ; {
		if _, here := r.store.find(hash); here {
			r.give(w, req, hash)
			return
		}
		r.mu.Lock()
		k, offered := r.known[hash]
		changed := r.changed
		r.mu.Unlock()
		if !offered {
			r.deny(w, req, http.StatusNotFound, "unknown_file", errors.New("no file here has this hash, and no far site has offered it"))
			return
		}
		if !asked {
			r.post(files.Wanted{Hash: hash, Host: hostOfPeer(req)})
			asked = true
		} else if k.Failed {
			r.deny(w, req, http.StatusGone, "failed", fmt.Errorf("%s does not come: %s", plainName(k.Name), k.State))
			return
		}
		select {
		case <-changed:
		case <-late:
			if k.Failed {
				continue // the next round reports it
			}
			w.Header().Set("Retry-After", "60")
			w.Header().Set("X-Aldis-State", k.State)
			http.Error(w, fmt.Sprintf("%s comes over the link: %s. It is offered again when it is here.", plainName(k.Name), k.State), http.StatusServiceUnavailable)
			return
		case <-req.Context().Done():
			return
		case <-r.life.Done():
			return
		}
	}
}

// give serves a file that is here.
func (r *Room) give(w http.ResponseWriter, req *http.Request, hash string) {
	leave, err := r.bodies.enter(req.Context(), hostOfPeer(req), nil)
	if err != nil {
		return
	}
	defer leave()
	b, m, err := r.store.get(hash)
	if err != nil {
		r.deny(w, req, http.StatusInternalServerError, "disk", errors.New("the file cannot be read"))
		r.log.Warn("a stored file cannot be read; upload it again", "hash", hash, "error", err)
		return
	}
	w.Header().Set("Content-Type", m.MIME)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": m.Name}))
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(min(uploadTime, 2*r.cfg.Patience+timeFor(m.Octets))))
	http.ServeContent(w, req, "", m.At, bytes.NewReader(b))
}

// listed is a file in the form of a device's list.
func listed(m meta) map[string]any {
	tool := "private"
	if m.Public {
		tool = "public"
	}
	return map[string]any{"UID": m.Hash, "Name": m.Name, "Hash": m.Hash, "PrimaryKey": 1, "SubmissionDateTime": m.At.UTC().Format("2006-01-02T15:04:05.000Z"),
		"SubmissionUser": "anonymous", "CreatorUid": m.Creator, "Keywords": "missionpackage", "MIMEType": m.MIME, "Size": m.Octets, "Visibility": tool, "Tool": tool}
}

// search lists the public files: those here, and those that far sites have offered to all.
func (r *Room) search(w http.ResponseWriter, _ *http.Request) {
	list, _ := r.store.list()
	results := []map[string]any{} // not null if there are none
	here := map[string]bool{}
	for _, m := range list {
		here[m.Hash] = true
		if m.Public {
			results = append(results, listed(m))
		}
	}
	r.mu.Lock()
	for hash, k := range r.known {
		if k.Public && !k.Failed && !here[hash] {
			results = append(results, listed(meta{Hash: hash, Name: plainName(k.Name), Creator: plainText(k.Creator), MIME: usualMIME, Octets: k.Size, Public: true, At: k.At}))
		}
	}
	r.mu.Unlock()
	slices.SortFunc(results, func(a, b map[string]any) int { return cmp.Compare(a["Hash"].(string), b["Hash"].(string)) })
	answer(w, map[string]any{"resultCount": len(results), "results": results})
}

// tool sets whether a file is public.
func (r *Room) tool(w http.ResponseWriter, req *http.Request) {
	hash := r.hash(w, req, req.PathValue("hash"))
	if hash == "" {
		return
	}
	b, _ := io.ReadAll(io.LimitReader(req.Body, 64))
	m, err := r.store.change(hash, func(m *meta) { m.Public = string(b) == "public" })
	if err != nil {
		r.deny(w, req, http.StatusNotFound, "unknown_file", errors.New("no file here has this hash"))
		return
	}
	if m.Public {
		r.post(files.Published{Hash: hash, Name: m.Name, Creator: m.Creator, Size: m.Octets})
	}
	fmt.Fprint(w, r.urlOf(hash))
}
