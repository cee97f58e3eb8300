//go:build long

package gametest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/lab/field"
	"aldis/internal/lab/fleet"
)

const fiveMinutes = 5 * time.Minute

var kinds = []string{field.KindJXSE27, field.KindJXSE27Unsigned, field.KindJXTA22}

// slow22 allows for the start of JXTA 2.2, which takes 14 s on a LAN, minus the time of JXSE 2.7.
func (p promise) slow22() promise {
	p.discovery += 14
	p.firstData += 14
	return p
}

// group plays games at the same time.
func group(t *testing.T, games map[string]func(*testing.T)) {
	t.Helper()
	for name, game := range games {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			game(t)
		})
	}
}

// TestTable: the table of the issue, 200 octets each way every 5 s for five minutes.
func TestTable(t *testing.T) {
	for profile, p := range map[string]promise{"iridium-directip": directip, "iridium-dialup": dialup} {
		for _, kind := range kinds {
			games := map[string]func(*testing.T){}
			for seed := uint64(1); seed <= 3; seed++ {
				games[fmt.Sprint(seed)] = func(t *testing.T) {
					want := p
					if kind == field.KindJXTA22 {
						want = p.slow22()
					}
					play(t, field.Options{Profile: profile, Peers: kind, Seed: seed, Duration: fiveMinutes, Idle: time.Second}, want)
				}
			}
			t.Run(profile+"/"+kind, func(t *testing.T) { group(t, games) })
		}
	}
}

// TestLongOverHTTP: polls end and are opened again twice meanwhile.
func TestLongOverHTTP(t *testing.T) {
	games := map[string]func(*testing.T){}
	for _, kind := range kinds {
		games[kind] = func(t *testing.T) {
			r := play(t, field.Options{Profile: "iridium-directip", Peers: kind, HTTP: true, Seed: 10, Duration: fiveMinutes, Idle: time.Second}, promise{})
			atMost(t, "rendezvous over HTTP", r.RendezvousS, 30)
		}
	}
	group(t, games)
}

// TestScenarios: outage, long message, power cut and silence, on both Iridium links.
func TestScenarios(t *testing.T) {
	for profile, fragment := range map[string]float64{"iridium-directip": 0.9, "iridium-dialup": 1.8} {
		game := func(o field.Options) field.Options {
			o.Profile, o.Seed, o.Duration = profile, 7, fiveMinutes
			if o.Idle == 0 {
				o.Idle = time.Second
			}
			return o
		}
		t.Run(profile, func(t *testing.T) {
			group(t, map[string]func(*testing.T){
				"outage": func(t *testing.T) {
					checkOutage(t, play(t, game(field.Options{OutageAt: 2 * time.Minute, OutageFor: time.Minute, Asker: true}), promise{}))
				},
				"bulk": func(t *testing.T) {
					checkBulk(t, play(t, game(field.Options{Rate: time.Second, Bulk: 20000, BulkAt: time.Minute}), promise{}), fragment)
				},
				"redial": func(t *testing.T) {
					r := play(t, game(field.Options{RedialAt: 2 * time.Minute}), promise{})
					atMost(t, "first message ashore after the ship redialled", r.Redial.UpS, 30)
					atMost(t, "first message to the ship after it redialled", r.Redial.DownS, 30)
				},
				"silence": func(t *testing.T) {
					r := play(t, game(field.Options{Idle: 10 * time.Minute}), promise{})
					if r.Idle.Percent > 1 {
						t.Errorf("silent for %v s: %+v, must be at most 1 %% of the rate", r.Idle.Seconds, r.Idle)
					}
				},
			})
		})
	}
}

// TestPowerCut: kill -9 of a gateway. Messages that its peer sends while it is gone are lost on the LAN, as with any rendezvous; no
// message comes twice or changed, and both sides hear each other again.
func TestPowerCut(t *testing.T) {
	for _, where := range []string{"ship", "hq"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			o := field.Options{
				Profile: "iridium-directip", Seed: 8, Duration: fiveMinutes, Kill: where, KillAt: 2 * time.Minute, Idle: time.Second,
				Gateway: gateway, JarDir: jars, Only: "gateway",
			}
			res, err := field.BlueGame(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			r := res.Runs["gateway"]
			if r.Duplicates != 0 || r.Corrupted != 0 || len(r.GatewayErrors) != 0 {
				t.Errorf("%d twice, %d changed, %v", r.Duplicates, r.Corrupted, r.GatewayErrors)
			}
			for _, m := range r.Missing {
				if m.AtS < 115 || m.AtS > 200 {
					t.Errorf("missing long before or after the power cut: %+v", m)
				}
			}
		})
	}
}

// TestOtherLinks: every other profile, at a rate that it carries.
func TestOtherLinks(t *testing.T) {
	games := map[string]func(*testing.T){}
	for profile, rate := range map[string]time.Duration{
		"iridium-directip-shore": 5 * time.Second, "iridium-dialup-shore": 5 * time.Second, "iridium-certus-100": 5 * time.Second,
		"geo-satcom-128k": 5 * time.Second, "vhf-cnr-16k": 5 * time.Second, "hf-2400": 20 * time.Second, "hf-300": time.Minute,
	} {
		games[profile] = func(t *testing.T) {
			play(t, field.Options{Profile: profile, Peers: field.KindJXSE27, Seed: 9, Duration: fiveMinutes, Rate: rate, Idle: time.Second, Drain: 5 * time.Minute}, promise{})
		}
	}
	group(t, games)
}

// TestHFNet: HQ and three ships on hf-2400, one of them silent.
func TestHFNet(t *testing.T) {
	games := map[string]func(*testing.T){}
	for seed := uint64(1); seed <= 3; seed++ {
		games[fmt.Sprint(seed)] = func(t *testing.T) {
			o := field.Options{Profile: "hf-2400", Peers: field.KindJXSE27, Seed: seed, Ships: 3, Silent: 1, Rate: 20 * time.Second,
				Duration: 10 * time.Minute, Idle: time.Second}
			checkSilence(t, play(t, o, promise{}))
		}
	}
	group(t, games)
}

// TestFleetOfTranslated: two ships behind address translation get a direct session, while which HQ passes on next to nothing, and go back
// to HQ when one of the translations is reset: each message has one true end.
func TestFleetOfTranslated(t *testing.T) {
	t.Parallel()
	res := fleetWith(t, "direct", 3*time.Minute, gateway, "", field.KindJXSE27)
	check.Equal(t, "all are delivered", res.Ends[fleet.Delivered], res.Rows[0].Sent+res.Rows[1].Sent)
	reset := slices.IndexFunc(res.Events, func(e fleet.Event) bool { return strings.Contains(e.What, "gets another address") })
	check.True(check.Fatal(t), "a translation is reset", reset >= 0, res.Events)
	for _, site := range []string{"ship1", "ship2"} {
		i := slices.IndexFunc(res.Sessions, func(s fleet.Session) bool { return s.Site == site })
		check.True(check.Fatal(t), site+" has a session", i >= 0, res.Sessions)
		s, at := res.Sessions[i], res.Events[reset].AtS
		check.True(t, site+": the session lasts until the reset", s.AtS < at && s.EndS > at, s, at)
		check.True(t, site+": it has carried something", s.Spared > 0, s)
		check.True(t, site+": meanwhile HQ sends less than a third of what a ship sends, instead of as much", 3*s.Octets["hq"] < s.Octets[site], s)
	}
}

// TestFleetOfPackages: HQ of three and a ship, each machine a clean Debian on which dpkg installs the package; power is lost with what was
// not synced, and all of HQ are upgraded to another package: each message has one true end.
func TestFleetOfPackages(t *testing.T) {
	dist := t.TempDir()
	var file [2]string
	for i, version := range []string{"0.2.0~1", "0.2.0~2"} {
		build := exec.Command("../../../../scripts/packages", runtime.GOARCH)
		build.Env = append(os.Environ(), "DIST="+dist, "VERSION="+version)
		out, err := build.CombinedOutput()
		check.True(check.Fatal(t), "packages", err == nil, string(out))
		file[i] = filepath.Join(dist, "aldis-gateway_"+version+"_"+runtime.GOARCH+".deb")
	}
	res := fleetWith(t, "three", 100*time.Second, file[0], file[1], field.KindTAK)
	check.Equal(t, "the version", res.Gateway+", "+res.Upgrade, "aldis-gateway 0.2.0~1, aldis-gateway 0.2.0~2")
	check.Equal(t, "accidents", len(res.Takeovers), 6)
}
