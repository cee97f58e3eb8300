package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// markdown is CommonMark with tables. Raw HTML in it (a line break in a table) is ours: the files are those of the repository.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()))

// anchors names headings as the forges do, so that links work in both places.
type anchors struct{ used map[string]int }

func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	name := anchorOf(string(value))
	n := a.used[name]
	a.used[name]++
	if n > 0 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return []byte(name)
}

func (a *anchors) Put(value []byte) { a.used[string(value)]++ }

var noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

func anchorOf(heading string) string {
	return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// heading is one of a page.
type heading struct {
	Level     int
	ID, Title string
	plain     string // of its section
}

// render makes a page of its source. link rewrites where links lead.
func render(source []byte, link func(destination string) (string, error)) (body string, headings []heading, err error) {
	doc := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(&anchors{map[string]int{}}))))
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			h := heading{Level: n.Level, ID: string(id.([]byte)), Title: plainOf(n, source)}
			headings = append(headings, h)
		case *ast.Link:
			to, err := link(string(n.Destination))
			if err != nil {
				return ast.WalkStop, err
			}
			n.Destination = []byte(to)
		case *ast.Image:
			to, err := link(string(n.Destination))
			if err != nil {
				return ast.WalkStop, err
			}
			n.Destination = []byte(to)
		case *ast.Text:
			words(headings, string(n.Segment.Value(source)))
		case *ast.CodeSpan, *ast.Paragraph:
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			lines := n.Lines()
			for i := range lines.Len() {
				at := lines.At(i)
				words(headings, string(at.Value(source)))
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return "", nil, err
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, doc); err != nil {
		return "", nil, err
	}
	return b.String(), headings, nil
}

// words adds to the section that is open.
func words(headings []heading, s string) {
	if n := len(headings); n > 0 {
		headings[n-1].plain += s + " "
	}
}

// plainOf is the text of a heading.
func plainOf(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// LinkError says that a link of a page leads nowhere.
type LinkError struct{ Page, Link, Why string }

// Error is the whole text for the operator.
func (e *LinkError) Error() string {
	return fmt.Sprintf("%s: the link %q leads nowhere: %s", e.Page, e.Link, e.Why)
}

// rewrite is where a link of a page leads in the site. Anchors are checked when all pages are there.
func (s *site) rewrite(p *page, destination string) (string, error) {
	if strings.Contains(destination, "://") || strings.HasPrefix(destination, "mailto:") {
		return destination, nil
	}
	file, fragment, _ := strings.Cut(destination, "#")
	to := path.Join(path.Dir(p.file), file)
	if file == "" {
		to = p.file
	}
	if q := s.byFile[to]; q != nil {
		if fragment != "" {
			s.anchored = append(s.anchored, anchored{p, q, fragment, destination})
			fragment = "#" + fragment
		}
		return p.to(q.path) + fragment, nil
	}
	info, err := os.Stat(path.Join(s.top, to))
	switch {
	case err != nil || strings.HasPrefix(to, "../"):
		return "", &LinkError{p.file, destination, "there is no such file"}
	case info.IsDir():
		return p.to(s.listing(to)), nil
	}
	return p.to(s.source(to)), nil
}

var pageName = regexp.MustCompile(`\b(?:docs/)?((?:decisions|reference)/)?[a-z0-9-]+\.md\b`)

// linked makes links of names of pages in running text: the pages of the repository say "(docs/limits.md)".
func (s *site) linked(p *page, body string) string {
	var b strings.Builder
	shut := 0 // depth of elements in which nothing is linked
	for body != "" {
		at := strings.IndexByte(body, '<')
		if at < 0 {
			at = len(body)
		}
		segment := body[:at]
		if shut == 0 {
			segment = pageName.ReplaceAllStringFunc(segment, func(name string) string {
				q := s.byFile[name]
				if q == nil || q == p {
					return name
				}
				return `<a href="` + p.to(q.path) + `">` + name + `</a>`
			})
		}
		b.WriteString(segment)
		end := strings.IndexByte(body[at:], '>')
		if end < 0 {
			b.WriteString(body[at:])
			break
		}
		tag := body[at : at+end+1]
		for _, name := range []string{"a", "code", "pre", "h1", "h2", "h3"} {
			switch {
			case strings.HasPrefix(tag, "<"+name+" "), strings.HasPrefix(tag, "<"+name+">"):
				shut++
			case tag == "</"+name+">":
				shut--
			}
		}
		b.WriteString(tag)
		body = body[at+end+1:]
	}
	return b.String()
}
