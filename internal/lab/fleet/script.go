package fleet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"aldis/internal/link/profile"
)

// Span is a time in a script, as "90s" or "1h10m".
type Span struct{ time.Duration }

// UnmarshalText reads "90s". It is an error if the time is negative.
func (s *Span) UnmarshalText(text []byte) (err error) {
	s.Duration, err = time.ParseDuration(string(text))
	if err != nil || s.Duration < 0 {
		return fmt.Errorf("%q is no time such as 90s or 10m", text)
	}
	return nil
}

// Script is the plan of a trial. Times count from the moment when all sites that are there at the start know each other.
type Script struct {
	Summary   string     `toml:"summary"`
	Duration  Span       `toml:"duration"` // the sites talk for so long
	Drain     Span       `toml:"drain"`    // how long to wait after that for messages under way, at most; 5 min
	Roster    bool       `toml:"roster"`   // each gateway has its own key, and only a new roster names a site that joins; else one key for all
	Bearers   []Bearer   `toml:"bearer"`   // the first one is the first [[link]] of each gateway
	Sites     []Site     `toml:"site"`     // in the order of their node ids
	View      string     `toml:"view"`     // how much other sites learn of JXTA peers, as lan.view; "": as the gateway's default
	Beyond    string     `toml:"beyond"`   // InGroups, or "": messages between sites without a common bearer go over relays
	Groups    []Group    `toml:"group"`
	Talks     []Talk     `toml:"talk"`
	Accidents []Accident `toml:"accident"`
	Churn     []Churn    `toml:"churn"`
}

// Bearer is a link.
type Bearer struct {
	Name      string   `toml:"name"`
	Profile   string   `toml:"profile"`   // name of a link profile
	Price     float64  `toml:"price"`     // of 1,000 octets
	Sites     []string `toml:"sites"`     // the sites that have it; none: all
	Over      string   `toml:"over"`      // TLS, or "" for UDP
	Keepalive Span     `toml:"keepalive"` // 0: none
	Direct    *int     `toml:"direct"`    // direct sessions of a gateway, at most; nil: as the gateway's default
}

// TLS is a value of Bearer.Over.
const TLS = "tls"

// Has says whether a site is on the bearer.
func (b *Bearer) Has(site string) bool { return len(b.Sites) == 0 || slices.Contains(b.Sites, site) }

// Site is a gateway and its local peers.
type Site struct {
	Name     string `toml:"name"`
	Ashore   bool   `toml:"ashore"`   // it is on the wire end of each star
	Joins    Span   `toml:"joins"`    // when it starts; 0: it is there from the start
	Relay    bool   `toml:"relay"`    // it passes on messages between the others
	NAT      bool   `toml:"nat"`      // its addresses are translated, except on shared channels: it can call, and no site can call it
	Bare     bool   `toml:"bare"`     // it has no local peers: nothing is said there, or to it
	Firewall int    `toml:"firewall"` // as with NAT, and only TCP to this port gets out; 0: there is no firewall
	Machines int    `toml:"machines"` // 2: one leads, the other follows, and a witness votes; 3 to 9: a cluster; 0 or 1: one gateway
	JXTA     int    `toml:"jxta"`     // peers if JXTA plays, of which the first one talks; 0: one
	TAK      int    `toml:"tak"`      // devices if TAK plays, of which the first one talks; 0: one
}

// Behind says that no site can call the site.
func (s *Site) Behind() bool { return s.NAT || s.Firewall > 0 }

// Introduces says that two sites may have a direct session: both are behind walls, on a bearer that keeps translations open.
func (s *Script) Introduces() bool {
	return slices.ContainsFunc(s.Bearers, func(b Bearer) bool {
		behind := 0
		for i := range s.Sites {
			if x := &s.Sites[i]; x.Behind() && b.Has(x.Name) {
				behind++
			}
		}
		return behind > 1 && b.Keepalive.Duration > 0 && b.Over == "" && !shared(b.Profile)
	})
}

// Several says that the site has two gateways or more.
func (s *Site) Several() bool { return s.Machines > 1 }

// Values of Talk.Peers.
const (
	JXTA = "jxta"
	TAK  = "tak"
)

// Talk is messages that local peers of some sites send again and again, to all other sites.
type Talk struct {
	From   []string `toml:"from"`  // sites; none: all
	Peers  string   `toml:"peers"` // JXTA or TAK; "": both
	Every  Span     `toml:"every"`
	Octets int      `toml:"octets"`
	At     Span     `toml:"at"`    // the first message
	Times  int      `toml:"times"` // number of messages; 0: until the end
}

// Values of What.
const (
	Cut     = "cut"     // a site is off the air of a bearer
	Silence = "silence" // a site transmits nothing on a bearer, by an order that it announces
	Kill    = "kill"    // kill -9 of a site's gateway, which starts again after For
	Power   = "power"   // at a site of several machines: one is dead at once, and gone from the LAN and from all bearers
	Stop    = "stop"    // at such a site: a machine's gateway stops (SIGSTOP), and wakes after For
	Upgrade = "upgrade" // at such a site: a machine's gateway stops in order, and another program starts in its place after For
	Redial  = "redial"  // a site behind address translation gets another address, and the translation forgets all; the next time the first again
	// Destroy is the end of a site, its gateway and its local peers, once another site has the site's last messages; For is how long to
	// wait for that at the most.
	Destroy = "destroy"
)

// Values of Accident.Machine besides numbers, which begin with 1.
const (
	Leader   = "leader"
	Follower = "follower"
	Both     = "both" // at a site of two
)

// Accident is an accident to a site.
type Accident struct {
	At     Span     `toml:"at"`
	What   string   `toml:"what"`
	Site   string   `toml:"site"`   // "": all sites that have joined, except those in Except
	Bearer string   `toml:"bearer"` // "": all bearers
	For    Span     `toml:"for"`
	Except []string `toml:"except"`
	// Machine is the machine at a site of several: Leader (also when empty), Follower or Both at that time, or its number.
	Machine string `toml:"machine"`
}

// Bounds of scripts: as much as one machine can play.
const (
	MaxScript    = 64 << 10 // octets of a file
	maxSites     = 20
	maxBearers   = 4
	maxEntries   = 1000 // talks, accidents
	maxLocal     = 20   // peers of a kind at a site
	maxDirect    = 64   // as link.direct
	maxMachines  = 9    // of a site, as cluster.members
	maxOctets    = 4 << 20
	leastOctets  = 64
	leastEvery   = 100 * time.Millisecond
	leastSpan    = 10 * time.Second
	mostSpan     = 7 * 24 * time.Hour
	defaultDrain = 5 * time.Minute
)

var plainName = regexp.MustCompile(`^[a-z][a-z0-9]{0,15}$`)

// Read reads a script. Its error has one line for each mistake, with the name of the file in front.
func Read(file string, data []byte) (*Script, error) {
	if len(data) > MaxScript {
		return nil, fmt.Errorf("%s: has %d octets, at most %d are read", file, len(data), MaxScript)
	}
	s := &Script{Drain: Span{defaultDrain}}
	d := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, broken(file, err)
	}
	var bad []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf("%s: %s", file, fmt.Sprintf(format, args...)))
		}
	}
	s.check(check)
	return s, errors.Join(bad...)
}

// broken says, a line for each, which parts go-toml could not read.
func broken(file string, err error) error {
	var missing *toml.StrictMissingError
	var one *toml.DecodeError
	var list []error
	switch {
	case errors.As(err, &missing):
		for _, e := range missing.Errors {
			row, _ := e.Position()
			list = append(list, fmt.Errorf("%s:%d: there is no key %q", file, row, strings.Join(e.Key(), ".")))
		}
	case errors.As(err, &one):
		row, _ := one.Position()
		list = append(list, fmt.Errorf("%s:%d: %s", file, row, one.Error()))
	default:
		list = append(list, fmt.Errorf("%s: %w", file, err))
	}
	return errors.Join(list...)
}

// check reports the parts that cannot be played.
func (s *Script) check(check func(ok bool, format string, args ...any)) {
	within := func(what string, d, least, most time.Duration) {
		check(d >= least && d <= most, "%s: %v is not from %v to %v", what, d, least, most)
	}
	within("duration", s.Duration.Duration, leastSpan, mostSpan)
	within("drain", s.Drain.Duration, time.Second, mostSpan)
	check(len(s.Sites) >= 2 && len(s.Sites) <= maxSites, "%d [[site]]: 2 to %d can be played", len(s.Sites), maxSites)
	check(len(s.Bearers) >= 1 && len(s.Bearers) <= maxBearers, "%d [[bearer]]: 1 to %d can be played", len(s.Bearers), maxBearers)
	check(len(s.Talks) <= maxEntries && len(s.Accidents) <= maxEntries, "more than %d [[talk]] or [[accident]]", maxEntries)
	names := map[string]bool{}
	name := func(what, name string) {
		check(plainName.MatchString(name), "%s %q: a name has 1 to 16 small letters and digits, a letter first", what, name)
		check(!names[name], "%s %q: there is another one of that name", what, name)
		names[name] = true
	}
	for _, b := range s.Bearers {
		name("bearer", b.Name)
		p, err := profile.Load(b.Profile, func(string) ([]byte, error) { return nil, errors.New("only a profile of this program") })
		check(err == nil, "bearer %q: profile %q: %v", b.Name, b.Profile, err)
		check(b.Price >= 0, "bearer %q: price %v is less than 0", b.Name, b.Price)
		check(b.Direct == nil || *b.Direct >= 0 && *b.Direct <= maxDirect, "bearer %q: direct is not from 0 to %d", b.Name, maxDirect)
		check(b.Over == "" || b.Over == TLS && !p.Shared, "bearer %q: over %q: %s where the profile is no shared channel, or none for UDP", b.Name, b.Over, TLS)
		for _, name := range b.Sites {
			check(s.site(name) != nil, "bearer %q: there is no site %q", b.Name, name)
		}
		for _, x := range s.Sites {
			check(x.Firewall == 0 || !b.Has(x.Name) || b.Over == TLS || p.Shared, "bearer %q: the firewall of %q lets only TCP out: over = %q", b.Name, x.Name, TLS)
		}
		check(len(b.Sites) != 1, "bearer %q: one site alone is on it", b.Name)
	}
	there := 0
	for _, x := range s.Sites {
		name("site", x.Name)
		check(x.Joins.Duration < s.Duration.Duration, "site %q: joins at %v, when the play is over", x.Name, x.Joins)
		if x.Joins.Duration == 0 {
			there++
		}
		check(slices.ContainsFunc(s.Bearers, func(b Bearer) bool { return b.Has(x.Name) }), "site %q: it is on no bearer", x.Name)
		check(x.Firewall >= 0 && x.Firewall < 1<<16, "site %q: firewall %d is no port", x.Name, x.Firewall)
		check(!x.Relay || x.Joins.Duration == 0, "site %q: who joins is no relay", x.Name)
		check(x.Machines >= 0 && x.Machines <= maxMachines, "site %q: %d machines: 1 to %d", x.Name, x.Machines, maxMachines)
		check(!x.Bare || x.JXTA == 0 && x.TAK == 0, "site %q: bare, with local peers", x.Name)
		check(!x.Several() || !x.Behind() && x.Joins.Duration == 0, "site %q: one of several machines is there from the start, and behind no wall", x.Name)
		check(x.JXTA >= 0 && x.JXTA <= maxLocal && x.TAK >= 0 && x.TAK <= maxLocal, "site %q: %d JXTA peers and %d TAK devices: at most %d each", x.Name, x.JXTA, x.TAK, maxLocal)
		check(!x.Several() || !slices.ContainsFunc(s.Bearers, func(b Bearer) bool { return b.Over != "" && b.Has(x.Name) }), "site %q: one of several machines is on no bearer over TLS", x.Name)
	}
	check(there >= 2, "%d sites are there at the start: at least 2", there)
	check(len(s.Talks) > 0, "no [[talk]]: nobody says anything")
	for i, t := range s.Talks {
		what := fmt.Sprintf("talk %d", i+1)
		for _, from := range t.From {
			x := s.site(from)
			check(x != nil, "%s: there is no site %q", what, from)
			check(x == nil || !x.Bare, "%s: nobody is at site %q", what, from)
		}
		check(slices.Contains([]string{"", JXTA, TAK}, t.Peers), "%s: peers %q: %s, %s, or none for both", what, t.Peers, JXTA, TAK)
		check(t.Octets >= leastOctets && t.Octets <= maxOctets, "%s: %d octets: %d to %d", what, t.Octets, leastOctets, maxOctets)
		check(t.Times >= 0, "%s: %d times", what, t.Times)
		check(t.At.Duration < s.Duration.Duration, "%s: at %v, when the play is over", what, t.At)
		if t.Times != 1 {
			within(what+": every", t.Every.Duration, leastEvery, mostSpan)
		}
	}
	s.checkGroups(check)
	for i, a := range s.Accidents {
		what := fmt.Sprintf("accident %d", i+1)
		check(slices.Contains([]string{Cut, Silence, Redial, Kill, Power, Stop, Upgrade, Destroy}, a.What), "%s: what %q: %s, %s, %s, %s, %s, %s, %s or %s", what, a.What, Cut, Silence, Redial, Kill, Power, Stop, Upgrade, Destroy)
		check(a.Number() > 0 || slices.Contains([]string{"", Leader, Follower, Both}, a.Machine), "%s: machine %q: %s, %s, %s or a number", what, a.Machine, Leader, Follower, Both)
		x := s.site(a.Site)
		of := x != nil && x.Several()
		check(of || a.What != Power && a.What != Stop && a.What != Upgrade && a.Machine == "", "%s: %s, %s, %s and machine need a site of two machines or more", what, Power, Stop, Upgrade)
		check(!of || a.Machine != Both || x.Machines == 2, "%s: machine %q needs a site of two machines", what, Both)
		check(!of || a.Number() <= x.Machines, "%s: site %q has no machine %s", what, a.Site, a.Machine)
		check(a.What != Upgrade || a.Machine != Both, "%s: an upgrade is of one machine after the other", what)
		check(a.Machine == "" || a.Machinery(), "%s: machine is for %s, %s, %s or %s", what, Kill, Power, Stop, Upgrade)
		check(a.Site == "" || x != nil, "%s: there is no site %q", what, a.Site)
		check(len(a.Except) == 0 || a.Site == "", "%s: except is for all sites", what)
		for _, name := range a.Except {
			check(s.site(name) != nil, "%s: there is no site %q", what, name)
		}
		check(a.What != Destroy || !of, "%s: a site of several machines is not destroyed", what)
		check(a.Bearer == "" || s.BearerIndex(a.Bearer) >= 0, "%s: there is no bearer %q", what, a.Bearer)
		check(a.At.Duration+a.For.Duration < s.Duration.Duration, "%s: its end at %v is not before that of the play", what, a.At.Duration+a.For.Duration)
		check(!a.Machinery() || a.Site != "" && a.Bearer == "", "%s: a %s needs a site, and no bearer", what, a.What)
		check(a.What != Redial || x != nil && x.Behind(), "%s: a %s needs a site behind address translation", what, a.What)
		check(a.What == Kill || a.What == Redial || a.For.Duration > 0, "%s: for how long?", what)
	}
}

// site returns the site with a name; nil: there is none.
func (s *Script) site(name string) *Site {
	if i := slices.IndexFunc(s.Sites, func(x Site) bool { return x.Name == name }); i >= 0 {
		return &s.Sites[i]
	}
	return nil
}

// BearerIndex is the place of a bearer; -1: no bearer has that name.
func (s *Script) BearerIndex(name string) int {
	return slices.IndexFunc(s.Bearers, func(b Bearer) bool { return b.Name == name })
}

// Scale gives the play a duration: the times and the lengths of its events change in proportion. The intervals between messages stay,
// because they are the load on the bearers. It is an error if the play becomes shorter than 10 s.
func (s *Script) Scale(duration time.Duration) error {
	if duration < leastSpan || duration > mostSpan {
		return fmt.Errorf("duration %v is not from %v to %v", duration, leastSpan, mostSpan)
	}
	by := float64(duration) / float64(s.Duration.Duration)
	scale := func(d *Span) { d.Duration = time.Duration(float64(d.Duration) * by).Round(time.Millisecond) }
	scale(&s.Duration)
	for i := range s.Sites {
		scale(&s.Sites[i].Joins)
	}
	for i := range s.Talks {
		scale(&s.Talks[i].At)
	}
	for i := range s.Accidents {
		scale(&s.Accidents[i].At)
		if s.Accidents[i].What != Destroy {
			scale(&s.Accidents[i].For)
		}
	}
	for i := range s.Churn {
		scale(&s.Churn[i].At)
		scale(&s.Churn[i].Until)
	}
	return nil
}

// who names the machine in words.
func (a *Accident) who() string {
	if n := a.Number(); n > 0 {
		return fmt.Sprintf("machine %d", n)
	}
	return cmp.Or(a.Machine, Leader)
}

// Machinery says that the accident is one to a machine.
func (a *Accident) Machinery() bool {
	return slices.Contains([]string{Kill, Power, Stop, Upgrade, Destroy}, a.What)
}

// Number is the number of the machine, from 1 on; 0: Machine is no number.
func (a *Accident) Number() int {
	n, err := strconv.Atoi(a.Machine)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// Said describes the accident in words, without its time.
func (a Accident) Said() string {
	on := func(text string) string {
		if a.Bearer != "" {
			text += " " + a.Bearer
		}
		return text
	}
	site := a.Site
	if site == "" {
		site = "all sites"
		if len(a.Except) > 0 {
			site += " but " + strings.Join(a.Except, ", ")
		}
	}
	switch a.What {
	case Cut:
		return fmt.Sprintf("%s off the air for %v", on(site+":"), a.For)
	case Silence:
		return fmt.Sprintf("%s silent for %v", on(site+":"), a.For)
	case Redial:
		return fmt.Sprintf("%s gets another address on %s, and its translation forgets all", site, cmp.Or(a.Bearer, "all bearers"))
	case Destroy:
		return site + " is destroyed"
	case Power:
		return fmt.Sprintf("%s: %s without power for %v", site, a.who(), a.For)
	case Stop:
		return fmt.Sprintf("%s: %s stopped for %v", site, a.who(), a.For)
	case Upgrade:
		return fmt.Sprintf("%s: %s upgraded, off for %v", site, a.who(), a.For)
	}
	if a.Machine != "" {
		site += ", " + a.who()
	}
	return fmt.Sprintf("%s: gateway killed, started again after %v", site, a.For)
}
