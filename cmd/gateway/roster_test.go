package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/edge/keyfile"
	"aldis/internal/lab/check"
	"aldis/internal/link/frame"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// office is the authority of a test's network.
type office struct{ dir, public string }

func (o *office) roster() string { return filepath.Join(o.dir, "net.roster") }

// does runs gateway keys, which must succeed, and returns its output.
func does(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := run(t, append([]string{"keys"}, args...)...)
	if code != 0 {
		t.Fatalf("keys %q: exit %d: %s", args, code, errs)
	}
	return out
}

// line is the rest of the line of out that begins with word.
func line(t *testing.T, out, word string) string {
	t.Helper()
	for _, l := range strings.Split(out, "\n") {
		if rest, ok := strings.CutPrefix(l, word); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("no line begins with %q:\n%s", word, out)
	return ""
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{dir: t.TempDir()}
	check.NoError(t, os.WriteFile(filepath.Join(o.dir, "phrase"), []byte("correct horse battery\nsecond line\n"), 0o600))
	out := does(t, "authority", "new", "-o", filepath.Join(o.dir, "authority.key"), "--passphrase-file", filepath.Join(o.dir, "phrase"))
	o.public = line(t, out, "public")
	return o
}

// sign runs gateway keys roster with the authority's key.
func (o *office) sign(t *testing.T, args ...string) string {
	t.Helper()
	return does(t, append(append([]string{"roster"}, args...), "--authority", filepath.Join(o.dir, "authority.key"), "--passphrase-file", filepath.Join(o.dir, "phrase"))...)
}

// member makes a site with a key of its own, which the authority does not know yet.
func (o *office) member(t *testing.T, id int) (s *testSite, node string) {
	t.Helper()
	s = newSite(t, id, "")
	out := does(t, "node", "new", "-o", filepath.Join(s.dir, "node.key"))
	s.keys = fmt.Sprintf("roster = \"net.roster\"\nnode_key = \"node.key\"\nauthority = %q", o.public)
	return s, fmt.Sprintf("%d,node%d,%s", id, id, line(t, out, "public"))
}

// give copies the roster to a site.
func (o *office) give(t *testing.T, s *testSite) {
	t.Helper()
	text, err := os.ReadFile(o.roster())
	check.NoError(t, err)
	check.NoError(t, keyfile.Replace(filepath.Join(s.dir, "net.roster"), string(text), 0o644))
}

// Two gateways with a roster meet, carry a message, and show the same fingerprints at both ends. A third one, which has a valid
// key and the roster too, sends in the first one's name: its datagrams are refused and counted, and log and audit record name
// it.
func TestRosterOfRealGateways(t *testing.T) {
	o := newOffice(t)
	var sites []*testSite
	var nodes []string
	for id := 1; id <= 3; id++ {
		s, node := o.member(t, id)
		sites, nodes = append(sites, s), append(nodes, "--node", node)
	}
	out := o.sign(t, append([]string{"new", "-o", o.roster(), "--network", "blue"}, nodes...)...)
	wants(t, out, "roster 1 of the network blue, 3 nodes")
	for _, s := range sites {
		o.give(t, s)
	}
	sa, sb := sites[0], sites[1]
	sa.write(t, filepath.Join(sa.dir, "data"), "2 "+sb.link)
	sb.write(t, filepath.Join(sb.dir, "data"), "1 "+sa.link, "3")
	code, out, errs := run(t, "check", sa.file)
	check.Equal(t, "check, and "+errs, code, 0)
	wants(t, out, "node key ", "roster 1 of the network blue with 3 nodes")
	a, b := sa.start(t), sb.start(t)
	a.until(t, "its peer is up", func() bool { return a.peer(t).Link == "up" })

	k := newTalk(t, a, b)
	if err := k.say("first"); err != nil {
		t.Fatal(err)
	}
	a.until(t, "the message is there", func() bool { return k.there.all() == "first" })

	_, ofA, _ := run(t, "status", "-c", a.file)
	_, ofB, _ := run(t, "status", "-c", b.file)
	shown := does(t, "show", filepath.Join(a.dir, "node.key"))
	print := line(t, shown, "fingerprint")
	check.Equal(t, "of itself", line(t, ofA, "node key"), print)
	wants(t, ofB, fmt.Sprintf("%q has the key %s", "node1", print), "roster 1 of the network blue, signed by ")
	wants(t, does(t, "show", o.roster()), print)

	// The third gateway has everything that a member has.
	own, err := keyfile.LoadNodeKey(filepath.Join(sites[2].dir, "node.key"))
	check.NoError(check.Fatal(t), err)
	r, err := keyfile.LoadRoster(o.roster())
	check.NoError(check.Fatal(t), err)
	ring, err := roster.Ring(3, own, r)
	check.NoError(check.Fatal(t), err)
	link, err := net.Dial("udp", b.link)
	check.NoError(check.Fatal(t), err)
	defer link.Close()
	was := b.status(t).Peers[0]
	for i := range 5 {
		forger := seal.NewSealer(ring, 1, seal.Incarnation{Number: was.Start + uint32(i%2), Salt: 9})
		body := frame.Append(nil, frame.Hello{Store: 5, Stream: 9, HeardIncarnation: b.status(t).IncarnationNumber}, true)
		for _, to := range []uint16{2, seal.Group} {
			d, err := forger.Seal(nil, to, true, body)
			check.NoError(t, err)
			link.Write(d)
		}
	}
	b.until(t, "ten are refused", func() bool {
		s := b.status(t)
		return s.Dropped["forged"] == 5 && s.Dropped["not_authentic"] >= 5 && s.Peers[0].Forged == 5 && s.Peers[0].Strange >= 5
	})
	is := b.status(t).Peers[0]
	check.Equal(t, "start that counts", is.Start, was.Start)
	check.Equal(t, "address", is.Address, was.Address)
	wants(t, b.logged(), "a member of the network sends group datagrams in another node's name", `"in_the_name_of":"node1"`)
	b.stop(t, syscall.SIGTERM)
	_, out, _ = run(t, "audit", "show", "-c", b.file)
	wants(t, out, "not sealed by whom they name: node1 10", "forged 5", "not_authentic 5", "node key ", "roster 1 of authority ")
}

// Rosters are made, changed, shown and verified, and every mistake is reported.
func TestKeysRoster(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	_, one := o.member(t, 1)
	s2, two := o.member(t, 2)
	o.sign(t, "new", "-o", o.roster(), "--network", "blue", "--node", one, "--node", two)
	wants(t, does(t, "roster", "verify", o.roster(), "--by", o.public), "is signed by")
	wants(t, does(t, "authority", "show", filepath.Join(o.dir, "authority.key")), o.public)
	_, three := o.member(t, 3)
	wants(t, o.sign(t, "add", o.roster(), "--node", three), "roster 2 of the network blue, 3 nodes", "new: 3 node3")
	wants(t, o.sign(t, "remove", o.roster(), "--id", "2"), "roster 3 of the network blue, 2 nodes", "gone: 2 node2")
	wants(t, o.sign(t, "roll", o.roster(), "--at", "2030-01-02T03:04:05Z"), "roster 4")
	wants(t, does(t, "roster", "show", o.roster()), "net blue, roster 4", "from 2030-01-02T03:04:05Z", "node3")
	_, four := o.member(t, 4)
	wants(t, o.sign(t, "add", o.roster(), "--node", four+",on=hf,on=sat@192.0.2.4:7142,relay"), "roster 5", "new: 4 node4")
	wants(t, o.sign(t, "add", o.roster(), "--node", four), "roster 6") // what is not said stays
	wants(t, does(t, "roster", "show", o.roster()), "relay on=hf on=sat@192.0.2.4:7142")
	info, err := os.Stat(filepath.Join(s2.dir, "node.key"))
	check.NoError(t, err)
	check.Equal(t, "mode of a node's key", info.Mode().Perm(), 0o600)
	text, err := os.ReadFile(filepath.Join(o.dir, "authority.key"))
	check.NoError(t, err)
	check.True(t, "the authority's file does not hold its passphrase", !strings.Contains(string(text), "horse"))

	bad := filepath.Join(o.dir, "bad")
	check.NoError(t, os.WriteFile(bad, []byte("wrong passphrase\n"), 0o600))
	short := filepath.Join(o.dir, "short")
	check.NoError(t, os.WriteFile(short, []byte("abc\n"), 0o600))
	authority := filepath.Join(o.dir, "authority.key")
	other := newOffice(t)
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"roster roll ROSTER --authority AUTHORITY --passphrase-file " + bad, 1, "the passphrase is wrong"},
		{"roster roll ROSTER --authority AUTHORITY", 1, "no terminal to ask for the passphrase: say --passphrase-file"},
		{"roster roll ROSTER --authority " + filepath.Join(other.dir, "authority.key") + " --passphrase-file " + filepath.Join(other.dir, "phrase"), 1, "not signed by this authority"},
		{"roster remove ROSTER --id 9 --authority AUTHORITY --passphrase-file x", 1, "names no node 9"},
		{"roster add ROSTER --node 5,x --authority AUTHORITY --passphrase-file x", 1, "say ID,NAME,PUBLIC"},
		{"roster add ROSTER --node " + four + ",on=hf@x --authority AUTHORITY --passphrase-file x", 1, "is not on=BEARER or on=BEARER@HOST:PORT"},
		{"roster add ROSTER --node " + four + ",hf --authority AUTHORITY --passphrase-file x", 1, "is neither relay nor on=BEARER"},
		{"roster add ROSTER --node 0,x,y --authority AUTHORITY --passphrase-file x", 1, "0 is no id"},
		{"roster add ROSTER --node 5,x,y --authority AUTHORITY --passphrase-file x", 1, "gateway keys node show prints it"},
		{"roster new -o " + filepath.Join(o.dir, "x") + " --network blue --node " + one + " --node " + one + " --authority AUTHORITY --passphrase-file x", 1, "node 1 is there twice"},
		{"roster roll ROSTER --at noon --authority AUTHORITY --passphrase-file x", 1, `"noon" is no time: write 10:32`},
		{"roster verify ROSTER --by " + other.public, 1, "not signed by"},
		{"roster verify ROSTER", 2, "--by is missing"},
		{"roster show ROSTER --network x", 2, "does not take --net"},
		{"roster show", 2, "name the file"},
		{"roster fly ROSTER", 2, "say: gateway keys new"},
		{"node new", 2, "say: gateway keys node new -o FILE"},
		{"node new -o " + authority, 1, "exists and is not overwritten"},
		{"node show AUTHORITY", 1, "not an aldis node key"},
		{"authority new -o " + filepath.Join(o.dir, "x") + " --passphrase-file " + short, 1, "at least 12 octets"},
		{"show " + bad, 1, "is no key and no roster of Aldis"},
	} {
		args := strings.Fields("keys " + strings.NewReplacer("ROSTER", o.roster(), "AUTHORITY", authority).Replace(tt.args))
		code, out, errs := run(t, args...)
		if code != tt.code || !strings.Contains(errs, tt.says) {
			t.Errorf("%s: exit %d, %s%s\nwant %d, %s", tt.args, code, out, errs, tt.code, tt.says)
		}
	}
	wants(t, does(t, "roster", "show", o.roster()), "roster 6") // what was refused has changed nothing
}

// A roster that one gateway gets is in force at both within seconds, and stays in force whichever gateway is killed on the way;
// messages go on. A gateway that the roster no longer names is not heard.
func TestRolloverOfRealGateways(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	sa, one := o.member(t, 1)
	sb, two := o.member(t, 2)
	o.sign(t, "new", "-o", o.roster(), "--network", "blue", "--node", one, "--node", two)
	o.give(t, sa)
	o.give(t, sb)
	sa.write(t, filepath.Join(sa.dir, "data"), "2 "+sb.link)
	sb.write(t, filepath.Join(sb.dir, "data"), "1 "+sa.link)
	a, b := sa.start(t), sb.start(t)
	a.until(t, "its peer is up", func() bool { return a.peer(t).Link == "up" })

	code, _, errs := run(t, "keys", "rollover", o.roster(), "-c", a.file)
	check.Equal(t, "exit with the roster in use", code, 1)
	wants(t, errs, "has the serial 1; the gateway already uses 1")
	other := newOffice(t)
	other.sign(t, "new", "-o", other.roster(), "--network", "blue", "--node", one, "--node", two)
	other.sign(t, "roll", other.roster())
	code, _, errs = run(t, "keys", "rollover", other.roster(), "-c", a.file)
	check.Equal(t, "exit with another authority's", code, 1)
	wants(t, errs, "not signed by this authority")

	text, err := os.ReadFile(o.roster())
	check.NoError(t, err)
	copied := o.roster() + ".copy"
	check.NoError(t, os.WriteFile(copied, text, 0o644))
	o.sign(t, "roll", copied)
	o.sign(t, "roll", o.roster())
	out := does(t, "rollover", o.roster(), "-c", a.file, "--dry-run")
	wants(t, out, "roster 2 would take the place of 1; nothing is changed", "node2  is told now", "left behind for now: 0")
	check.Equal(t, "serial after a dry run", a.status(t).Roster.Serial, uint32(1))
	serial := uint32(1)
	for i, victim := range []int{0, 2, 1, 2, 1} { // 0: kill none
		if serial++; i > 0 {
			o.sign(t, "roll", o.roster())
		}
		wants(t, does(t, "rollover", o.roster(), "-c", a.file), fmt.Sprintf("roster %d is in force here, in the place of %d", serial, serial-1))
		if serial == 2 {
			code, _, errs = run(t, "keys", "rollover", copied, "-c", a.file)
			check.Equal(t, "exit with another of that serial", code, 1)
			wants(t, errs, "the gateway goes by another roster with that serial")
		}
		switch victim {
		case 1:
			a.stop(t, syscall.SIGKILL)
			a = sa.start(t)
		case 2:
			b.stop(t, syscall.SIGKILL)
			b = sb.start(t)
		}
		for _, r := range []*running{a, b} {
			r.until(t, fmt.Sprintf("it goes by roster %d", serial), func() bool { s := r.status(t).Roster; return s.Serial == serial })
		}
	}
	a.until(t, "it knows that its peer has it", func() bool { return a.peer(t).Roster == serial })
	a.until(t, "its peer is up", func() bool { return a.peer(t).Link == "up" })
	k := newTalk(t, a, b)
	if err := k.say("first"); err != nil {
		t.Fatal(err)
	}
	a.until(t, "the message is there", func() bool { return k.there.all() == "first" })

	_, three := o.member(t, 3)
	o.sign(t, "add", o.roster(), "--node", three)
	o.sign(t, "remove", o.roster(), "--id", "2")
	wants(t, does(t, "rollover", o.roster(), "-c", a.file, "--dry-run"), "is named no more")
	does(t, "rollover", o.roster(), "-c", a.file)
	if err := k.say("second"); err != nil {
		t.Fatal(err)
	}
	a.until(t, "what the one that is gone sends is refused", func() bool { return a.status(t).Dropped["gone"] > 0 })
	check.Equal(t, "messages", k.there.all(), "first")
	a.stop(t, syscall.SIGTERM)
	_, out, _ = run(t, "audit", "show", "-c", a.file)
	wants(t, out, fmt.Sprintf("serial %d of the network blue, 2 nodes", serial+2), "goes by roster", "gone ")
}
