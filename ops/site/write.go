package main

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed static
var static embed.FS

var layout = template.Must(template.ParseFS(static, "static/page.html"))

// page is one of the site.
type page struct {
	file     string // in the repository
	path     string // in the site
	Name     string // in the guide
	Title    string
	Body     template.HTML
	Headings []heading
	s        *site
}

// to is the way from the page to another file of the site.
func (p *page) to(file string) string {
	return strings.Repeat("../", strings.Count(p.path, "/")) + file
}

// Top is the way to the top of the site.
func (p *page) Top() string { return p.to("") }

// Guide is the guide as this page shows it.
func (p *page) Guide() (list []guided) {
	for _, c := range p.s.chapters {
		g := guided{Title: c.title}
		for _, q := range c.pages {
			g.Pages = append(g.Pages, guidedPage{q.Name, p.to(q.path), q == p})
			g.Open = g.Open || q == p
		}
		list = append(list, g)
	}
	return list
}

// Parts are the sections that the guide shows below the page.
func (p *page) Parts() (list []heading) {
	for _, h := range p.Headings {
		if h.Level == 2 {
			list = append(list, h)
		}
	}
	if len(list) > 40 {
		list = list[:40]
	}
	return list
}

type guided struct {
	Title string
	Open  bool
	Pages []guidedPage
}

type guidedPage struct {
	Name, Address string
	Here          bool
}

// anchored is a link into a page.
type anchored struct {
	from, to *page
	fragment string
	link     string
}

// built is a chapter with its pages.
type built struct {
	title string
	pages []*page
}

type site struct {
	top      string
	pages    []*page
	chapters []built
	byFile   map[string]*page
	anchored []anchored
	files    map[string][]byte // others of the site
	tourBody string
}

func newSite(top string) *site {
	return &site{top: top, byFile: map[string]*page{}, files: map[string][]byte{}}
}

// collect finds the pages that the guide names. Every page of docs/ is one.
func (s *site) collect() error {
	named := map[string]bool{}
	for _, c := range guide {
		for _, e := range c.pages {
			named[e.file] = true
		}
	}
	for _, c := range guide {
		b := built{title: c.title}
		for _, e := range c.pages {
			list := []entry{e}
			if strings.HasSuffix(e.file, "/") {
				list = nil
				paths, err := filepath.Glob(filepath.Join(s.top, e.file, "*.md"))
				if err != nil {
					return err
				}
				for _, file := range paths {
					rel, err := filepath.Rel(s.top, file)
					if err != nil {
						return err
					}
					if !named[rel] {
						list = append(list, entry{rel, ""})
					}
				}
			}
			for _, e := range list {
				if e.file == tourFile && s.tourBody == "" {
					continue
				}
				p := &page{file: e.file, path: pathOf(e.file), Name: e.title, s: s}
				if s.byFile[e.file] != nil {
					return fmt.Errorf("%s is in the guide twice", e.file)
				}
				s.byFile[e.file] = p
				s.pages, b.pages = append(s.pages, p), append(b.pages, p)
			}
		}
		s.chapters = append(s.chapters, b)
	}
	return nil
}

// pathOf is where a page is in the site.
func pathOf(file string) string {
	switch file {
	case "README.md":
		return "index.html"
	case "docs/README.md":
		return "pages.html"
	case "SECURITY.md": // docs/security.md is another
		return "reporting.html"
	}
	file = strings.TrimPrefix(file, "docs/")
	return strings.ToLower(strings.TrimSuffix(strings.Replace(file, "/README.md", ".md", 1), ".md")) + ".html"
}

// build renders all pages, and fails for a link that leads nowhere.
func (s *site) build() error {
	if err := s.collect(); err != nil {
		return err
	}
	var wrong []error
	for _, p := range s.pages {
		source := []byte(s.tourBody)
		if p.file != tourFile {
			var err error
			if source, err = os.ReadFile(filepath.Join(s.top, p.file)); err != nil {
				return err
			}
		}
		body, headings, err := render(source, func(to string) (string, error) {
			if p.file == tourFile { // its links are those of the site
				return to, nil
			}
			return s.rewrite(p, to)
		})
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if len(headings) == 0 {
			return fmt.Errorf("%s has no heading", p.file)
		}
		p.Headings, p.Title = headings, headings[0].Title
		if p.Name == "" {
			p.Name = p.Title
		}
		body = strings.ReplaceAll(body, "<table>", `<div class="wide" role="region" tabindex="0" aria-label="table"><table>`)
		body = strings.ReplaceAll(body, "</table>", "</table></div>")
		body = strings.ReplaceAll(body, "<pre>", `<pre tabindex="0">`)
		p.Body = template.HTML(s.linked(p, body)) // of files of the repository
	}
	for _, a := range s.anchored {
		if !slices.ContainsFunc(a.to.Headings, func(h heading) bool { return h.ID == a.fragment }) {
			wrong = append(wrong, &LinkError{a.from.file, a.link, "the page has no such heading"})
		}
	}
	return errors.Join(wrong...)
}

// source copies a file of the repository into the site: a picture as it is, any other as text.
func (s *site) source(file string) string {
	to := "source/" + file
	if path.Ext(file) != ".png" {
		to += ".txt"
	}
	if b, err := os.ReadFile(filepath.Join(s.top, file)); err == nil {
		s.files[to] = b
	}
	return to
}

var listingPage = template.Must(template.ParseFS(static, "static/listing.html"))

// listing copies a directory of the repository, with a page that lists its files.
func (s *site) listing(dir string) string {
	to := "source/" + dir + "/index.html"
	if s.files[to] != nil {
		return to
	}
	var names []string
	_ = filepath.WalkDir(filepath.Join(s.top, dir), func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(filepath.Join(s.top, dir), file)
			names = append(names, rel)
			s.source(path.Join(dir, filepath.ToSlash(rel)))
		}
		return nil
	})
	var b strings.Builder
	if err := listingPage.Execute(&b, map[string]any{"Dir": dir, "Names": names, "Top": strings.Repeat("../", strings.Count(to, "/"))}); err != nil {
		return to
	}
	s.files[to] = []byte(b.String())
	return to
}

// write builds the site and replaces what is in a directory, which is new, empty, or one that this command wrote.
func (s *site) write(out string) error {
	if err := s.build(); err != nil {
		return err
	}
	if list, err := os.ReadDir(out); err == nil && len(list) > 0 {
		if _, err := os.Stat(filepath.Join(out, "search.js")); err != nil {
			return fmt.Errorf("%s is not a site that was made before: name another directory", out)
		}
		if err := os.RemoveAll(out); err != nil {
			return err
		}
	}
	index, err := s.index()
	if err != nil {
		return err
	}
	s.files["index.js"] = index
	for _, name := range []string{"style.css", "search.js"} {
		if s.files[name], err = static.ReadFile("static/" + name); err != nil {
			return err
		}
	}
	for _, p := range s.pages {
		var b strings.Builder
		if err := layout.Execute(&b, p); err != nil {
			return err
		}
		s.files[p.path] = []byte(b.String())
	}
	for name, b := range s.files {
		file := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
