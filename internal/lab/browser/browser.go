// Package browser drives a real Chromium for tests that look at pages: it clicks, types, asks and takes pictures.
package browser

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Browser is a real one without a window, driven through pipes by its debugging protocol (CDP). It collects the requests of pages and
// their errors.
type Browser struct {
	t        *testing.T
	in       *os.File
	pipe     *os.File
	out      *bufio.Reader // of its pipe
	session  string
	id       int
	loaded   bool
	Requests []string // addresses, since the page was opened
	Wrong    []string // exceptions, console output, refused requests
}

const browserName = "chromium-headless-shell"

// Start starts a browser for a test, which ends it.
func Start(t *testing.T) *Browser {
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
	b := &Browser{t: t, in: in, pipe: out, out: bufio.NewReader(out)}
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
	b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Network", "Runtime", "Log"} {
		b.Call(domain+".enable", nil, nil)
	}
	return b
}

// Call sends the browser a command and waits for its answer; it notes events that come first.
func (b *Browser) Call(method string, params, result any) {
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

func (b *Browser) read() (a answer) {
	b.t.Helper()
	b.pipe.SetReadDeadline(time.Now().Add(2 * time.Minute))
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
		b.Requests = append(b.Requests, p.Request.URL)
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded":
		b.Wrong = append(b.Wrong, string(a.Params))
	}
	return a
}

// Open shows a page in a window of a width, in a medium and colour scheme, and waits until the page is loaded.
func (b *Browser) Open(url string, width int, media, scheme string) {
	b.t.Helper()
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.Call("Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.loaded, b.Requests, b.Wrong = false, nil, nil
	b.Call("Page.navigate", map[string]any{"url": url}, nil)
	for !b.loaded {
		b.read()
	}
}

// Ask evaluates an expression in the page.
func (b *Browser) Ask(expression string, result any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.Call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s", r.ExceptionDetails)
	}
	if err := json.Unmarshal(r.Result.Value, result); err != nil {
		b.t.Fatalf("%s: %v", r.Result.Value, err)
	}
}

// Screenshot takes a picture of the whole page, and keeps it in the directory that ALDIS_SCREENSHOTS names.
func (b *Browser) Screenshot(name string) image.Image {
	b.t.Helper()
	var shot struct{ Data string }
	b.Call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
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

// Inked is the share of a picture's pixels that do not have its most frequent colour.
func Inked(im image.Image) float64 {
	counts := map[[3]uint32]int{}
	n, most := 0, 0
	for y := im.Bounds().Min.Y; y < im.Bounds().Max.Y; y += 3 { // a ninth of the pixels is enough
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

// Contrast is the contrast of two colours by WCAG 2.
func Contrast(t *testing.T, a, b string) float64 {
	light := func(s string) float64 {
		var r, g, b int
		if _, err := fmt.Sscanf(s, "rgb(%d, %d, %d)", &r, &g, &b); err != nil {
			t.Fatalf("colour %q: %v", s, err)
		}
		return 0.2126*Linearised(r) + 0.7152*Linearised(g) + 0.0722*Linearised(b)
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Linearised is the light of a colour component from 0 to 255, as WCAG 2 defines it.
func Linearised(c int) float64 {
	v := float64(c) / 255
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

// Until waits until an expression is true in the page, for a minute.
func (b *Browser) Until(expression string) {
	b.t.Helper()
	var last json.RawMessage
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		b.Ask("(()=>{try{const x="+expression+";return typeof x==='boolean'?x:String(x)}catch(e){return String(e)}})()", &last)
		if string(last) == "true" {
			return
		}
	}
	var text string
	b.Ask("document.body.innerText", &text)
	b.t.Fatalf("never: %s: %s\n%s\n%q", expression, last, text, b.Wrong)
}

// Click presses the middle of the element that a selector finds, once it is there.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	quoted, _ := json.Marshal(selector)
	b.Until(fmt.Sprintf("document.querySelector(%s)!==null", quoted))
	var at struct{ X, Y float64 }
	b.Ask(fmt.Sprintf(`(()=>{const e=document.querySelector(%s);e.scrollIntoView({block:'center'});const r=e.getBoundingClientRect();return {X:r.x+r.width/2,Y:r.y+r.height/2}})()`, quoted), &at)
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		b.Call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// Press presses a key by its name: "Tab", "Enter", "1".
func (b *Browser) Press(key string) {
	b.t.Helper()
	down := map[string]any{"type": "keyDown", "key": key, "code": key}
	if len(key) == 1 {
		down["text"] = key
	}
	if code := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27}[key]; code > 0 {
		down["windowsVirtualKeyCode"] = code
	}
	if key == "Enter" {
		down["text"] = "\r"
	}
	b.Call("Input.dispatchKeyEvent", down, nil)
	down["type"] = "keyUp"
	delete(down, "text")
	b.Call("Input.dispatchKeyEvent", down, nil)
}

// Type types a text into the element that has the focus.
func (b *Browser) Type(text string) {
	b.t.Helper()
	b.Call("Input.insertText", map[string]any{"text": text}, nil)
}
