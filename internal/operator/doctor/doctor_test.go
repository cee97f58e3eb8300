package doctor

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/edge/rights"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/link/profile"
	"aldis/internal/link/roster"
	"aldis/internal/operator/control"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// has checks for a finding; a fault or warning must have a remedy.
func has(t *testing.T, f *findings, checked string, grade Grade, words ...string) {
	t.Helper()
	for _, x := range f.list {
		good := x.Check == checked && x.Grade == grade && (x.WayOut != "") == (grade != OK)
		for _, w := range words {
			good = good && strings.Contains(x.Text+" "+x.WayOut, w)
		}
		if good {
			return
		}
	}
	t.Errorf("no %s of %s with %q in %+v", grade, checked, words, f.list)
}

// The running gateway's report about a far gateway, state by state.
func TestFar(t *testing.T) {
	p, err := profile.Load("iridium-directip", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &config.Config{Link: config.Link{Profile: p, Listen: netip.MustParseAddrPort("0.0.0.0:7142")}}
	count := func(n, repeated uint64, column int) func(*api.PeerStatus) {
		return func(s *api.PeerStatus) {
			s.Link = "up"
			s.Delays.Count, s.Delays.Counts[column], s.Repeated = n, n, repeated
		}
	}
	differs := func(m api.LinkMeasured) func(*api.PeerStatus) {
		return func(s *api.PeerStatus) { s.Link, s.Measured = "up", m }
	}
	for _, tt := range []struct {
		name    string
		known   time.Duration // how long the gateway has known the far gateway
		state   func(*api.PeerStatus)
		report  func(*control.Report)
		checked string
		grade   Grade
		words   []string
	}{
		{"up", time.Hour, func(s *api.PeerStatus) { s.Link, s.LastHeard = "up", now.Add(-3*time.Second).Format(time.RFC3339) }, nil, "far.heard", OK, []string{"last 3s ago"}},
		{"silent by order", time.Hour, func(s *api.PeerStatus) { s.Link = "listening" }, nil, "far.heard", OK, []string{"by order"}},
		{"another key", time.Hour, func(s *api.PeerStatus) { s.Unopened = 4 }, nil, "far.key", Fault, []string{"4 datagrams", "do not open"}},
		{"we are silent", time.Hour, nil, func(r *control.Report) { r.Silence.On = true }, "far.heard", Warning, []string{"cannot ask"}},
		{"no address", time.Hour, func(s *api.PeerStatus) { s.Address = "" }, nil, "far.heard", Warning, []string{"before it calls"}},
		{"new", 5 * time.Second, nil, nil, "far.heard", Warning, []string{"only just come to know"}},
		{"never heard", time.Hour, nil, nil, "far.heard", Fault, []string{"never since the start", "192.0.2.1:7142", "udp port 7142"}},
		{"another id", time.Hour, nil, func(r *control.Report) {
			r.Radio.ReceivedDatagrams, r.Dropped = 9, map[string]uint64{"unknown_peer": 9}
		}, "far.heard", Fault, []string{"another id"}},
		{"gone", time.Hour, func(s *api.PeerStatus) {
			s.Link, s.LastHeard = "silent", now.Add(-time.Minute).Format(time.RFC3339)
		}, nil, "far.heard", Fault, []string{"last 1m0s ago"}},
		{"never asked", time.Hour, func(s *api.PeerStatus) { s.Link = "unmet" }, nil, "far.heard", OK, []string{"never asked"}},
		{"few messages", time.Hour, count(3, 0, 2), nil, "link.profile", OK, []string{"too few"}},
		{"as the profile says", time.Hour, count(100, 1, 2), nil, "link.profile", OK, []string{"does what profile iridium-directip says"}},
		{"lossy", time.Hour, differs(api.LinkMeasured{LossPct: 37.5, Differs: []string{api.DiffersLoss}}), nil, "link.profile", Warning, []string{"38 %", "tune --fit"}},
		{"slow", time.Hour, differs(api.LinkMeasured{RateBps: 1200, PaceBps: 1300, Differs: []string{api.DiffersRate}}), nil, "link.profile", Warning, []string{"1200 bit/s", "1300"}},
		{"far", time.Hour, differs(api.LinkMeasured{RoundTripS: 61, Differs: []string{api.DiffersDelay}}), nil, "link.profile", Warning, []string{"61.0 s"}},
		{"the kernel refuses", time.Hour, nil, func(r *control.Report) { r.Radio.UnsentDatagrams = 2 }, "link.unsent", Warning, []string{"refused 2 of 2"}},
		{"the NORM process is down", time.Hour, nil, func(r *control.Report) { r.Transport = "norm" }, "norm", Fault, []string{"is down"}},
	} {
		s := api.PeerStatus{ID: 1, Name: "hq", Link: "unknown", Address: "192.0.2.1:7142", KnownSince: now.Add(-tt.known)}
		if tt.state != nil {
			tt.state(&s)
		}
		r := &control.Report{Started: now.Add(-time.Hour)}
		r.Peers = []api.PeerStatus{s}
		if tt.report != nil {
			tt.report(r)
		}
		var f findings
		f.far(c, &Running{Report: r}, now)
		t.Run(tt.name, func(t *testing.T) { has(t, &f, tt.checked, tt.grade, tt.words...) })
	}
}

func TestClock(t *testing.T) {
	run := func(incarnation time.Time, refused uint64) *Running {
		r := &control.Report{}
		r.IncarnationNumber, r.Dropped = uint32(incarnation.Unix()), map[string]uint64{"far_boot": refused}
		return &Running{Report: r}
	}
	for _, tt := range []struct {
		name  string
		now   time.Time
		run   *Running
		grade Grade
		word  string
	}{
		{"right", now, nil, OK, "2026-11-22 12:00:00"},
		{"1970", time.Unix(1000, 0), nil, Fault, "before the first gateway"},
		{"behind a start", now, run(now.Add(100*24*time.Hour), 0), Fault, "--start-by-clock"},
		{"a far start is refused", now, run(now, 7), Fault, "7 datagrams"},
	} {
		var f findings
		f.clock(tt.run, tt.now)
		t.Run(tt.name, func(t *testing.T) { has(t, &f, "clock", tt.grade, tt.word) })
	}
	var f findings
	f.synchronised(true, nil)
	f.synchronised(false, errors.New("not permitted"))
	has(t, &f, "clock.synchronised", Warning, "nothing keeps the clock right")
	has(t, &f, "clock.synchronised", Warning, "not permitted")
}

// The entries in /proc of a process in the unit, and of one started by hand.
func TestRights(t *testing.T) {
	limits := "Limit                     Soft Limit           Hard Limit           Units\nMax core file size        0                    unlimited            bytes\nMax open files            1024                 524288               files\nMax nice priority         unlimited            0\n"
	for name, want := range map[string]uint64{"Max core file size": 0, "Max open files": 1024, "Max nice priority": 1<<64 - 1} {
		n, ok := softLimit(limits, name)
		check.Equal(t, name, n, want)
		check.Equal(t, name+" is there", ok, true)
	}
	_, ok := softLimit(limits, "Max cpu time")
	check.Equal(t, "one that is not there", ok, false)
	check.Equal(t, "a root that is mounted over", readOnlyRoot("22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n400 22 8:1 / / ro,relatime - ext4 /dev/sda1 rw\n"), true)
	check.Equal(t, "a root", readOnlyRoot("22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n23 22 0:5 / /ro ro - proc proc rw\n"), false)

	var f findings
	f.user(&Running{UID: 4242}, fields("CapEff:\t0000000000000000\n"))
	f.hardening(&Running{PID: 1 << 30}, fields("NoNewPrivs:\t1\nSeccomp:\t2\nCapBnd:\t0000000000000000\nUmask:\t0022\n"))
	f.memory(&Running{PID: 1 << 30}, limits)
	has(t, &f, "rights.user", OK, "user 4242")
	has(t, &f, "rights.hardening", Warning, "not active: ProtectSystem=strict, UMask=0077", "active: NoNewPrivileges, SystemCallFilter")
	has(t, &f, "rights.core", OK)
	f = findings{}
	f.user(&Running{UID: 0}, nil)
	f.user(&Running{UID: 5}, fields("CapEff:\t0000000000000400\n"))
	f.memory(&Running{PID: 1 << 30}, "Max core file size        unlimited            unlimited            bytes\n")
	has(t, &f, "rights.user", Warning, "as root")
	has(t, &f, "rights.user", Warning, "0000000000000400")
	has(t, &f, "rights.core", Warning, "core dump", "LimitCORE=1")
	f = findings{}
	f.memory(&Running{PID: 1 << 30}, "Max core file size        1                    1                    bytes\n")
	f.protections([]rights.Protection{{Name: rights.Files, Active: true}, {Name: rights.Calls, Active: true}})
	has(t, &f, "rights.core", OK)
	has(t, &f, "rights.given_up", OK, rights.Files+", "+rights.Calls)
	f.protections([]rights.Protection{{Name: rights.Files, Lacks: "an old kernel"}, {Name: rights.Calls, Active: true}})
	has(t, &f, "rights.given_up", Warning, rights.Files+": an old kernel", "it has: "+rights.Calls)
}

// Addresses in the form of the kernel's tables.
func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:23F0": "127.0.0.1:9200", "00000000:0016": "0.0.0.0:22",
		"00000000000000000000000001000000:1F90": "[::1]:8080", "0000000000000000FFFF00000100007F:0050": "127.0.0.1:80",
	} {
		at, ok := address(text)
		check.Equal(t, text, at.String(), want)
		check.Equal(t, text+" is one", ok, true)
	}
	for _, text := range []string{"", "0100007F", "01007F:0050", "xx00007F:0050", "0100007F:50505"} {
		_, ok := address(text)
		check.Equal(t, text+" is one", ok, false)
	}
}

func TestOctets(t *testing.T) {
	for n, want := range map[int64]string{0: "0 octets", 1023: "1023 octets", 1536: "1.5 KiB", 64 << 20: "64.0 MiB", 3 << 30: "3.0 GiB"} {
		check.Equal(t, want, octets(n), want)
	}
}

// If each node has a key of its own, that file is checked, not the network's.
func TestKeyOfANode(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "node.key")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &config.Config{Node: config.Node{DataDir: dir}}
	c.Link.Trust = config.Trust{Roster: &roster.Roster{}, NodeKeyFile: file}
	var f findings
	f.disk(c, nil)
	has(t, &f, "key.file", OK, file, "0600")
}
