package profile

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"aldis/profiles"
)

// maxFile bounds a profile file; the embedded ones are about 3 kB.
const maxFile = 64 << 10

// FieldError is one mistake in a profile file.
type FieldError struct {
	File    string
	Line    int    // counted from 1; 0 when the key is not in the file
	Key     string // with its section: "gateway.window"
	Problem string
}

// Error names the field and the mistake in it.
func (e *FieldError) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Key == "" {
		return where + ": " + e.Problem
	}
	return where + ": " + e.Key + ": " + e.Problem
}

// ErrUnknown is wrapped when a name is neither an embedded profile nor a path.
var ErrUnknown = errors.New("no such profile")

// Names lists the embedded profiles in alphabetical order.
func Names() []string {
	entries, err := profiles.Files.ReadDir(".")
	if err != nil {
		return nil // an embedded root can always be read
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	slices.Sort(names)
	return names
}

// Source is the file of an embedded profile as written, comments included.
func Source(name string) ([]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("profile: %q: %w; there are %s", name, ErrUnknown, strings.Join(Names(), ", "))
	}
	return profiles.Files.ReadFile(name + ".toml")
}

// Load gives the embedded profile of that name, or reads the file when nameOrPath has a slash or ends in ".toml".
func Load(nameOrPath string, read func(string) ([]byte, error)) (Profile, error) {
	if !strings.Contains(nameOrPath, "/") && !strings.HasSuffix(nameOrPath, ".toml") {
		data, err := Source(nameOrPath)
		if err != nil {
			return Profile{}, err
		}
		return Decode(path.Join("profiles", nameOrPath+".toml"), data)
	}
	data, err := read(nameOrPath)
	if err != nil {
		return Profile{}, fmt.Errorf("profile: %w", err)
	}
	return Decode(nameOrPath, data)
}

// Decode reads one profile. Its error joins a *FieldError for every mistake: unknown and missing keys, wrong types and
// values that Validate refuses. Broken TOML gives a single one.
func Decode(file string, data []byte) (Profile, error) {
	if len(data) > maxFile {
		return Profile{}, &FieldError{File: file, Problem: fmt.Sprintf("has %d octets, at most %d are read", len(data), maxFile)}
	}
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		var de *toml.DecodeError
		if errors.As(err, &de) {
			row, _ := de.Position()
			return Profile{}, &FieldError{File: file, Line: row, Problem: de.Error()}
		}
		return Profile{}, &FieldError{File: file, Problem: err.Error()}
	}
	d := decoder{file: file, lines: keyLines(data), seen: map[string]bool{}}
	var p Profile
	d.walk(&p, tree)
	for _, key := range required {
		if !d.has(key) {
			d.fail(key, "is missing")
		}
	}
	if len(d.errs) > 0 {
		// Values of wrong keys stay zero and would be reported twice; values that were read are still checked.
		d.errs = append(d.errs, d.unreported(p.problems())...)
		return Profile{}, join(d.errs)
	}
	if p.StateShare == 0 {
		p.StateShare = defaultStateShare
	}
	return p, p.Validate(file, d.lines)
}

// defaultStateShare leaves three quarters of a link to messages. More delays them, less keeps new peers waiting.
const defaultStateShare = 25

// required are the keys without a default. A direction's key may stand in [both] instead.
var required = []string{
	"name", "summary", "link.medium", "link.mtu_octets", "up.rate_bps", "down.rate_bps", "up.delay_ms", "down.delay_ms",
	"gateway.datagram_octets", "gateway.segment_octets", "gateway.window", "gateway.ack_delay_ms",
	"gateway.probe_interval_ms", "gateway.gap_age_ms", "gateway.grtt_ms", "gateway.bundle_ms",
}

// oldNames maps the names of keys in earlier versions to their present names, without their section: "hole_age_ms": "gap_age_ms".
var oldNames = map[string]string{}

type decoder struct {
	file  string
	lines map[string]int
	seen  map[string]bool // keys that the file has; false: only under an old name
	errs  []*FieldError
}

func (d *decoder) fail(key, format string, args ...any) {
	d.errs = append(d.errs, &FieldError{d.file, d.lines[key], key, fmt.Sprintf(format, args...)})
}

// has tells whether a required key was given, well or badly.
func (d *decoder) has(key string) bool {
	if _, ok := d.seen[key]; ok {
		return true
	}
	section, rest, _ := strings.Cut(key, ".")
	_, both := d.seen["both."+rest]
	return both && (section == "up" || section == "down")
}

// unreported leaves out problems with a key that already has an error, or that is absent.
func (d *decoder) unreported(problems []problem) []*FieldError {
	bad := map[string]bool{}
	for _, fe := range d.errs {
		bad[fe.Key] = true
	}
	var errs []*FieldError
	for _, pr := range problems {
		key := lineKey(d.lines, pr.key)
		if !bad[key] && !bad[pr.key] && d.seen[key] {
			errs = append(errs, &FieldError{d.file, d.lines[key], key, pr.text})
		}
	}
	return errs
}

// walk reads the known keys in the order of the sections, [both] before [up] and [down], which override it.
func (d *decoder) walk(p *Profile, tree map[string]any) {
	top := map[string]any{}
	known := map[string]func(map[string]any){
		"link":    func(t map[string]any) { d.fields("link.", t, linkFields(p)) },
		"gateway": func(t map[string]any) { d.fields("gateway.", t, gatewayFields(p)) },
		"p_mul":   func(t map[string]any) { d.fields("p_mul.", t, pmulFields(&p.PMulUse)) },
		"both": func(t map[string]any) {
			d.fields("both.", t, directionFields(&p.Up))
			p.Down = p.Up
		},
		"up":   func(t map[string]any) { d.fields("up.", t, directionFields(&p.Up)) },
		"down": func(t map[string]any) { d.fields("down.", t, directionFields(&p.Down)) },
	}
	for key, v := range tree {
		if known[key] == nil {
			top[key] = v
		}
	}
	d.fields("", top, map[string]any{"name": &p.Name, "summary": &p.Summary})
	for _, section := range []string{"link", "both", "up", "down", "gateway", "p_mul"} {
		switch t := tree[section].(type) {
		case nil:
		case map[string]any:
			known[section](t)
		default:
			d.fail(section, "must be a section: [%s]", section)
		}
	}
}

func linkFields(p *Profile) map[string]any {
	return map[string]any{
		"medium": medium{&p.Shared}, "turnaround_ms": &p.Turnaround, "max_hold_ms": &p.MaxHold, "key_up_ms": &p.KeyUp,
		"mtu_octets": &p.MTU, "frame_overhead_octets": &p.FrameOverhead, "reorder": &p.Reorder, "tariff": &p.Tariff, "tariff_unit_octets": &p.UnitOctets,
		"handover_every_ms": &p.Calls.HandoverEvery, "handover_ms": &p.Calls.Handover,
		"call_drop_every_ms": &p.Calls.DropEvery, "call_redial_ms": &p.Calls.Redial,
	}
}

func directionFields(d *Direction) map[string]any {
	return map[string]any{
		"rate_bps": &d.RateBps, "delay_ms": &d.Delay, "jitter_ms": &d.Jitter, "queue_octets": &d.QueueOctets,
		"loss_percent": &d.LossPct, "loss_block_octets": &d.LossRef, "ge_good_to_bad": &d.GEp, "ge_bad_to_good": &d.GEr,
		"ge_loss_bad_percent": &d.GEBadPct, "ge_loss_good_percent": &d.GEGoodPct,
		"queue_frames": &d.QueueFrames, "queue_age_ms": &d.QueueAge, "compresses": &d.Compresses,
		"fade_every_ms": &d.Fades.Every, "fade_lasts_ms": &d.Fades.Lasts, "fade_loss_percent": &d.Fades.LossPct,
	}
}

func gatewayFields(p *Profile) map[string]any {
	return map[string]any{
		"datagram_octets": &p.DatagramOctets, "large_datagram_octets": &p.LargeOctets, "segment_octets": &p.SegmentOctets, "window": &p.Window,
		"ack_delay_ms": &p.AckDelay, "probe_interval_ms": &p.ProbeInterval, "gap_age_ms": &p.GapAge,
		"grtt_ms": &p.GRTT, "bundle_ms": &p.Bundle, "transport": &p.Transport,
		"state_share_percent": &p.StateShare, "copy_after_ms": &p.CopyAfter,
	}
}

func pmulFields(u *PMulUse) map[string]any {
	return map[string]any{
		"repeat_count": &u.RepeatCount, "repeat_every_ms": &u.RepeatEvery, "messages": &u.Messages, "octets": &u.Octets,
		"incoming": &u.Incoming, "incoming_octets": &u.IncomingOctets,
	}
}

// medium is written as a word.
type medium struct{ shared *bool }

// fields sets the values of a section. targets point into the profile; other keys are mistakes.
func (d *decoder) fields(prefix string, t map[string]any, targets map[string]any) {
	keys := make([]string, 0, len(t))
	for k := range t {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		key := prefix + k
		target, ok := targets[k]
		if now, old := oldNames[k]; old {
			if _, ok := d.seen[prefix+now]; !ok {
				d.seen[prefix+now] = false
			}
			d.fail(key, "is not a key of a profile since version 0.2: it is %s now", prefix+now)
			continue
		} else if !ok {
			d.fail(key, "is not a key of a profile")
			continue
		}
		d.seen[key] = true
		if problem := set(target, t[k]); problem != "" {
			d.fail(key, "%s", problem)
		}
	}
}

// maxMillis is a day: no time in a profile is longer.
const maxMillis = 24 * 60 * 60 * 1000

func set(target, v any) string {
	switch dst := target.(type) {
	case *string:
		s, ok := v.(string)
		if !ok {
			return fmt.Sprintf("must be text in quotes, is %v", v)
		}
		*dst = s
	case *bool:
		b, ok := v.(bool)
		if !ok {
			return fmt.Sprintf("must be true or false, is %v", v)
		}
		*dst = b
	case *int:
		n, ok := v.(int64)
		if !ok || n < 0 || n > math.MaxInt32 {
			return fmt.Sprintf("must be a whole number from 0 to %d, is %v", math.MaxInt32, v)
		}
		*dst = int(n)
	case *time.Duration:
		n, ok := v.(int64)
		if !ok || n < 0 || n > maxMillis {
			return fmt.Sprintf("must be whole milliseconds from 0 to %d, is %v", maxMillis, v)
		}
		*dst = time.Duration(n) * time.Millisecond
	case *float64:
		f, ok := v.(float64)
		if n, whole := v.(int64); whole {
			f, ok = float64(n), true
		}
		if !ok || !(f >= 0 && f <= 100) { // NaN and infinities are TOML too
			return fmt.Sprintf("must be a number from 0 to 100, is %v", v)
		}
		*dst = f
	case medium:
		switch v {
		case "star":
			*dst.shared = false
		case "shared":
			*dst.shared = true
		default:
			return fmt.Sprintf(`must be "star" or "shared", is %v`, v)
		}
	}
	return ""
}

// keyLines finds the line of every key and section: "gateway", "gateway.window". data is valid TOML already.
func keyLines(data []byte) map[string]int {
	lines := map[string]int{}
	var p unstable.Parser
	p.Reset(data)
	section := ""
	for p.NextExpression() {
		e := p.Expression()
		var parts []string
		line := 0
		for it := e.Key(); it.Next(); {
			n := it.Node()
			if line == 0 {
				line = p.Shape(n.Raw).Start.Line
			}
			parts = append(parts, string(n.Data))
		}
		key := strings.Join(parts, ".")
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			section = key
		case unstable.KeyValue:
			if section != "" {
				key = section + "." + key
			}
			if head, _, ok := strings.Cut(key, "."); ok && lines[head] == 0 {
				lines[head] = line // a dotted key opens its section as well
			}
		}
		if lines[key] == 0 {
			lines[key] = line
		}
	}
	return lines
}
