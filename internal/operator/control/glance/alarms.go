package glance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/pair"
)

// Alarm is a sentence about something that the operator should know.
type Alarm struct {
	Level string    `json:"level"` // "bad": something does not work; "warn": look at it; "note": as ordered
	Text  string    `json:"text"`
	Since time.Time `json:"since,omitzero"`
}

// Thresholds of alarms.
const (
	graceful = 2 * time.Minute  // after a start, or after a reload that added it, a site may be unheard for so long
	late     = 10 * time.Minute // a message above deferred should not wait longer while its link is up
	fullUse  = 90               // percent of a direction's rate
	behind   = 10 * time.Second // a member of the site should not lack commits for longer
)

// alarms are the present alarms, the worst first.
func alarms(now time.Time, v *View, s Seen, is, ten sample) []Alarm {
	var list [3][]Alarm
	levels := []string{"bad", "warn", "note"}
	say := func(level int, since time.Time, format string, args ...any) {
		list[level] = append(list[level], Alarm{levels[level], fmt.Sprintf(format, args...), since})
	}
	if s.Trouble != "" {
		say(0, time.Time{}, "The gateway cannot work: %s", Plain(s.Trouble))
	}
	if s.Deaf != "" {
		say(0, time.Time{}, "The gateway does not answer: %s", Plain(s.Deaf))
	}
	if st := s.Status; s.Deaf == "" && st.Transport == "norm" && !st.NORM.Up {
		say(0, time.Time{}, "The NORM process is down: long messages wait until it is replaced")
	}
	if len(s.Missing) > 0 {
		say(1, time.Time{}, "The NORM process is not in its whole cell; missing: %s", strings.Join(s.Missing, ", "))
	}
	if r := s.Status.Roster; r != nil && r.Differs {
		say(0, time.Time{}, "Two different rosters have the serial %d: only sites that both name are heard and spoken to, until there is one with a higher serial", r.Serial)
	}
	for _, p := range v.Sites {
		since, of := s.Started.UTC(), "the start of this gateway"
		if p.Known.Sub(since) > graceful {
			since, of = p.Known, "it was configured"
		}
		never := p.Heard.IsZero() && (p.State == "unknown" || p.State == "silent")
		switch {
		case never && now.Sub(since) > graceful:
			say(0, since, "%s was not heard since %s%s: is it on, is its address right, has it the same key?", p.Name, of, held(p))
		case never:
			say(2, time.Time{}, "%s was not heard yet%s", p.Name, held(p))
		case p.State == "silent":
			say(0, p.Since, "%s does not answer%s", p.Name, held(p))
		case p.State == "listening":
			say(2, p.Since, "%s keeps silent by order: it receives and does not answer%s", p.Name, held(p))
		}
		for _, q := range p.Queue {
			if p.State == "up" && !v.Silence.On && q.Precedence != "deferred" && now.Sub(q.Oldest) > late {
				say(1, q.Oldest, "A %s message for %s still waits though the link is up", q.Precedence, p.Name)
			}
		}
	}
	bearerAlarms(s.Status, func(level int, format string, args ...any) { say(level, time.Time{}, format, args...) })
	if v.Silence.On {
		text := "This gateway keeps silent: it transmits nothing"
		if v.Silence.Fixed {
			text += ", by its configuration"
		}
		if v.Silence.Messages > 0 {
			text += fmt.Sprintf("; %s", plural(v.Silence.Messages, "message waits", "messages wait"))
		}
		say(2, time.Time{}, "%s", text)
	}
	siteAlarms(now, s.Site, say)
	for _, h := range s.Status.Holds {
		say(2, h.Since, "Messages of precedence %s are held by an order%s", h.Precedence, heldBack(h.Messages))
	}
	if d := s.Status.Drain; d != nil {
		say(1, d.Since, "This gateway is drained: it takes no messages of local peers; %s", plural(d.Messages, "message has to go out yet", "messages have to go out yet"))
	}
	full := func(link string, out, in Use) {
		for i, use := range []Use{out, in} {
			if use.Percent >= fullUse {
				say(1, time.Time{}, "%s is full: more than %d %% of its rate was %s in the last minute", link, fullUse, directions[i])
			}
		}
	}
	full("The link", v.Out, v.In)
	for _, b := range v.Bearers {
		full(b.Name, b.Out, b.In)
	}
	for _, p := range s.Status.Peers {
		if n := p.Late.Messages; n > 0 {
			say(1, time.Time{}, "%s for %s will expire too soon: the first at %s, and it would be there at %s", plural(n, "message", "messages"), Plain(p.Name),
				p.Late.Expires.Format("15:04:05Z"), p.Late.Expected.Format("15:04:05Z"))
		}
		for _, what := range p.Measured.Differs {
			say(1, p.Measured.Since, "%s", other(p, what, linkOf(s.Status, p)))
		}
		c, before := is.peers[p.ID], ten.peers[p.ID]
		if n := grown(c.ended, before.ended); n > 0 {
			say(1, time.Time{}, "%s for %s in the last ten minutes: expired, or undeliverable there", plural(int(n), "message was lost", "messages were lost"), Plain(p.Name))
		}
		if n := grown(c.refused, before.refused); n > 0 {
			say(1, time.Time{}, "%s for %s in the last ten minutes: there was no room", plural(int(n), "message was refused", "messages were refused"), Plain(p.Name))
		}
	}
	all := []Alarm{}
	for _, l := range list {
		all = append(all, l...)
	}
	return all
}

// siteAlarms are the alarms of a site of two gateways or more.
func siteAlarms(now time.Time, is *pair.Status, say func(level int, since time.Time, format string, args ...any)) {
	if is == nil {
		return
	}
	switch {
	case is.Silent:
		say(0, time.Time{}, "This gateway transmits nothing: no other machine of the site lets it, and no witness")
	case is.Alone:
		say(0, is.AloneSince, "This gateway is alone: what it accepts is on one disk, and would be lost with it (%d octets so far)", is.OneDiskOctets)
	}
	switch {
	case is.Refused != "" && len(is.Members) > 0:
		say(0, time.Time{}, "The disk of this machine of the site fails: %s", Plain(is.Refused))
	case is.Refused != "":
		say(1, time.Time{}, "The other machine of the site is not taken: %s", Plain(is.Refused))
	}
	for _, m := range is.Members {
		switch {
		case m.Refused != "":
			say(1, time.Time{}, "The member %s of the site is not taken: %s", m.At, Plain(m.Refused))
		case !m.Connected:
			say(1, m.Heard, "The member %s of the site is away", m.At)
		case m.BehindCommits > 0 && now.Sub(m.BehindSince) > behind:
			say(1, m.BehindSince, "The member %s of the site is behind by %d commits (%d octets): its disk or the way to it is slow", m.At, m.BehindCommits, m.BehindOctets)
		}
	}
	if len(is.Members) > 0 && is.Spare() == 0 {
		say(1, time.Time{}, "If one machine of the site more is lost, nobody leads")
	}
	if is.WitnessLost {
		say(1, is.WitnessHeard, "The witness of the site does not answer: if one of the two machines is lost now, the other one transmits nothing")
	}
}

// bearerAlarms are the alarms of bearers that do not work or are silent if there are several: a site that one of them reaches
// counts as up.
func bearerAlarms(st api.Status, say func(level int, format string, args ...any)) {
	for _, b := range st.Bearers {
		if b.Silence.On && !st.Silence.On {
			say(2, "This gateway keeps silent on %s", Plain(b.Name))
		}
	}
	for _, p := range st.Peers {
		for _, b := range p.Bearers {
			if b.Link == "silent" && p.Link == "up" {
				text := fmt.Sprintf("%s does not answer on %s", Plain(p.Name), Plain(b.Bearer))
				if n := b.Waiting + b.UnderWay; n > 0 {
					text += "; " + plural(n, "message waits there", "messages wait there")
				}
				say(1, "%s", text)
			}
		}
	}
}

// linkOf is what the profile says of the bearer that messages to a peer take. Its rate and loss are 0 where other gateways are the bearer.
func linkOf(st api.Status, p api.PeerStatus) (l api.LinkStatus) {
	used := slices.IndexFunc(p.Bearers, func(b api.PeerBearer) bool { return b.Used })
	if used < 0 {
		return st.Link
	}
	for _, b := range st.Bearers {
		if cmp.Or(b.Name, b.Profile) == p.Bearers[used].Bearer && b.Link != nil {
			l = *b.Link
		}
	}
	return l
}

// other says how a link differs from its profile.
func other(p api.PeerStatus, what string, l api.LinkStatus) string {
	name, m := Plain(p.Name), p.Measured
	switch what {
	case api.DiffersRate:
		word := "slower"
		if 0 < l.SendBps && l.SendBps < m.RateBps {
			word = "faster"
		}
		return fmt.Sprintf("The link to %s is %s than its profile: %d bit/s instead of %d. What goes is paced at %d", name, word, m.RateBps, l.SendBps, m.PaceBps)
	case api.DiffersDelay:
		return fmt.Sprintf("The link to %s has another delay than its profile: a round trip takes %.1f s", name, m.RoundTripS)
	}
	return fmt.Sprintf("The link to %s loses more than its profile: %.0f %% of the messages go again, the profile has %.1f %% of loss", name, m.LossPct, l.SendLossPct)
}

func held(p Site) string {
	if p.Waiting+p.UnderWay == 0 {
		return ""
	}
	return "; " + plural(p.Waiting+p.UnderWay, "message waits for it", "messages wait for it")
}

func heldBack(n int) string {
	if n == 0 {
		return ""
	}
	return "; " + plural(n, "is held now", "are held now")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// verdict says in one line whether all is well.
func verdict(v *View, s Seen) (level, words string) {
	counts := map[string]int{}
	for _, a := range v.Alarms {
		counts[a.Level]++
	}
	up, members := 0, 0
	for _, p := range v.Sites {
		if p.State != "gone" && p.State != "unmet" {
			members++
		}
		if p.State == "up" || p.State == "listening" {
			up++
		}
	}
	messages, _ := v.Waiting()
	waits := "nothing waits"
	if messages > 0 {
		waits = plural(messages, "message is on its way", "messages are on their way")
	}
	answer := plural(up, "site answers", "sites answer")
	if up == members && up > 1 {
		answer = fmt.Sprintf("all %d sites answer", up)
	} else if up < members {
		answer = fmt.Sprintf("%d of %d sites answer", up, members)
	}
	switch {
	case s.Deaf != "" || s.Trouble != "":
		return "bad", v.Alarms[0].Text
	case counts["bad"] > 0:
		return "bad", fmt.Sprintf("Not all is well: %s, %s", answer, waits)
	case v.Silence.On:
		return "warn", fmt.Sprintf("Radio silence: nothing is transmitted, %s", waits)
	case counts["warn"] > 0:
		return "warn", fmt.Sprintf("Worth a look: %s, %s", answer, waits)
	case up < members:
		return "warn", fmt.Sprintf("Starting: %s so far, %s", answer, waits)
	}
	return "good", fmt.Sprintf("All is well: %s, %s", answer, waits)
}
