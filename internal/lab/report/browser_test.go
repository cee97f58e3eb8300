package report

import (
	"testing"

	"aldis/internal/lab/browser"
	"aldis/internal/lab/check"
)

// sight is a browser that looks at the pages of this package.
type sight struct {
	*browser.Browser
	t *testing.T
}

func startBrowser(t *testing.T) *sight { return &sight{browser.Start(t), t} }

// seen is the result of look for a page.
type seen struct {
	Title, Verdict  string
	Headings        []string
	Tables, Rows    int
	Captions        []string
	Plots           []plotSeen
	Wide, Window    float64 // of the page and of the window
	Scripts         int
	Handlers        []string
	Ink, Paper      string
	Text            string
	Pwned           bool
	OverflowingText []string
}

type plotSeen struct {
	Title, Desc   string
	Width, Height float64
	Outside       []string // parts that stick out
	Overlapping   []string // labels that cover each other
	Marks         int      // paths
	Labels        int
}

// look examines a page: its parts, and parts that are where they should not be.
const look = `(() => {
  const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  const cover = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const plots = [...document.querySelectorAll('figure svg[role=img]')].map(svg => {
    const frame = svg.getBoundingClientRect();
    const parts = [...svg.querySelectorAll('line,path,circle,text')];
    const texts = [...svg.querySelectorAll('text')];
    const overlapping = [];
    texts.forEach((a, i) => texts.slice(i + 1).forEach(b => {
      if (cover(a.getBoundingClientRect(), b.getBoundingClientRect())) overlapping.push(a.textContent + ' / ' + b.textContent);
    }));
    const [t, d] = svg.getAttribute('aria-labelledby').split(' ').map(id => document.getElementById(id));
    return {Title: t.textContent, Desc: d.textContent, Width: frame.width, Height: frame.height,
      Outside: parts.filter(p => !inside(p.getBoundingClientRect(), frame)).map(p => p.outerHTML.slice(0, 120)),
      Overlapping: overlapping, Marks: svg.querySelectorAll('path').length, Labels: texts.length};
  });
  const root = document.documentElement;
  const style = getComputedStyle(document.body);
  const handlers = [];
  document.querySelectorAll('*').forEach(e => [...e.attributes].forEach(a => { if (/^on|^(href|src|style|action)$/i.test(a.name)) handlers.push(a.name); }));
  const overflowing = [...document.querySelectorAll('h1,h2,p,li,dd,dt,th,td,caption,figcaption')].filter(e => e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 80));
  return {Title: document.title, Verdict: document.querySelector('.verdict')?.textContent ?? '',
    Headings: [...document.querySelectorAll('h2')].map(e => e.textContent),
    Tables: document.querySelectorAll('table').length, Rows: document.querySelectorAll('tbody tr').length,
    Captions: [...document.querySelectorAll('section > .wide caption')].map(e => e.textContent),
    Plots: plots, Wide: root.scrollWidth, Window: root.clientWidth, Scripts: document.querySelectorAll('script,iframe,object,embed,link,img').length,
    Handlers: handlers, Ink: style.color, Paper: style.backgroundColor, Text: document.body.textContent, Pwned: 'pwned' in window, OverflowingText: overflowing};
})()`

// check checks the rules for every page, however it is shown.
func (b *sight) check(file, what string, width int, media, scheme string) seen {
	b.t.Helper()
	b.Open("file://"+file, width, media, scheme)
	var s seen
	b.Ask(look, &s)
	if s.Wide > s.Window {
		b.t.Errorf("%s: the page is %v wide in a window of %v", what, s.Wide, s.Window)
	}
	if len(s.OverflowingText) > 0 {
		b.t.Errorf("%s: text that does not fit: %q", what, s.OverflowingText)
	}
	for _, p := range s.Plots {
		in := check.In(b.t, what)
		check.True(in, "p.Width >= 300", p.Width >= 300, p.Width)
		check.True(in, "p.Height >= 100", p.Height >= 100, p.Height)
		check.Differ(in, "p.Title", p.Title, "")
		check.Differ(in, "p.Desc", p.Desc, "")
		check.Differ(in, "p.Marks", p.Marks, 0)
		check.True(in, "p.Labels >= 5", p.Labels >= 5, p.Labels)
		if len(p.Outside) > 0 || len(p.Overlapping) > 0 {
			b.t.Errorf("%s: %s: outside %q, on top of each other %q", what, p.Title, p.Outside, p.Overlapping)
		}
	}
	if s.Scripts > 0 || len(s.Handlers) > 0 || s.Pwned {
		b.t.Errorf("%s: %d scripts and the like, attributes %v, pwned %v", what, s.Scripts, s.Handlers, s.Pwned)
	}
	if c := browser.Contrast(b.t, s.Ink, s.Paper); c < 7 {
		b.t.Errorf("%s: %s on %s has a contrast of %.1f", what, s.Ink, s.Paper, c)
	}
	im := b.Screenshot(what)
	if share := browser.Inked(im); share < 0.01 || share > 0.6 {
		b.t.Errorf("%s: %.1f %% of the picture are not background", what, 100*share)
	}
	if len(b.Requests) != 1 || len(b.Wrong) > 0 {
		b.t.Errorf("%s: asked for %q, complains: %q", what, b.Requests, b.Wrong)
	}
	return s
}
