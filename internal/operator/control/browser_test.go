package control

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/edge/norm"
	"aldis/internal/edge/radio"
	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/browser"
	"aldis/internal/lab/check"
	"aldis/internal/operator/control/glance"
	"aldis/internal/site"
)

// hostileName is a hostile name of a peer, a site or a service.
const hostileName = `<script>alert(1)</script><img src=x onerror=alert(2)>`

// bridgeOf is a gateway as a page sees it; a test sets its figures.
type bridgeOf struct {
	mu      sync.Mutex
	status  api.Status
	locals  []glance.Local
	lan     any
	adverts []api.AdvertRow
	err     error
	asked   int // snapshots
	desk    *Desk
	orders  []api.Event
	*httptest.Server
}

func (b *bridgeOf) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// net64 is a status with sites of every state; the first has a hostile name.
func net64(sites, messages int, now time.Time) api.Status {
	s := api.Status{ID: 2, Name: "Ostwind", Profile: "iridium-directip", End: "terminal", Transport: "norm", NORM: api.NormStatus{Up: true}, Items: 41,
		Link: api.LinkStatus{SendBps: 4800, ReceiveBps: 4800, SendLossPct: 1, ReceiveLossPct: 1, Tariff: "octets"}}
	names := []string{"Wilhelmshaven", "Nordwind", "Kiel", "Südwind"}
	states := []string{"up", "up", "up", "listening", "up", "silent", "up", "unknown"}
	for i := range sites {
		p := api.PeerStatus{ID: uint16(10 + i), Name: fmt.Sprintf("Site %02d", i+1), Link: states[i%len(states)], LinkSince: now.Add(-time.Duration(i*7+3) * time.Minute).UTC(), ItemsHeld: 41 - i%5, FarItems: 9 + i}
		if i < len(names) {
			p.Name = names[i]
		}
		if p.Link != "unknown" {
			p.LastHeard, p.Address = now.Add(-time.Duration(i*11+2)*time.Second).UTC().Format(time.RFC3339), fmt.Sprintf("10.77.0.%d:7142", i+1)
		}
		p.Delays.Count, p.Delays.SumS = 20, float64(30+i*10)
		p.Accepted, p.Delivered, p.Received, p.Repeated = 940, 903, 512, uint64(3+i%3)
		share := messages / sites
		if share > 0 {
			p.Waiting, p.UnderWay, p.WaitingOctets = share, 4, share*310
			row := func(name string, n int, age, in time.Duration) {
				if n == 0 {
					return
				}
				q := api.QueueRow{Precedence: name, Messages: n, Octets: n * 310, Oldest: now.Add(-age).UTC()}
				if p.Link == "up" {
					q.Expected = now.Add(in).UTC()
				}
				p.Queue = append(p.Queue, q)
			}
			row("flash", share/8, 12*time.Second, 45*time.Second)
			row("immediate", share/4, 50*time.Second, 3*time.Minute)
			row("routine", share-share/8-share/4, 6*time.Minute, 17*time.Minute)
		}
		s.Peers = append(s.Peers, p)
		for k, kind := range glance.Kinds {
			s.Ledger = append(s.Ledger, api.LedgerRow{Direction: "sent", Peer: p.Name, Kind: kind, Octets: uint64(4000 / (k + 1))},
				api.LedgerRow{Direction: "received", Peer: p.Name, Kind: kind, Octets: uint64(6000 / (k + 1))})
		}
	}
	for i, adapter := range []string{"gateway", "jxta", "tak", "xmpp", "corpus", "relay"} {
		s.Adapters = append(s.Adapters, api.AdapterRow{Adapter: adapter, Direction: "sent", Kind: "payload", Octets: uint64(3000 / (i + 1))},
			api.AdapterRow{Adapter: adapter, Direction: "sent", Kind: "advertisement", Octets: uint64(900 / (i + 1))},
			api.AdapterRow{Adapter: adapter, Direction: "received", Kind: "payload", Octets: uint64(5000 / (i + 1))})
	}
	s.Fleet = fleet64(s, now)
	if len(s.Peers) > 1 {
		a, b := s.Peers[0].Name, s.Peers[1].Name
		s.Channels = []api.ChannelStatus{{Link: s.Profile, Components: [][]string{{s.Name, a}, {b}}, Speaks: []string{s.Name, a}, Sites: []api.ChannelHearer{
			{Site: s.Name, Hears: []string{a}}, {Site: a, Hears: []string{s.Name}, HearsNot: []string{b}}, {Site: b}}}}
	}
	return s
}

// fleet64 is the records that gateways of every state have given to this one.
func fleet64(s api.Status, now time.Time) *api.FleetStatus {
	f := &api.FleetStatus{PeriodS: 300, Headquarters: true, Sum: api.FleetSum{Gateways: len(s.Peers) + 1, Waiting: map[string]int{"routine": 12}, Oldest: now.Add(-time.Hour).UTC(), Bearers: 12, Up: 7, Silent: 1}}
	states := []string{"current", "current", "silent", "late", "gone", "unheard"}
	for i, p := range s.Peers {
		r := api.FleetRow{ID: p.ID, Site: p.Name, State: states[i%len(states)], Proven: i != 1, Read: now.Add(-time.Duration(i) * time.Minute).UTC(), Waiting: map[string]int{}, Bearers: 2, Up: 1, Version: "0.2", Parent: s.Name}
		if i%2 == 1 {
			r.Parent, r.Waiting = s.Peers[i-1].Name, map[string]int{"routine": 4}
		}
		f.Gateways = append(f.Gateways, r)
	}
	f.Gateways = append(f.Gateways, api.FleetRow{ID: s.ID, Site: s.Name, State: "current", Proven: true, Read: now.UTC(), Waiting: map[string]int{}, Bearers: 2, Up: 2, Version: "0.2"})
	return f
}

const pageToken = "correct-horse-battery"

func newBridge(t testing.TB, sites, messages int) *bridgeOf {
	now := time.Now()
	b := &bridgeOf{status: net64(sites, messages, now), lan: jxtabridge.Status{Far: map[uint16]jxtabridge.SiteStatus{
		10: {View: "ring(3)+ask", Told: "count", Wants: "ask", Entries: []jxtabridge.EntryStatus{{Peer: "uuid-1", Name: "Sonar", By: []string{"ring(3)"}}, {Peer: "uuid-2", Name: hostileName, By: []string{"ring(3)", "ask"}}}}, 11: {}}}}
	b.locals = []glance.Local{{Name: "Ops console", ID: "cbid-0001", Kind: "signed"}, {Name: "Track server", ID: "cbid-0002", Kind: "signed", Waiting: 3}, {Name: "Chart plotter", ID: "uuid-0003", Kind: "2.2"}}
	travel := []api.Travel{}
	for i, p := range b.status.Peers {
		travel = append(travel, []api.Travel{{Site: p.Name, State: "held"}, {Site: p.Name, State: "waits", Why: "others go first"}, {Site: p.Name, State: "stays", Why: "rule charts: local"}}[i%3])
	}
	for i, name := range []string{"Recognised picture", "Weather", "Logistics", "Charts", "Chat: bridge", hostileName} {
		row := api.AdvertRow{Origin: "local", Group: "jxta-NetGroup", Type: []string{"pipe", "module-spec", "peer"}[i%3], Name: name, ID: fmt.Sprintf("urn:jxta:uuid-59616261646162614E504720503250338E3E786229EA460DADC1A176B69B731%dA04", i), Octets: 700 + 90*i, LifetimeS: 7200, Signed: i%2 == 0, Sites: travel}
		if i == 4 && len(b.status.Peers) > 0 {
			row.Origin, row.Sites = b.status.Peers[0].Name, []api.Travel{}
		}
		b.adverts = append(b.adverts, row)
	}
	b.open(Source{Rehearsing: &Rehearsing{Links: []Link{{"iridium-directip", "as here"}, {"hf-2400", "HF"}}},
		Authority: func() Authority { return Authority{Group: -1, Token: pageToken, Way: "ask the captain"} }, Names: func() []string { return nil }, Log: slog.New(slog.DiscardHandler), Version: "0.3.0", Started: now.Add(-27 * time.Hour),
		Snapshot: func(context.Context) (Snapshot, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.asked++
			status := b.status
			status.Peers = slices.Clone(status.Peers) // as in gateway.Status: nothing is shared
			return Snapshot{Gateway: status, LAN: b.lan, Locals: slices.Clone(b.locals)}, b.err
		},
		Trouble: func() string { return "" }, Radio: func() radio.Stats { return radio.Stats{} }, NORM: func() norm.Stats { return norm.Stats{} },
		Order: func(ev api.Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.orders = append(b.orders, ev)
			if ev, ok := ev.(api.Silence); ok {
				b.status.Silence = api.SilenceStatus{On: ev.On, Messages: 12, AirtimeS: 9, LeftS: time.Until(ev.Until).Seconds()}
				if !ev.Until.IsZero() {
					b.status.Silence.Until = ev.Until.UTC().Format(time.RFC3339)
				}
			}
		},
		AdvertKeys: func(context.Context) ([]site.EntryKey, error) { return make([]site.EntryKey, len(b.adverts)), nil },
		AdvertRows: func(context.Context, []site.EntryKey) ([]api.AdvertRow, error) { return b.adverts, nil },
	})
	if t != nil {
		t.Cleanup(func() { b.Close() })
	}
	return b
}

// open starts to serve a source, with a history.
func (b *bridgeOf) open(src Source) {
	if b.Server != nil {
		b.Close()
	}
	b.desk = New(src, prometheus.NewRegistry())
	b.past(time.Now())
	b.Server = httptest.NewServer(b.desk)
}

// past gives the desk a history: a day in which the link was used more or less.
func (b *bridgeOf) past(now time.Time) {
	l := b.desk.live
	l.history = glance.NewHistory(now.Add(-27 * time.Hour))
	s := api.Status{}
	for _, row := range b.status.Ledger {
		row.Octets = 0
		s.Ledger = append(s.Ledger, row)
	}
	s.Adapters = slices.Clone(b.status.Adapters)
	for m := 27 * 60; m >= 0; m-- {
		for i := range s.Adapters {
			s.Adapters[i].Octets += b.status.Adapters[i].Octets * uint64(1+m/45%5) / 60
		}
		for i := range s.Ledger {
			wave := 1 + (m/45)%5*(m/7%3)
			s.Ledger[i].Octets += b.status.Ledger[i].Octets * uint64(wave) / uint64(60+8*len(b.status.Peers))
		}
		l.history.Note(now.Add(-time.Duration(m)*time.Minute), s)
	}
	b.status.Ledger = s.Ledger
	for i := range b.status.Ledger {
		b.status.Ledger[i].Octets += 40
	}
}

// look checks rules that hold for every view, in every window and colour.
const look = `(() => {
  const rgb = c => c.match(/[\d.]+/g).map(Number)
  const lum = c => { const [r,g,b] = rgb(c).map(v => { v /= 255; return v <= 0.04045 ? v/12.92 : Math.pow((v+0.055)/1.055, 2.4) }); return 0.2126*r+0.7152*g+0.0722*b }
  const paper = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; const p = rgb(c); if (p.length < 4 || p[3] > 0.9) return c } return 'rgb(255,255,255)' }
  const visible = e => { const r = e.getBoundingClientRect(); const st = getComputedStyle(e); return r.width > 1 && r.height > 1 && st.visibility !== 'hidden' && st.display !== 'none' }
  const faint = [], nameless = [], twice = []
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('svg,dialog:not([open])') || !visible(e) || e.disabled || e.closest(':disabled')) continue
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue
    if (e.closest('.skip')) continue
    const a = lum(getComputedStyle(e).color), b = lum(paper(e))
    const c = (Math.max(a,b)+0.05)/(Math.min(a,b)+0.05)
    if (c < 4.5) faint.push(e.textContent.trim().slice(0,40)+' '+c.toFixed(2))
  }
  const ids = new Set()
  for (const e of document.querySelectorAll('[id]')) { if (ids.has(e.id)) twice.push(e.id); ids.add(e.id) }
  for (const e of document.querySelectorAll('button,a,input,select,[role=button],[role=img],[role=region],[tabindex]')) {
    if (e.id === 'main' || !visible(e)) continue
    const name = e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.[0]?.textContent.trim() || e.getAttribute('aria-labelledby')
    if (!name) nameless.push(e.outerHTML.slice(0,120))
  }
  for (const e of document.querySelectorAll('input,select')) if (!e.labels?.length) nameless.push('no label: '+e.outerHTML.slice(0,120))
  const root = document.documentElement
  return {Faint: faint, Nameless: nameless, Twice: twice, Wide: root.scrollWidth, Window: root.clientWidth, Heads: [...document.querySelectorAll('th')].filter(e => !e.scope).length,
    Landmarks: ['header','nav','main','footer'].filter(t => document.querySelectorAll(t).length !== 1), Lang: root.lang, Current: document.querySelectorAll('nav [aria-current=page]').length,
    Foreign: [...document.querySelectorAll('main script,main img,main iframe,main style')].length, Text: document.body.innerText}
})()`

type seen struct {
	Faint, Nameless, Twice, Landmarks []string
	Wide, Window                      float64
	Heads, Current, Foreign           int
	Lang, Text                        string
}

// axe runs axe-core on the present view if ALDIS_AXE names its axe.min.js (of npm pack axe-core). The checks of look run
// without it.
func axe(t *testing.T, b *browser.Browser, name string) {
	t.Helper()
	file := os.Getenv("ALDIS_AXE")
	if file == "" {
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	b.Ask("(()=>{window.axeSays=null;"+string(text)+`;axe.run().then(r=>{window.axeSays=r.violations.map(v=>v.id+': '+v.nodes.map(n=>n.html.slice(0,100)).join(' '))});return []})()`, &found)
	b.Until("window.axeSays!==null")
	b.Ask("window.axeSays", &found)
	for _, f := range found {
		t.Errorf("%s: axe: %s", name, f)
	}
}

// view checks the present view, and takes its picture.
func view(t *testing.T, b *browser.Browser, name string) seen {
	t.Helper()
	var s seen
	b.Ask(look, &s)
	in := check.In(t, name)
	check.Equal(in, "texts of little contrast", strings.Join(s.Faint, "; "), "")
	check.Equal(in, "controls without a name", strings.Join(s.Nameless, "; "), "")
	check.Equal(in, "ids that are there twice", strings.Join(s.Twice, " "), "")
	check.Equal(in, "landmarks that are not there once", strings.Join(s.Landmarks, " "), "")
	check.True(in, "the page is no wider than its window", s.Wide <= s.Window, s.Wide, s.Window)
	check.Equal(in, "heads of tables without a scope", s.Heads, 0)
	check.Equal(in, "current views", s.Current, 1)
	check.Equal(in, "elements that no view makes", s.Foreign, 0)
	check.Equal(in, "language", s.Lang, "en")
	check.Equal(in, "complaints of the browser", strings.Join(b.Wrong, "\n"), "")
	axe(t, b, name)
	if share := browser.Inked(b.Screenshot(name)); share < 0.01 || share > 0.9 {
		t.Errorf("%s: %.1f %% of the picture are not background", name, 100*share)
	}
	return s
}

// TestPageInEveryWindow: four widths, both colours, every view.
func TestPageInEveryWindow(t *testing.T) {
	g := newBridge(t, 6, 160)
	b := browser.Start(t)
	for _, width := range []int{375, 768, 1280, 1920} {
		for _, scheme := range []string{"light", "dark"} {
			for _, what := range []struct{ hash, there string }{
				{"now", "document.querySelectorAll('tbody tr').length>=6"},
				{"air", "document.querySelectorAll('svg.plot path').length>=7"},
				{"map", "document.querySelectorAll('.services li').length===6"},
				{"whatif", "document.querySelectorAll('form select[name=link] option').length===2"},
				{"fleet", "document.querySelectorAll('.tile').length>=14"},
			} {
				b.Open(fmt.Sprintf("%s/?%d%s%s#%[4]s", g.URL, width, scheme, what.hash), width, "screen", scheme) // of the same address a browser turns the anchor alone
				b.Until("document.querySelector('#live').classList.contains('on')")
				b.Until(what.there)
				name := fmt.Sprintf("%s-%d-%s", what.hash, width, scheme)
				s := view(t, b, name)
				check.Contains(t, name, s.Text, "Not all is well: 5 of 6 sites answer")
				for _, r := range b.Requests {
					check.True(t, "a request goes to the gateway", strings.HasPrefix(r, g.URL+"/"), r)
				}
			}
		}
	}
}

// TestPageIsWorked: clicks, keys and orders work.
func TestPageIsWorked(t *testing.T) {
	g := newBridge(t, 4, 0)
	g.set(func() {
		g.status.Peers[1].Name, g.locals[0].Name = hostileName, hostileName
		g.adverts[0].Sites[1].Site = hostileName // all adverts share their sites
		g.adverts[0].Name = "\u202egnp.exe\u200b\nFAKE" + strings.Repeat("A", 10_000)
		for i := range g.status.Ledger {
			if g.status.Ledger[i].Peer == "Nordwind" {
				g.status.Ledger[i].Peer = hostileName
			}
		}
	})
	b := browser.Start(t)
	b.Open(g.URL+"/", 1280, "screen", "light")
	b.Until("document.querySelectorAll('tbody tr').length===4")
	s := view(t, b, "hostile-now")
	check.Contains(t, "the name is text", s.Text, "<script>alert(1)</script>")

	// Something happens, and the page shows it without a request.
	g.set(func() { g.status.Peers[0].Link = "silent" })
	b.Until("document.querySelector('#verdict').textContent.startsWith('Not all is well: 3 of 4')")
	check.Equal(t, "alarms", evaluated(b, "document.querySelectorAll('.alarms .bad').length"), "1")

	// Keys change the view, and the mark moves along.
	for i, name := range []string{"now", "messages", "air", "map", "whatif", "fleet"} {
		if name == "messages" {
			continue // its data come from another desk
		}
		b.Press(fmt.Sprint(i + 1))
		b.Until(fmt.Sprintf("document.querySelector('nav [aria-current]').hash==='#%s'", name))
	}
	// A new record of a gateway of the fleet changes the tree map and the table without a request.
	b.Until("document.querySelectorAll('.tile.current').length===3")
	b.Until("document.querySelector('tr.sum').innerText.includes('12 routine')")
	check.Contains(t, "who hears whom", evaluated(b, "document.querySelector('.tile.channel title').textContent"), "first to speak for others: ")
	check.Contains(t, "whom a site does not hear", evaluated(b, "document.querySelector('.tiles').textContent"), ", does not hear ")
	row := "document.querySelector('tr[data-key=told-10]').innerText"
	check.Contains(t, "its view of peers here", evaluated(b, row), "view count, wants ask")
	check.Contains(t, "its view of its own peers", evaluated(b, row), "view ring(3)+ask: 1 asked for by name, 2 by ring(3)")
	check.Contains(t, "a site that tells of all", evaluated(b, "document.querySelector('tr[data-key=told-11]').innerText"), "view complete")
	check.Contains(t, "by which part a peer is here", evaluated(b, "document.querySelector('[data-key=by-10]').textContent"), "Sonar by ring(3)")
	check.Contains(t, "the name is text", view(t, b, "hostile-fleet").Text, "<script>alert(1)</script>")
	g.set(func() { g.lan = jxtabridge.Status{Far: map[uint16]jxtabridge.SiteStatus{10: {View: "tree(4)"}}} })
	b.Until(row + ".includes('view tree(4)')")
	g.set(func() {
		f := *g.status.Fleet
		f.Gateways = slices.Clone(f.Gateways)
		f.Gateways[0].State, f.Sum.Waiting = "late", map[string]int{"routine": 31}
		g.status.Fleet = &f
	})
	b.Until("document.querySelectorAll('.tile.late').length===2 && document.querySelector('tr.sum').innerText.includes('31 routine')")
	g.set(func() {
		p := &g.status.Peers[1]
		p.Bearers = []api.PeerBearer{{Bearer: "sat", Link: "up", Used: true}}
		g.status.Bearers = []api.BearerStatus{{Name: "sat", Direct: &api.DirectStatus{Sessions: []api.DirectSession{{Peer: p.Name, Since: time.Now().Add(-time.Hour), Spared: 12345}}}}}
	})
	b.Press("1")
	b.Until("/sat: .*; direct session for 1 h.*, 12 kB/.test(document.querySelector('tr[data-key=site-11] .way')?.textContent)")
	view(t, b, "direct-session")
	b.Press("3")
	b.Click("[data-do=by][value=adapters]")
	b.Until("document.querySelectorAll('svg.plot path').length===12 && document.querySelectorAll('.legend li').length===6")
	check.Contains(t, "octets of an adapter by kind", evaluated(b, "document.querySelector('.legend').textContent"), "JXTA")
	view(t, b, "air-by-adapter")
	b.Ask("(()=>{document.activeElement.blur();return true})()", new(bool))
	b.Press("4")
	b.Until("document.querySelectorAll('.services li').length===6")
	s = view(t, b, "hostile-map")
	check.Contains(t, "a name that turns and hides is seen as it is", s.Text, "\uFFFDgnp.exe\uFFFD\uFFFDFAKEA")
	check.True(t, "and cut", !strings.Contains(s.Text, strings.Repeat("A", 300)))

	// A service shows where it is known, and why it is not elsewhere, by mouse and by keyboard.
	b.Click(".services li:nth-child(2) button")
	b.Until("document.querySelector('.detail h2')?.textContent==='Weather'")
	b.Until("document.querySelector('.detail').innerText.includes('rule charts: local')")
	check.Equal(t, "rings", evaluated(b, "document.querySelectorAll('.node.held,.node.waits,.node.stays').length"), "4")
	b.Ask("(()=>{document.querySelector('g.node').focus();return true})()", new(bool))
	b.Press("Enter")
	b.Until("document.querySelector('g.node').getAttribute('aria-pressed')==='true'")
	b.Press("Escape")
	b.Until("document.querySelector('g.node').getAttribute('aria-pressed')==='false'")

	// Every control is reached by Tab, and shows its focus.
	b.Press("1")
	b.Until("document.querySelectorAll('tbody tr').length>=4")
	var reached map[string]bool
	b.Ask("(()=>{window.reached={};document.activeElement.blur();addEventListener('focusin',e=>{const s=getComputedStyle(e.target);reached[e.target.outerHTML.slice(0,60)]=s.outlineStyle!=='none'});return true})()", new(bool))
	for range 25 {
		b.Press("Tab")
	}
	b.Ask("reached", &reached)
	check.True(t, "controls reached by Tab", len(reached) >= 12, len(reached))
	for what, ring := range reached {
		check.True(t, "the focus is seen: "+what, ring)
	}

	// An order needs the token; after a wrong one the page asks again, the right one is kept.
	b.Click("[data-do=hush]")
	b.Until("document.querySelector('dialog').open")
	b.Ask("(()=>{document.querySelector('dialog select').value='60';return true})()", new(bool))
	b.Click("dialog button.main")
	b.Until("document.querySelector('dialog input[type=password]')!==null")
	b.Type("wrong")
	b.Click("dialog button.main")
	b.Until("document.querySelector('dialog').innerText.includes('not the token')")
	b.Wrong = nil // the browser notes the refusal
	b.Type(pageToken)
	b.Press("Enter")
	b.Until("document.querySelector('#verdict').textContent.startsWith('Not all is well')&&document.querySelector('[data-do=speak]')!==null")
	b.Until("/59 min|1 h left/.test(document.querySelector('main').innerText)")
	b.Click("[data-do=speak]")
	b.Until("document.querySelector('[data-do=hush]')!==null")
	g.set(func() { check.Equal(t, "orders obeyed", len(g.orders), 2) })
	check.Equal(t, "the token is kept nowhere", evaluated(b, "JSON.stringify({...localStorage,...sessionStorage}).includes('correct')+document.cookie"), "false")

	// The colours are switched, and stay so after a reload.
	b.Click("#theme")
	b.Until("getComputedStyle(document.body).backgroundColor==='rgb(13, 18, 23)'")
	b.Open(g.URL+"/?again#now", 1280, "screen", "light")
	b.Until("getComputedStyle(document.body).backgroundColor==='rgb(13, 18, 23)'")

	// If the gateway goes away, the page says so, whether it has received something before or not.
	b.Until("document.querySelector('#verdict').textContent.startsWith('Not all is well')")
	g.CloseClientConnections()
	g.Close()
	b.Until("document.querySelector('#verdict').textContent.includes('what is shown is old')")
}

// TestPageWithoutAGateway: a page that has loaded, and receives nothing after that, says so.
func TestPageWithoutAGateway(t *testing.T) {
	g := newBridge(t, 2, 0)
	deaf := httptest.NewServer(withoutEvents(g.Config.Handler))
	defer deaf.Close()
	b := browser.Start(t)
	b.Open(deaf.URL+"/#now", 1280, "screen", "light")
	b.Until("document.querySelector('main').innerText.includes('The gateway does not answer')")
}

func withoutEvents(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			http.Error(w, "the loop does not answer", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func evaluated(b *browser.Browser, expression string) string {
	var text string
	b.Ask("String("+expression+")", &text)
	return text
}
