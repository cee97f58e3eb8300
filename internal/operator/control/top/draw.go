package top

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"

	"aldis/internal/gateway/api"
	"aldis/internal/operator/control/glance"
)

var (
	plain  = tcell.StyleDefault
	bold   = plain.Bold(true)
	soft   = plain.Dim(true)
	good   = plain.Foreground(tcell.ColorGreen)
	warn   = plain.Foreground(tcell.ColorYellow)
	bad    = plain.Foreground(tcell.ColorRed).Bold(true)
	title  = plain.Reverse(true)
	levels = map[string]tcell.Style{"good": good.Bold(true), "warn": warn.Bold(true), "bad": bad, "note": soft}
)

// states are the words for the state of a link, as on the page.
var states = map[string]struct {
	word  string
	style tcell.Style
}{"up": {"up", good}, "silent": {"DOWN", bad}, "listening": {"silent", warn}, "unknown": {"not heard", soft}, "unmet": {"not met", soft}, "gone": {"gone", soft}}

// put writes a text into so many columns from x on, and returns the next column. Only put writes on the screen, so control
// characters in a peer's name end here.
func (t *top) put(x, y, width int, text string, style tcell.Style) int {
	text = glance.Plain(text)
	for end := x + width; text != "" && x < end; {
		rest, w := t.screen.Put(x, y, text, style)
		if w == 0 || x+w > end {
			break
		}
		x, text = x+w, rest
	}
	return x
}

// line is one line of a view: cells with a style each.
type line []cell

type cell struct {
	text  string
	width int // columns; 0: as many as the text has
	style tcell.Style
	right bool
}

func (t *top) line(y, width int, l line) {
	x := 0
	for _, c := range l {
		w := c.width
		if w == 0 {
			w = width - x
		}
		text := c.text
		if n := len([]rune(text)); c.right && n < w {
			text = strings.Repeat(" ", w-n) + text
		}
		end := t.put(x, y, min(w, width-x), text, c.style)
		if c.width > 0 {
			x += w + 1
		} else {
			x = end + 1
		}
	}
}

func (t *top) draw(now time.Time) {
	t.screen.Clear()
	w, h := t.screen.Size()
	name := "Aldis"
	if v := t.now; v != nil {
		name = fmt.Sprintf("%s  node %d, %s, %s, up %s", v.Name, v.ID, v.Profile, v.End, span(now.Sub(v.Started)))
	}
	for x := range w {
		t.screen.Put(x, 0, " ", title)
	}
	t.put(1, 0, w-1, name, title.Bold(true))
	clock := now.UTC().Format("15:04:05Z")
	t.put(max(w-len(clock)-1, 0), 0, len(clock), clock, title)
	switch {
	case t.lost != "":
		t.put(1, 1, w-1, "Not connected: "+t.lost, bad)
	case t.now != nil:
		t.put(1, 1, w-1, t.now.Words, levels[t.now.Level])
	}
	var lines []line
	keys := "1 Now  2 Messages  arrows scroll  q ends"
	switch {
	case t.view == viewNow && t.now != nil:
		lines = nowLines(now, t.now)
	case t.view == viewMessages && t.opened != nil:
		lines, keys = lifeLines(t.opened), "Esc back  1 Now  2 Messages  q ends"
	case t.view == viewMessages:
		lines, keys = t.messageLines(now), "1 Now  arrows choose  Enter its life  w only what waits  q ends"
	}
	room := max(h-4, 0)
	if t.view == viewNow {
		t.scroll = min(t.scroll, max(len(lines)-room, 0))
		lines = lines[min(t.scroll, len(lines)):]
	} else if t.opened == nil && len(lines) > 1 { // the chosen message stays on the screen, and the head too
		from := min(max(t.chosen-max(room-2, 0), 0), len(lines)-2)
		lines = append(lines[:1:1], lines[1+from:]...)
	}
	for i, l := range lines[:min(len(lines), room)] {
		t.line(3+i, w, l)
	}
	t.put(1, h-1, w-1, keys, soft)
	t.screen.Show()
}

// fleetText summarises the roll-up in a line; gateway fleet shows the rest.
func fleetText(f *api.FleetStatus) string {
	states := map[string]int{}
	for _, r := range f.Gateways {
		states[r.State]++
	}
	text := fmt.Sprintf("fleet: %d of %d gateways current", states["current"], len(f.Gateways))
	for _, s := range []string{"silent", "late", "gone", "unheard"} {
		if states[s] > 0 {
			text += fmt.Sprintf(", %d %s", states[s], s)
		}
	}
	waiting := 0
	for _, n := range f.Sum.Waiting {
		waiting += n
	}
	return fmt.Sprintf("%s; %d messages wait there", text, waiting)
}

func nowLines(now time.Time, v *glance.View) (lines []line) {
	for _, a := range v.Alarms {
		text := a.Text
		if !a.Since.IsZero() {
			text += ", for " + span(now.Sub(a.Since))
		}
		lines = append(lines, line{{map[string]string{"bad": "ALARM", "warn": "LOOK", "note": "note"}[a.Level], 6, levels[a.Level], false}, {text, 0, plain, false}})
	}
	if s := v.Silence; s.On && !s.Until.IsZero() {
		lines = append(lines, line{{"", 6, plain, false}, {fmt.Sprintf("the silence lasts until %s, %s yet", s.Until.Format("15:04Z"), span(s.Until.Sub(now))), 0, warn, false}})
	}
	if len(lines) > 0 {
		lines = append(lines, nil)
	}
	lines = append(lines, line{{"sends " + used(v.Out) + ", receives " + used(v.In) + " in the last minute", 0, plain, false}})
	for _, b := range v.Bearers {
		lines = append(lines, line{{b.Name, 18, plain, false}, {"sends " + used(b.Out) + ", receives " + used(b.In), 0, plain, false}})
	}
	for _, m := range v.Machines {
		text := m.Text
		if !m.Since.IsZero() {
			text += ", for " + span(now.Sub(m.Since))
		}
		lines = append(lines, line{{m.At, 22, plain, false}, {text, 0, plain, false}})
	}
	if f := v.Fleet; f != nil {
		lines = append(lines, line{{fleetText(f), 0, plain, false}})
	}
	lines = append(lines, nil)
	head := func(text string, width int, right bool) cell { return cell{text, width, bold, right} }
	lines = append(lines, line{head("SITE", 18, false), head("LINK", 9, false), head("FOR", 9, true), head("HEARD", 9, true), head("SENDS", 10, true), head("RECEIVES", 10, true),
		head("TAKES", 11, true), head("WAITS", 6, true), head("ALL THERE", 20, true)})
	for _, s := range v.Sites {
		st, ok := states[s.State]
		if !ok {
			st.word = s.State
		}
		since, heard, style := "", "never", plain
		if !s.Since.IsZero() {
			since = span(now.Sub(s.Since))
		}
		if !s.Heard.IsZero() {
			heard = span(now.Sub(s.Heard))
		}
		if s.State == "silent" {
			style = bad
		}
		lines = append(lines, line{
			{s.Name, 18, style, false},
			{st.word, 9, st.style, false},
			{since, 9, plain, true},
			{heard, 9, plain, true},
			{rate(s.Out.Bps), 10, plain, true},
			{rate(s.In.Bps), 10, plain, true},
			{fmt.Sprintf("%d-%d s", s.ShortS, s.LongS), 11, plain, true},
			{fmt.Sprint(s.Waiting + s.UnderWay), 6, plain, true},
			{there(now, s.Queue), 20, plain, true},
		})
		for _, w := range s.Ways {
			mark := "  "
			if w.Used {
				mark = "* "
			}
			lines = append(lines, line{{"", 1, plain, false}, {mark + w.Text(), 0, soft, false}})
		}
	}
	lines = append(lines, nil)
	if len(v.Queue) == 0 {
		if n, _ := v.Waiting(); n > 0 {
			return append(lines, line{{fmt.Sprintf("Nothing waits for its turn; under way or held: %d.", n), 0, soft, false}})
		}
		return append(lines, line{{"Nothing waits.", 0, soft, false}})
	}
	lines = append(lines, line{
		head("WAITS", 18, false),
		head("MESSAGES", 9, true),
		head("OCTETS", 9, true),
		head("OLDEST", 9, true),
		head("ALL THERE", 20, true),
	})
	for _, q := range v.Queue {
		lines = append(lines, line{
			{q.Precedence, 18, plain, false},
			{fmt.Sprint(q.Messages), 9, plain, true},
			{fmt.Sprint(q.Octets), 9, plain, true},
			{span(now.Sub(q.Oldest)), 9, plain, true},
			{there(now, []glance.Queue{q}), 20, plain, true},
		})
	}
	return lines
}

func (t *top) messageLines(now time.Time) (lines []line) {
	if t.problem != "" {
		return []line{{{t.problem, 0, bad, false}}}
	}
	head := func(text string, width int, right bool) cell { return cell{text, width, bold, right} }
	lines = append(lines, line{
		head("MESSAGE", 15, false),
		head("TO", 14, false),
		head("PRECEDENCE", 10, false),
		head("OCTETS", 7, true),
		head("STATE", 13, false),
		head("BEHIND", 6, true),
		head("THERE", 14, true),
		head("FROM, ABOUT", 0, false),
	})
	for i, m := range t.list.Messages {
		style := plain
		if i == t.chosen {
			style = title
		}
		var sites []string
		for _, r := range m.Recipients {
			sites = append(sites, r.Site)
		}
		behind, expected := "", ""
		if m.State == api.StateWaiting && !m.Held {
			behind = fmt.Sprint(m.Behind.Messages)
		}
		if !m.Expected.IsZero() {
			expected = "in " + span(m.Expected.Sub(now))
		}
		state := strings.ReplaceAll(m.State, "_", " ")
		if m.Held {
			state = "held"
		} else if len(m.Recipients) == 1 {
			state = strings.ReplaceAll(m.Recipients[0].State, "_", " ")
		}
		about := cmp.Or(m.FromName, m.From)
		if m.Label != "" || m.PipeName != "" {
			about += ": " + cmp.Or(m.Label, m.PipeName)
		}
		lines = append(lines, line{
			{m.ID, 15, style, false},
			{strings.Join(sites, " "), 14, style, false},
			{m.Precedence, 10, style, false},
			{fmt.Sprint(m.Octets), 7, style, true},
			{state, 13, style, false},
			{behind, 6, style, true},
			{expected, 14, style, true},
			{about, 0, style, false},
		})
	}
	if len(t.list.Messages) == 0 {
		lines = append(lines, line{{"None.", 0, soft, false}})
	}
	return lines
}

// lifeLines is one message with its history.
func lifeLines(m *api.MessageRow) (lines []line) {
	say := func(what, text string) {
		if text != "" {
			lines = append(lines, line{{what, 12, soft, false}, {text, 0, plain, false}})
		}
	}
	say("message", m.ID)
	say("from", cmp.Or(m.FromName, m.From))
	say("to", cmp.Or(m.PipeName, m.ToPipe))
	say("about", m.Label)
	say("precedence", m.Precedence)
	say("octets", fmt.Sprintf("%d, %d coded", m.Octets, m.Coded))
	for _, r := range m.Recipients {
		say(r.Site, strings.ReplaceAll(r.State, "_", " ")+" "+r.Detail)
	}
	lines = append(lines, nil)
	for _, e := range m.Life {
		at := "-"
		if !e.At.IsZero() {
			at = e.At.UTC().Format("15:04:05Z")
		}
		lines = append(lines, line{{at, 12, soft, false}, {strings.TrimSpace(e.What + " " + e.Site + " " + e.Detail), 0, plain, false}})
	}
	return lines
}

// there is the time at which the messages of several queues will have arrived.
func there(now time.Time, queues []glance.Queue) string {
	var last time.Time
	unknown := 0
	for _, q := range queues {
		if q.Expected.After(last) {
			last = q.Expected
		}
		unknown += q.Unknown
	}
	switch {
	case unknown > 0 && last.IsZero():
		return "nobody can tell"
	case last.IsZero():
		return "-"
	case unknown > 0:
		return last.UTC().Format("15:04Z") + ", not all"
	}
	return last.UTC().Format("15:04Z") + ", in " + span(last.Sub(now))
}

func used(u glance.Use) string {
	if u.Percent < 0 {
		return rate(u.Bps)
	}
	return fmt.Sprintf("%s (%d %%)", rate(u.Bps), u.Percent)
}

func rate(bps int) string {
	switch {
	case bps < 1000:
		return fmt.Sprintf("%d bit/s", bps)
	case bps < 1e6:
		return fmt.Sprintf("%.1f kb/s", float64(bps)/1e3)
	}
	return fmt.Sprintf("%.1f Mb/s", float64(bps)/1e6)
}

// span is a length of time in its two largest units.
func span(d time.Duration) string {
	d = max(d, 0)
	switch s := int(d.Seconds()); {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%dd%dh", s/86400, s/3600%24)
	}
}
