// Package page holds the web page that a gateway serves to operators, as one static bundle inside the binary. The page
// loads nothing from other hosts.
//
// The scripts are plain JavaScript modules without a build step. Text that a peer chose never becomes markup: the
// scripts create each element and set its textContent. The data comes from /events, /air, /adverts and /messages.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var bundle embed.FS

// policy limits what a browser may do with the page: its own scripts, style and requests, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is one file of the bundle.
type file struct {
	kind, tag   string
	plain, gzip []byte
}

// types by suffix; a machine's own table may differ.
var types = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// Serve adds the page to a mux: / and /page/.
func Serve(mux *http.ServeMux) {
	files, err := load()
	if err != nil {
		panic(err) // the binary lacks a part of itself
	}
	for name, f := range files {
		at := "GET /page/" + name
		if name == "index.html" {
			at = "GET /{$}"
		}
		mux.Handle(at, f)
	}
}

func load() (map[string]*file, error) {
	files := map[string]*file{}
	err := fs.WalkDir(bundle, "static", func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := bundle.ReadFile(at)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(at, "static/")
		if files[name], err = newFile(name, text); err != nil {
			return err
		}
		return nil
	})
	return files, err
}

func newFile(name string, text []byte) (*file, error) {
	f := &file{kind: types[path.Ext(name)], plain: text}
	if f.kind == "" {
		f.kind = mime.TypeByExtension(path.Ext(name))
	}
	sum := sha256.Sum256(text)
	f.tag = base64.RawURLEncoding.EncodeToString(sum[:12])
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	f.gzip = b.Bytes()
	return f, err
}

// ServeHTTP answers with the file, or says that the browser's copy is current.
func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", f.kind)
	text, tag := f.plain, `"`+f.tag+`"`
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		text, tag = f.gzip, `"`+f.tag+`-gz"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Write(text) // an error means that the client has gone
}
