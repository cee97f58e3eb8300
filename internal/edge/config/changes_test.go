package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
	"aldis/internal/link/profile"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
)

// TestChangesMissNothing: every value of a Config that differs is a change, except the path of the file.
func TestChangesMissNothing(t *testing.T) {
	var leaves func(path string, v reflect.Value, visit func(string, reflect.Value))
	leaves = func(path string, v reflect.Value, visit func(string, reflect.Value)) {
		if v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[netip.AddrPort]() && path != ".Link.Profile" {
			for i := range v.NumField() {
				leaves(path+"."+v.Type().Field(i).Name, v.Field(i), visit)
			}
			return
		}
		visit(path, v)
	}
	set := func(v reflect.Value) {
		switch v.Interface().(type) {
		case netip.AddrPort:
			v.Set(reflect.ValueOf(netip.MustParseAddrPort("192.0.2.1:9")))
			return
		case []Peer:
			v.Set(reflect.ValueOf([]Peer{{ID: 9, Name: "x"}}))
			return
		}
		switch v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Array:
			v.Index(0).SetUint(7)
		case reflect.Struct:
			v.Field(0).SetString("x")
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		case reflect.Float64:
			v.SetFloat(7)
		case reflect.Uint16:
			v.SetUint(7)
		default:
			v.SetInt(7)
		}
	}
	n := 0
	leaves("", reflect.ValueOf(&Config{}).Elem(), func(path string, _ reflect.Value) {
		if path == ".File" {
			return
		}
		n++
		next := &Config{}
		leaves("", reflect.ValueOf(next).Elem(), func(p string, v reflect.Value) {
			if p == path {
				set(v)
			}
		})
		if got := (&Config{}).Changes(next); len(got) != 1 {
			t.Errorf("Config%s set differently: %v, want one change", path, got)
		}
	})
	check.True(t, "at least 25 settings were tried", n >= 25, n)
	c := &Config{File: "a"}
	check.Equal(t, "changes of another path", len(c.Changes(&Config{File: "b"})), 0)
}

func TestChangesInWords(t *testing.T) {
	old := &Config{Filters: []filter.Rule{{Line: 3, Name: "a"}, {Line: 9, Name: "b"}}, Messages: []mark.Rule{{Line: 4}},
		Link: Link{Peers: []Peer{{1, "hq", netip.MustParseAddrPort("10.0.0.1:7142"), false, ""}, {2, "tug", netip.AddrPort{}, false, ""}}},
		HTTP: HTTP{TokenFile: "t", Token: "sesame sesame sesame"}, Delivery: Delivery{Wait: time.Hour}}
	next := &Config{Filters: []filter.Rule{{Line: 30, Name: "a"}, {Line: 90, Name: "b"}}, Messages: []mark.Rule{{Line: 4}, {Line: 8}},
		Rules: []compact.Rule{{Type: "x"}},
		Link:  Link{Peers: []Peer{{4, "new", netip.AddrPort{}, false, ""}, {1, "hq", netip.MustParseAddrPort("10.0.0.9:7142"), false, ""}}},
		HTTP:  HTTP{TokenFile: "t", Token: "open open open open"}, Delivery: Delivery{Wait: 2 * time.Hour}}
	var got []string
	for _, c := range old.Changes(next) {
		got = append(got, fmt.Sprint(c, " ", c.Restart))
	}
	want := []string{
		`[[link.peer]] 1: "hq" at 10.0.0.9:7142, was "hq" at 10.0.0.1:7142 false`,
		`[[link.peer]] 2: "tug" at no address is gone false`,
		`[[link.peer]] 4: "new" at no address is new false`,
		`delivery.wait: 2h, was 1h true`,
		`[[compact.rule]]: 1 rule is new false`,
		`[[message]]: 2 rules, was 1 rule false`,
		`the token of http.token_file: changed false`,
	}
	check.Equal(t, "changes", strings.Join(got, "\n"), strings.Join(want, "\n"))

	// On a shared channel a new peer is in force at once. If the profile is a file, a new tariff is in force at once.
	old.Link.Profile, next = profile.Profile{Name: "p", Bill: profile.Bill{Tariff: "octets"}}, &Config{}
	*next = *old
	next.Link.Profile = profile.Profile{Name: "p", Bill: profile.Bill{Tariff: "minutes"}, Transport: profile.PMul}
	next.Link.Peers = append(next.Link.Peers[:2:2], Peer{ID: 7})
	got = nil
	for _, c := range old.Changes(next) {
		got = append(got, fmt.Sprint(c, " ", c.Restart))
	}
	want = []string{`link.profile (its tariff): minutes, was octets false`, `link.profile (its file): changed true`, `[[link.peer]] 7: "" at no address is new false`}
	check.Equal(t, "changes", strings.Join(got, "\n"), strings.Join(want, "\n"))

	*next = *old
	next.Link.Peers = slices.Clone(old.Link.Peers)
	next.Link.Peers[0].Shore = true
	check.Equal(t, "another shore", fmt.Sprint(old.Changes(next)), `[[[link.peer]] 1: "hq" at 10.0.0.1:7142, the shore, was "hq" at 10.0.0.1:7142]`)
}

// A configuration that Text has written reads the same, including quotes and numbers, and has no key with its default.
func TestText(t *testing.T) {
	ends := strings.NewReplacer("key_file", "end = \"shore\"\nkeepalive = \"2m\"\nkey_file", "id = 1\n", "id = 1\nend = \"shore\"\n")
	c, err := Load(write(t, ends.Replace(good)))
	check.NoError(check.Fatal(t), err)
	file := write(t, c.Text())
	for _, word := range []string{"max_connections", "[log]", "wait"} {
		check.True(t, "a default is left out: "+word, !strings.Contains(c.Text(), word), c.Text())
	}
	again, err := Load(file)
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "changes", fmt.Sprint(c.Changes(again)), "[]")
}
