package report

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// browser is a real one, without a window, spoken to through pipes in its debugging protocol (CDP). What pages asked for
// and complained of is collected.
type browser struct {
	t        *testing.T
	in       *os.File
	out      *bufio.Reader
	session  string
	id       int
	loaded   bool
	requests []string
	wrong    []string // exceptions, console output, refusals
}

const browserName = "chromium-headless-shell"

func startBrowser(t *testing.T) *browser {
	t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(browserName, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
		"--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.Stderr = &stderr
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s does not start: %v (make deps installs it)", browserName, err)
	}
	theirIn.Close()
	theirOut.Close()
	out.SetReadDeadline(time.Now().Add(2 * time.Minute))
	b := &browser{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		in.Close()
		out.Close()
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s", stderr.Bytes())
		}
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Network", "Runtime", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call asks the browser and waits for its answer; events on the way are noted.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	b.id++
	m := map[string]any{"id": b.id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		answer := b.read()
		if answer.ID != b.id {
			continue
		}
		if answer.Error != nil {
			b.t.Fatalf("%s: %s", method, answer.Error)
		}
		if result != nil {
			if err := json.Unmarshal(answer.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

type answer struct {
	ID            int
	Method        string
	Result, Error json.RawMessage
	Params        json.RawMessage
}

func (b *browser) read() (a answer) {
	b.t.Helper()
	text, err := b.out.ReadBytes(0)
	if err == nil {
		err = json.Unmarshal(text[:len(text)-1], &a)
	}
	if err != nil {
		b.t.Fatalf("the browser says %q: %v", text, err)
	}
	switch a.Method {
	case "Page.loadEventFired":
		b.loaded = true
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		if err := json.Unmarshal(a.Params, &p); err != nil {
			b.t.Fatal(err)
		}
		b.requests = append(b.requests, p.Request.URL)
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded":
		b.wrong = append(b.wrong, string(a.Params))
	}
	return a
}

// open shows a page in a window of a width, in a medium and colour scheme, and waits until it is there.
func (b *browser) open(file string, width int, media, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.loaded, b.requests, b.wrong = false, nil, nil
	b.call("Page.navigate", map[string]any{"url": "file://" + file}, nil)
	for !b.loaded {
		b.read()
	}
}

// ask evaluates an expression in the page.
func (b *browser) ask(expression string, result any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s", r.ExceptionDetails)
	}
	if err := json.Unmarshal(r.Result.Value, result); err != nil {
		b.t.Fatalf("%s: %v", r.Result.Value, err)
	}
}

// screenshot is the whole page as it looks. With ALDIS_SCREENSHOTS it is kept there.
func (b *browser) screenshot(name string) image.Image {
	b.t.Helper()
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if dir := os.Getenv("ALDIS_SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	im, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		b.t.Fatal(err)
	}
	return im
}

// seen is what look finds in a page.
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

// look is asked of a page: what is there, and what is where it should not be.
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

// check is what must be true of every page, however it is looked at.
func (b *browser) check(file, what string, width int, media, scheme string) seen {
	b.t.Helper()
	b.open(file, width, media, scheme)
	var s seen
	b.ask(look, &s)
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
	if c := contrast(b.t, s.Ink, s.Paper); c < 7 {
		b.t.Errorf("%s: %s on %s has a contrast of %.1f", what, s.Ink, s.Paper, c)
	}
	im := b.screenshot(what)
	if share := inked(im); share < 0.01 || share > 0.6 {
		b.t.Errorf("%s: %.1f %% of the picture are not background", what, 100*share)
	}
	if len(b.requests) != 1 || len(b.wrong) > 0 {
		b.t.Errorf("%s: asked for %q, complains: %q", what, b.requests, b.wrong)
	}
	return s
}

// inked is the share of a picture that is not its most frequent colour.
func inked(im image.Image) float64 {
	counts := map[[3]uint32]int{}
	n, most := 0, 0
	for y := im.Bounds().Min.Y; y < im.Bounds().Max.Y; y += 3 { // a ninth of them is enough
		for x := im.Bounds().Min.X; x < im.Bounds().Max.X; x += 3 {
			r, g, b, _ := im.At(x, y).RGBA()
			k := [3]uint32{r, g, b}
			counts[k]++
			n++
			most = max(most, counts[k])
		}
	}
	return 1 - float64(most)/float64(n)
}

// contrast is that of WCAG 2.
func contrast(t *testing.T, a, b string) float64 {
	light := func(s string) float64 {
		var r, g, b int
		if _, err := fmt.Sscanf(s, "rgb(%d, %d, %d)", &r, &g, &b); err != nil {
			t.Fatalf("colour %q: %v", s, err)
		}
		return 0.2126*linearised(r) + 0.7152*linearised(g) + 0.0722*linearised(b)
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
