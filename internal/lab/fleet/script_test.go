package fleet_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/fleet"
)

const good = `duration = "1m"
[[bearer]]
name = "sat"
profile = "iridium-directip"
[[site]]
name = "hq"
[[site]]
name = "ship1"
[[talk]]
every = "5s"
octets = 200
`

// Each mistake has a line of its own, which names the place.
func TestMistakesOfScripts(t *testing.T) {
	for _, tt := range []struct {
		script string
		says   []string
	}{
		{good, nil},
		{"x = [", []string{"f.toml:1: "}},
		{good + "nonsense = 1\n[[site]]\nname = \"x\"\nhull = 7\n", []string{"f.toml:12: there is no key \"talk.nonsense\"", "f.toml:15: there is no key \"site.hull\""}},
		{strings.Replace(good, "1m", "soon", 1), []string{"f.toml:1: ", "soon"}},
		{strings.Replace(good, "1m", "-1m", 1), []string{"no time such as 90s"}},
		{strings.Replace(good, "1m", "1s", 1), []string{"duration: 1s is not from"}},
		{strings.Replace(good, "ship1", "hq", 1), []string{`site "hq": there is another one`}},
		{strings.Replace(good, "ship1", "../x", 1), []string{"small letters"}},
		{strings.Replace(good, "iridium-directip", "/etc/passwd", 1), []string{"only a profile of this program"}},
		{strings.Replace(good, "200", "7", 1), []string{"talk 1: 7 octets"}},
		{good + "[[accident]]\nwhat = \"fire\"\nsite = \"ship9\"\nbearer = \"uhf\"\nat = \"2m\"\n", []string{"accident 1: what", `site "ship9"`, `bearer "uhf"`, "not before that of the play"}},
		{good + "[[accident]]\nwhat = \"kill\"\n", []string{"a kill needs a site"}},
		{strings.Replace(strings.Replace(good, `"ship1"`, "\"ship1\"\nnat = true", 1), "[[site]]", "direct = 0\n[[site]]", 1) + "[[accident]]\nwhat = \"redial\"\nsite = \"ship1\"\n", nil},
		{strings.Replace(good, "[[site]]", "direct = 65\n[[site]]", 1) + "[[accident]]\nwhat = \"redial\"\nsite = \"ship1\"\n", []string{"direct is not from 0 to 64", "a redial needs a site behind address translation"}},
		{strings.Replace(good, `"ship1"`, "\"ship1\"\nbare = true\njxta = 1", 1) + "from = [\"ship1\"]\n", []string{`site "ship1": bare, with local peers`, `nobody is at site "ship1"`}},
		{good + "[[accident]]\nwhat = \"cut\"\n", []string{"for how long?"}},
		{strings.Replace(good, `"ship1"`, "\"ship1\"\njoins = \"30s\"", 1), []string{"1 sites are there at the start"}},
		{strings.Replace(good, "[[site]]", "over = \"ssh\"\nsites = [\"hq\"]\n[[site]]", 1), []string{`over "ssh"`, "one site alone is on it", `site "ship1": it is on no bearer`}},
		{strings.Replace(good, "[[site]]", "sites = [\"hq\", \"ship9\"]\n[[site]]", 1), []string{`bearer "sat": there is no site "ship9"`}},
		{strings.Replace(good, `"ship1"`, "\"ship1\"\nfirewall = 443", 1), []string{`the firewall of "ship1" lets only TCP out`}},
		{strings.Replace(good, `"ship1"`, "\"ship1\"\nfirewall = -1\njoins = \"5s\"\nrelay = true", 1), []string{"firewall -1 is no port", "who joins is no relay"}},
		{strings.Replace(good, `"ship1"`, "\"ship1\"\nmachines = 2", 1) + "[[accident]]\nwhat = \"power\"\nsite = \"ship1\"\nmachine = \"both\"\nat = \"20s\"\nfor = \"5s\"\n", nil},
		{strings.Replace(good, `"ship1"`, "\"ship1\"\nmachines = 10", 1), []string{`site "ship1": 10 machines: 1 to 9`}},
		{strings.Replace(good, `"ship1"`, "\"ship1\"\nmachines = 3", 1) + "[[accident]]\nwhat = \"upgrade\"\nsite = \"ship1\"\nmachine = \"3\"\nat = \"20s\"\nfor = \"5s\"\n", nil},
		{strings.Replace(good, `"ship1"`, "\"ship1\"\nmachines = 3", 1) + "[[accident]]\nwhat = \"upgrade\"\nsite = \"ship1\"\nmachine = \"4\"\nfor = \"5s\"\n", []string{"has no machine 4"}},
		{strings.Replace(good, `"ship1"`, "\"ship1\"\nmachines = 3", 1) + "[[accident]]\nwhat = \"upgrade\"\nsite = \"ship1\"\nmachine = \"both\"\nfor = \"5s\"\n", []string{"needs a site of two machines", "one machine after the other"}},
		{strings.Replace(good, `"ship1"`, "\"ship1\"\nmachines = 2\nnat = true", 1), []string{"behind no wall"}},
		{strings.Replace(strings.Replace(good, `"ship1"`, "\"ship1\"\nmachines = 2", 1), "[[site]]", "over = \"tls\"\n[[site]]", 1), []string{"on no bearer over TLS"}},
		{good + "[[accident]]\nwhat = \"power\"\nsite = \"hq\"\nmachine = \"helm\"\n", []string{`machine "helm": leader, follower, both or a number`, "need a site of two machines or more"}},
		{good + "[[accident]]\nwhat = \"stop\"\nfor = \"5s\"\n", []string{"need a site of two machines or more", "a stop needs a site"}},
		{strings.Replace(good, `"ship1"`, "\"ship1\"\nmachines = 2", 1) + "[[accident]]\nwhat = \"cut\"\nsite = \"ship1\"\nmachine = \"leader\"\nfor = \"5s\"\n", []string{"machine is for kill, power, stop or upgrade"}},
		{strings.Repeat("#", fleet.MaxScript+1), []string{"at most 65536 are read"}},
	} {
		_, err := fleet.Read("f.toml", []byte(tt.script))
		check.Equal(t, "error", err != nil, len(tt.says) > 0)
		for _, text := range tt.says {
			check.True(t, text, err != nil && strings.Contains(err.Error(), text), err)
		}
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				check.True(t, "each line names the file", strings.HasPrefix(line, "f.toml:"), err)
			}
		}
	}
}

// The scripts of the repository can be played; in a tenth of the time events come ten times as soon.
func TestScriptsOfTheRepository(t *testing.T) {
	files, err := filepath.Glob("../../../field-tests/fleet/*.toml")
	check.True(check.Fatal(t), "two scripts or more", err == nil && len(files) >= 2, files, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		check.NoError(check.Fatal(t), err)
		s, err := fleet.Read(file, data)
		check.NoError(check.Fatal(t), err)
		was, every := slices.Clone(s.Accidents), s.Talks[0].Every
		check.NoError(t, s.Scale(s.Duration.Duration/10))
		for i, a := range s.Accidents {
			check.Equal(t, "an accident", a.At.Duration, was[i].At.Duration/10)
			if a.What != fleet.Destroy { // that waits for another site
				check.Equal(t, "lasts", a.For.Duration, was[i].For.Duration/10)
			}
		}
		check.Equal(t, "the talk", s.Talks[0].Every, every)
		check.Equal(t, "direct sessions may come about: "+file, s.Introduces(), filepath.Base(file) == "direct.toml")
		check.True(t, "too short a play", s.Scale(time.Second) != nil)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := fleet.Read("f.toml", data)
		if (s == nil) && err == nil {
			t.Fatal("neither a script nor an error")
		}
	})
}
