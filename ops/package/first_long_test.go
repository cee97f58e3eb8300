//go:build long

package install

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

// typed are the commands that somebody types at one side, as docs/install.md has them.
type typed struct {
	m     *machine
	lines []string
	took  []time.Duration
}

func (c *typed) run(line string) string {
	c.m.t.Helper()
	began := time.Now()
	out := c.m.sh(line)
	c.lines, c.took = append(c.lines, line), append(c.took, time.Since(began))
	return out
}

// side is one of two gateways with its peer.
type side struct {
	id             int
	name           string
	lan, link, web string
}

// sideOf draws addresses of this machine, whose network the Debians are in.
func sideOf(t *testing.T, id int, name string) side {
	return side{id, name, check.FreeAddress(t, "tcp"), check.FreeAddress(t, "udp"), check.FreeAddress(t, "tcp")}
}

// set is the editor's work in the configuration: the marked lines, and ports, which two machines in one network cannot share.
func (s side) set(far side) string {
	return fmt.Sprintf(`cd /etc/aldis && sed -i -e '0,/^id = 0 /s//id = %d /' -e '0,/^name = ""/s//name = "%s"/' gateway.toml && sed -i -e 's/^id = 0 /id = %d /' -e 's/^name = ""/name = "%s"/' `+
		`-e 's/^tcp = ""/tcp = "%s"/' -e 's/^profile = ""/profile = "wire"/' -e 's/0.0.0.0:7142/%s/' -e 's/127.0.0.1:9142/%s/' -e 's/^#address = "192.0.2.1:7142"/address = "%s"/' gateway.toml`,
		s.id, s.name, far.id, far.name, s.lan, s.link, s.web, far.link)
}

// TestFirstMessageWithThePackage: from two Debians that have nothing to a message from a peer at one to a peer at the other, by
// the commands of docs/install.md and nothing else. They are counted, and the time is told.
func TestFirstMessageWithThePackage(t *testing.T) {
	dist := t.TempDir()
	must(t, []string{"DIST=" + dist, "VERSION=" + newer}, "../../scripts/packages", "amd64")
	roots := [2]string{debian(t), filepath.Join(t.TempDir(), "root")}
	must(t, nil, "cp", "-a", roots[0], roots[1])
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"\napt install ./bin/packages/aldis-gateway_*_amd64.deb ", "\neditor /etc/aldis/gateway.toml ", "\ngateway keys new -o /etc/aldis/net.key ", "\nchown aldis /etc/aldis/net.key\n",
		"\ngateway check\n", "\nsystemctl edit --full aldis-gateway.socket ", "\nsystemctl enable --now aldis-gateway.socket aldis-gateway.service\n", "\ngateway status\n"} {
		if !strings.Contains(string(page), line) {
			t.Errorf("docs/install.md has no %q: this test types what stands there", line)
		}
	}
	sides := [2]side{sideOf(t, 1, "hq"), sideOf(t, 2, "ship")}
	var hands [2]*typed
	for i := range hands {
		m := start(t, roots[i])
		must(t, nil, "mkdir", "-p", filepath.Join(roots[i], "root/bin"))
		must(t, nil, "cp", "-r", dist, filepath.Join(roots[i], "root/bin/packages"))
		m.sh("apt-get -qq update") // a Debian in service has its lists
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(m.sh("systemctl status --no-pager aldis-gateway.service aldis-gateway.socket; journalctl --no-pager -n 40 -u aldis-gateway.service; gateway status; cat /etc/aldis/gateway.toml; true"))
			}
		})
		hands[i] = &typed{m: m}
	}
	began := time.Now()
	for i, c := range hands {
		c.run("cd /root && apt-get -qq -y --no-install-recommends install ./bin/packages/aldis-gateway_*_amd64.deb")
		c.run(sides[i].set(sides[1-i]))
		if i == 0 {
			c.run("gateway keys new -o /etc/aldis/net.key")
		} else { // by hand, over a channel that one trusts
			key := must(t, nil, "cat", filepath.Join(roots[0], "etc/aldis/net.key"))
			c.run("(umask 077; cat >/etc/aldis/net.key) <<'end'\n" + key + "end\n")
		}
		c.run("chown aldis /etc/aldis/net.key")
		c.run("gateway check")
		c.run("sed 's/10.20.0.1:9701/" + sides[i].lan + "/' /lib/systemd/system/aldis-gateway.socket >/etc/systemd/system/aldis-gateway.socket && systemctl daemon-reload")
		c.run("systemctl enable --now aldis-gateway.socket aldis-gateway.service")
		check.Until(t, patience, "the gateway answers", func() bool { return strings.Contains(c.m.sh("gateway status 2>&1 || true"), "node ") })
		c.run("gateway status")
	}
	pipe := edgepeer.NamedPipe("first")
	e := &ear{times: map[string]int{}}
	e.dial(t, sides[0].lan, pipe)
	talker := dialled(t, tcp.Config{Edge: edgepeer.Config{Name: "talker", Rand: rand.New(rand.NewPCG(2, 2))}, Address: sides[1].lan})
	said := 0
	check.Until(t, patience, "the first message is there", func() bool {
		_, err := talker.Do(edgepeer.Send{Pipe: pipe, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Namespace: "t", Name: "body", Data: []byte(fmt.Sprint("first ", said))}}})
		if err != nil {
			t.Fatal(err)
		}
		said++
		return e.heard("first ") > 0
	})
	for i, c := range hands {
		t.Logf("%s: %d commands, %v", sides[i].name, len(c.lines), c.took)
		if len(c.lines) > 8 {
			t.Errorf("%d commands, at most 8 are wanted", len(c.lines))
		}
	}
	t.Logf("from the first command to the first message, both sides one after the other: %v", time.Since(began).Round(time.Second))
	report := hands[1].m.sh("gateway doctor || true")
	t.Logf("gateway doctor in the unit:\n%s", report)
	for _, want := range []string{"rights.hardening: of the unit's hardening is active", "rights.core: a crash leaves no core dump", "rights.user: the gateway runs as aldis, without a capability",
		"is held by the gateway", "far.heard (hq): hq is heard", "far.key (hq): hq has the same key", "faults: 0"} {
		if !strings.Contains(report, want) {
			t.Errorf("gateway doctor does not say %q", want)
		}
	}
	hands[1].m.sh("gateway drain --stop && ! systemctl is-active aldis-gateway.service && ! systemctl is-active aldis-gateway.socket")
	hands[1].m.sh("gateway backup /root/copy.db && mv /var/lib/aldis /var/lib/aldis.lost && install -d -m 700 -o aldis -g aldis /var/lib/aldis && gateway restore /root/copy.db && systemctl start aldis-gateway.socket aldis-gateway.service")
	check.Until(t, patience, "the restored gateway answers", func() bool { return strings.Contains(hands[1].m.sh("gateway status 2>&1 || true"), "hq  up") })
}

// TestDowngradeIsRefused: the package of a later version, whose journal has another form, is replaced by this one: the start is
// refused with a sentence, nothing is changed, and with the later package again what waited goes on.
func TestDowngradeIsRefused(t *testing.T) {
	dist, later := t.TempDir(), t.TempDir()
	must(t, []string{"DIST=" + dist, "VERSION=" + newer}, "../../scripts/packages", "amd64")
	must(t, nil, "sh", "-c", `cd ../.. && { git ls-files -co --exclude-standard; echo .git; } | tar -c --ignore-failed-read -T - | tar -x -C "$0" && cd "$0" &&
		grep -q '^	format       = 3$' internal/edge/journal/journal.go && sed -i 's/^	format       = 3$/	format       = 4/' internal/edge/journal/journal.go`, later)
	const next = "0.3.0~1"
	must(t, []string{"DIST=" + dist, "VERSION=" + next}, filepath.Join(later, "scripts/packages"), "amd64")
	m := boot(t)
	must(t, nil, "cp", "-r", dist, filepath.Join(m.root, "root/packages"))
	deb := func(version string) string { return "/root/packages/aldis-gateway_" + version + "_amd64.deb" }
	ship, hq := sideOf(t, 2, "ship"), sideOf(t, 1, "hq")
	m.sh("apt-get -qq update; apt-get -qq -y --no-install-recommends install " + deb(next))
	m.sh(ship.set(hq) + "; gateway keys new -o net.key; chown aldis net.key; sed 's/10.20.0.1:9701/" + ship.lan +
		"/' /lib/systemd/system/aldis-gateway.socket >/etc/systemd/system/aldis-gateway.socket; systemctl enable --now aldis-gateway.socket aldis-gateway.service")
	m.status()
	m.sh("systemctl stop aldis-gateway.socket aldis-gateway.service")
	journal := sum(t, filepath.Join(m.root, "var/lib/aldis/aldis.db"))

	m.sh("apt-get -qq -y --allow-downgrades install " + deb(newer))
	m.sh("systemctl start aldis-gateway.service || true")
	const says = "it was written by a newer gateway (format 4; this gateway reads 3); install the newer gateway"
	check.Until(t, patience, "the log says why it does not start", func() bool { return strings.Contains(m.sh("journalctl -u aldis-gateway.service || true"), says) })
	if out := m.sh("gateway journal check 2>&1 || true"); !strings.Contains(out, "newer gateway") {
		t.Errorf("journal check says %q", out)
	}
	m.sh("systemctl stop aldis-gateway.socket aldis-gateway.service")
	if sum(t, filepath.Join(m.root, "var/lib/aldis/aldis.db")) != journal {
		t.Error("the older package has changed the journal")
	}
	m.sh("apt-get -qq -y install " + deb(next) + "; systemctl reset-failed; systemctl start aldis-gateway.socket aldis-gateway.service")
	m.status()
}
