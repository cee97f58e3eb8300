package main

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/browser"
	"aldis/internal/lab/check"
)

const repository = "../.."

// builtSite writes the site of the repository, with a tour of a session that was not played.
func builtSite(t *testing.T) (s *site, dir string) {
	t.Helper()
	shots := t.TempDir()
	for _, p := range pictures {
		if err := os.WriteFile(filepath.Join(shots, p.file), []byte("a picture"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, dir = newSite(repository), filepath.Join(t.TempDir(), "docs")
	if err := s.tour("", shots); err != nil {
		t.Fatal(err)
	}
	if err := s.write(dir); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// Every link of every page leads to a file of the site, and to a heading that is there; every page of the repository is in it.
func TestLinks(t *testing.T) {
	s, dir := builtSite(t)
	ids := map[string]map[string]bool{}
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, file)
		b, err := os.ReadFile(file)
		files[rel] = string(b)
		ids[rel] = map[string]bool{}
		for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(string(b), -1) {
			ids[rel][m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for name, text := range files {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
			u, err := url.Parse(m[1])
			if err != nil || u.IsAbs() || strings.HasPrefix(u.Path, "/") {
				t.Errorf("%s: the link %q leaves the site", name, m[1])
				continue
			}
			links++
			to := name
			if u.Path != "" {
				to = path.Join(path.Dir(name), u.Path)
			}
			if _, ok := files[to]; !ok {
				t.Errorf("%s: %q leads to no file", name, m[1])
			} else if u.Fragment != "" && !ids[to][u.Fragment] {
				t.Errorf("%s: %q leads to no heading", name, m[1])
			}
		}
	}
	check.True(t, "there are many links", links > 3000, links)
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "*.md", "field-tests/*/README.md"} {
		list, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range list {
			rel, _ := filepath.Rel(repository, file)
			if p := s.byFile[rel]; p == nil || files[p.path] == "" {
				t.Errorf("%s is not in the site", rel)
			}
		}
	}
}

// A link that leads nowhere fails the build, and says where it stands.
func TestWrongLinks(t *testing.T) {
	for link, why := range map[string]string{"docs/nothing.md": "no such file", "docs/limits.md#nothing": "no such heading", "../../etc/passwd": "no such file"} {
		top := t.TempDir()
		for _, c := range guide {
			for _, e := range c.pages {
				if e.file == tourFile || strings.HasSuffix(e.file, "/") {
					continue
				}
				file := filepath.Join(top, e.file)
				text := "# A page\n"
				if e.file == "README.md" {
					text += "[x](" + link + ")\n"
				}
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
		}
		err := newSite(top).write(filepath.Join(t.TempDir(), "docs"))
		var wrong *LinkError
		if !errors.As(err, &wrong) || wrong.Link != link || !strings.Contains(wrong.Why, why) {
			t.Errorf("%s: %v", link, err)
		}
	}
}

// A directory that holds something else is left alone.
func TestWriteReplacesOnlyASite(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := newSite(repository).write(dir); err == nil || !strings.Contains(err.Error(), "name another directory") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "mine")); err != nil {
		t.Error(err)
	}
}

// The pages in a real browser, from a disk, as a telephone, a desk and paper show them; and the search.
func TestInBrowser(t *testing.T) {
	_, dir := builtSite(t)
	b := browser.Start(t)
	type look struct {
		Wide, Window float64
		Ink, Paper   string
		Here         string
		Small        []string
	}
	const ask = `(()=>{const r=document.documentElement,s=getComputedStyle(document.body);return {Wide:r.scrollWidth,Window:r.clientWidth,Ink:s.color,Paper:s.backgroundColor,
		Here:document.querySelector('[aria-current]')?.textContent??'',Small:[...document.querySelectorAll('main table,main pre')].filter(e=>e.getBoundingClientRect().right>r.clientWidth+1&&!e.closest('.wide')).map(e=>e.textContent.slice(0,60))}})()`
	for _, name := range []string{"index", "watch", "commands", "decisions/octets", "measured"} {
		for _, v := range []struct {
			name          string
			width         int
			media, scheme string
		}{{"desk", 1280, "screen", "light"}, {"dark", 1280, "screen", "dark"}, {"telephone", 375, "screen", "light"}, {"paper", 718, "print", "light"}} {
			what := "docs-" + strings.ReplaceAll(name, "/", "-") + "-" + v.name
			b.Open("file://"+filepath.Join(dir, name+".html"), v.width, v.media, v.scheme)
			var l look
			b.Ask(ask, &l)
			check.True(t, what+" is not wider than its window", l.Wide <= l.Window, l.Wide, l.Window)
			check.True(t, what+": nothing sticks out", len(l.Small) == 0, l.Small)
			check.True(t, what+": the guide shows where one is", l.Here != "")
			check.True(t, what+": contrast", browser.Contrast(t, l.Ink, l.Paper) >= 7)
			check.Equal(t, what+": the paper is dark", l.Paper != "rgb(255, 255, 255)", v.scheme == "dark")
			check.Equal(t, what+": complaints", strings.Join(b.Wrong, " "), "")
			b.Screenshot(what)
		}
	}
	b.Open("file://"+filepath.Join(dir, "decisions/octets.html"), 1280, "screen", "light")
	b.Press("/")
	b.Until("document.activeElement.id==='q'")
	b.Type("max_octets_per_peer")
	b.Until("[...document.querySelectorAll('#results a')].some(a=>a.textContent.startsWith('Configuration'))")
	b.Press("Enter")
	b.Until("/(configure|limits).html#/.test(location.href)")
}

// A session is what was typed and printed, and its recording says it in the order of time.
func TestSession(t *testing.T) {
	steps, err := play("/bin/true", []step{{typed: "echo '<one>'; echo; echo two"}, {typed: "sleep 60 &", beside: true}, {typed: "touch done; ls", until: "done"}})
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "the output", steps[0].output, "<one>\n\ntwo\n")
	steps[0].took, steps[2].took = time.Second, time.Second
	page := recorded(steps)
	for _, want := range []string{"$ <b>echo &#39;&lt;one&gt;&#39;; echo; echo two</b>", "&lt;one&gt;\n&#8203;\ntwo\n", "--at:0.5s", "--at:2.3s"} {
		check.Contains(t, "the recording", page, want)
	}
	for line := range strings.Lines(string(cast(steps))) {
		check.True(t, "a line of the cast", strings.HasPrefix(line, "[") || strings.HasPrefix(line, `{"version": 2`), line)
	}
	if _, err := play("/bin/true", []step{{typed: "exit 3"}}); err == nil {
		t.Error("a step that fails is taken")
	}
}
