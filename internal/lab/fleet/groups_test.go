package fleet_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/fleet"
)

// Each mistake about groups, churn and destruction has a line of its own.
func TestMistakesOfGroups(t *testing.T) {
	group := "[[group]]\nname = \"fleet/ops\"\nsites = [\"hq\", \"ship1\"]\nlifetime = \"2h\"\n"
	churn := "[[churn]]\nwhat = \"cut\"\nshare = 0.125\nevery = \"5s\"\nfor = \"2s\"\nat = \"5s\"\nuntil = \"50s\"\n"
	destroy := "[[accident]]\nwhat = \"destroy\"\nsite = \"ship1\"\nat = \"20s\"\nfor = \"5s\"\n"
	roster := "roster = true\nview = \"tree(3)\"\n" + good
	for _, tt := range []struct{ script, says string }{
		{roster + group + churn + destroy, ""},
		{good + group, "groups need roster = true"},
		{roster + strings.Replace(group, "fleet/ops", "fleet//ops", 1), `group "fleet//ops"`},
		{roster + strings.Replace(group, "2h", "48h", 1), "lifetime 48h0m0s is not from 1s to 24h"},
		{roster + strings.Replace(group, "ship1", "ship9", 1), `group "fleet/ops": there is no site "ship9"`},
		{"beyond = \"groups\"\n" + roster, "where there are any"},
		{"view = \"a\\nb\"\n" + good, "view"},
		{roster + strings.Replace(churn, "cut", "silence", 1), "churn 1: what"},
		{roster + strings.Replace(churn, "0.125", "1.5", 1), "share 1.5 is not above 0"},
		{roster + strings.Replace(churn, `for = "2s"`, `for = "6s"`, 1), "from 1s to every"},
		{roster + strings.Replace(churn, "50s", "70s", 1), "no time within the play"},
		{roster + churn + "except = [\"hq\", \"ship1\"]\n", "it takes no site"},
		{roster + strings.Replace(destroy, `site = "ship1"`, `except = ["ship1"]`, 1), "a destroy needs a site"},
		{roster + destroy + "except = [\"hq\"]\n", "except is for all sites"},
		{strings.Replace(roster, `"ship1"`, "\"ship1\"\nmachines = 2", 1) + destroy, "a site of several machines is not destroyed"},
		{strings.Replace(roster, `"ship1"`, "\"ship1\"\njxta = 21", 1), "21 JXTA peers"},
	} {
		_, err := fleet.Read("f.toml", []byte(tt.script))
		check.True(t, tt.says, err == nil && tt.says == "" || err != nil && tt.says != "" && strings.Contains(err.Error(), tt.says), err)
	}
}

// Churn takes every site that it may before it takes one again, the same with the same seed, and no destroyed one.
func TestChurn(t *testing.T) {
	data, err := os.ReadFile("../../../field-tests/fleet/flagship.toml")
	check.NoError(check.Fatal(t), err)
	s, err := fleet.Read("f.toml", data)
	check.NoError(check.Fatal(t), err)
	s.Churn[0].Except = nil
	list := s.Happens(1)[len(s.Accidents):]
	check.True(t, "two of sixteen a minute, until the flagship is gone", len(list) > 2*54-5 && len(list) < 2*54, len(list))
	times := map[string]int{}
	for _, a := range list {
		times[a.Site]++
		check.True(t, "the destroyed are left alone", a.Site != "flagship" || a.At.Duration < 32*time.Minute, a)
	}
	for _, x := range s.Sites {
		check.True(t, x.Name, x.Name == "flagship" || times[x.Name] == 6 || times[x.Name] == 7, times[x.Name])
	}
	check.True(t, "another seed, another order", !slices.EqualFunc(list, s.Happens(2)[len(s.Accidents):], func(a, b fleet.Accident) bool { return a.Site == b.Site }))
}

// A site reaches others by the relays that it hears itself and that are nearer.
func TestWays(t *testing.T) {
	data, err := os.ReadFile("../../../field-tests/fleet/flagship.toml")
	check.NoError(check.Fatal(t), err)
	s, err := fleet.Read("f.toml", data)
	check.NoError(check.Fatal(t), err)
	for i := range s.Sites {
		s.Sites[i].Relay = strings.HasPrefix(s.Sites[i].Name, "gate")
	}
	for _, tt := range []struct {
		from, to string
		ways     []string
	}{
		{"sat1", "uhf5", []string{"gate1", "gate2"}},
		{"gate1", "uhf5", []string{"gate3", "gate4"}},
		{"uhf5", "sat1", []string{"gate3", "gate4"}},
		{"flagship", "sat1", []string{"gate1", "gate2"}},
		{"hq", "sat1", []string{"gate1", "gate2", "gate3", "gate4"}},
	} {
		check.True(t, tt.from+" to "+tt.to, slices.Equal(s.Ways(tt.from, tt.to), tt.ways), s.Ways(tt.from, tt.to))
	}
}

// If one living site has a message of a destroyed one, all must have it; a message that was lost with its sender is no fault.
func TestWhatTheDestroyedSaid(t *testing.T) {
	zero := time.Unix(1_800_000_000, 0)
	at := func(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }
	d := func(from, to string, number int64, open bool, came ...int) fleet.Delivery {
		x := fleet.Delivery{From: from, To: to, Peers: fleet.JXTA, Number: number, Open: open, Sent: at(int(number))}
		for _, s := range came {
			x.Came = append(x.Came, at(s))
		}
		return x
	}
	all := []fleet.Delivery{
		d("flag", "a", 1, true, 2), d("flag", "b", 1, true, 90), // repaired
		d("flag", "a", 2, true, 8), d("flag", "b", 2, true), // lost at b
		d("flag", "a", 3, true), d("flag", "b", 3, true), // lost with its sender
		d("flag", "a", 4, false), // custody
		d("a", "flag", 5, true), d("a", "b", 5, true, 7),
	}
	rows := fleet.Sink(all, map[string]time.Time{"flag": at(10)}, zero)
	var ends []fleet.End
	for i := range all {
		ends = append(ends, all[i].End())
	}
	check.True(t, "ends", slices.Equal(ends, []fleet.End{fleet.Delivered, fleet.Delivered, fleet.Delivered, fleet.Lost, fleet.Sunk, fleet.Sunk, fleet.Sunk, fleet.Sunk, fleet.Delivered}), ends)
	check.Equal(t, "the account", rows[0], fleet.Destroyed{Site: "flag", AtS: 10, Said: 3, Lived: 2, All: 1, Heard: 1, Have: 1})
	r := fleet.Result{Ends: map[fleet.End]int{fleet.Delivered: 1}, Destroyed: []fleet.Destroyed{{Site: "flag", Said: 1}}}
	check.True(t, "a play in which nobody heard it shows nothing", r.Faults() != "")
}

// Every fleet that can be drawn can be played: each site is on a channel.
func TestSketches(t *testing.T) {
	for n := range 24 {
		k := fleet.Sketch{Gateways: n, Peers: 5 * n / 2, View: "tree(2)", Churn: 0.125}
		text, err := k.Text()
		check.Equal(t, "drawn", err == nil, n >= 6 && n <= 20)
		if err != nil {
			continue
		}
		s, err := fleet.Read("f.toml", []byte(text))
		check.NoError(check.Fatal(t), err)
		peers, devices := 0, 0
		for _, x := range s.Sites {
			peers, devices = peers+x.JXTA, devices+x.TAK
			check.True(t, x.Name+" is on a channel or two", n-len(s.Far(x.Name)) >= 3, text)
		}
		check.Equal(t, "peers", peers, k.Peers)
		check.Equal(t, "devices", devices, max(n, k.Peers/2))
	}
	var share fleet.Share
	check.NoError(t, share.Set("12.5%"))
	check.Equal(t, "share", share, 0.125)
	check.Equal(t, "text", share.String(), "12.5%")
	for _, bad := range []string{"12.5", "%", "-1%", "101%", "NaN%"} {
		check.True(t, bad, share.Set(bad) != nil)
	}
}
