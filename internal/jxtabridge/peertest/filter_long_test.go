//go:build long

package peertest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/field"
)

// Two real gateways with rules at one of them, and unmodified 2.7 peers: an advertisement that a rule keeps here is only found
// here, one that it denies is found nowhere; gateway adverts reports both.
func TestRulesWithRealPeers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "gateway")
	if out, err := exec.Command("go", "build", "-o", binary, "aldis/cmd/gateway").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command(binary, "keys", "new", "-o", filepath.Join(dir, "net.key")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	links := [2]string{check.FreeAddress(t, "udp"), check.FreeAddress(t, "udp")}
	c := newCable(t, links, 300*time.Millisecond)
	rules := "[[filter]]\nlabel = \"secrets\"\nname = \"secret*\"\naction = \"deny\"\n" +
		"[[filter]]\nlabel = \"home waters\"\nname = \"home*\"\naction = \"local\"\n"
	var gw [2]*process
	for i := range gw {
		gw[i] = &process{binary: binary, file: filepath.Join(dir, fmt.Sprintf("gw%d.toml", i)), lan: check.FreeAddress(t, "tcp")}
		text := fmt.Sprintf("[node]\nid = %d\nname = \"node%d\"\ndata_dir = %q\n[lan]\ntcp = %q\n[link]\nprofile = \"iridium-directip\"\nlisten = %q\nkey_file = \"net.key\"\n[http]\nlisten = %q\n[[link.peer]]\nid = %d\nname = \"node%d\"\naddress = %q\n",
			i+1, i+1, filepath.Join(dir, fmt.Sprint("data", i)), gw[i].lan, links[i], check.FreeAddress(t, "tcp"), 2-i, 2-i, c.ends[i].LocalAddr())
		if i == 0 {
			text += rules
		}
		if err := os.WriteFile(gw[i].file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		gw[i].start(t)
		t.Cleanup(func() {
			gw[i].kill()
			if t.Failed() {
				t.Logf("gateway %d:\n%s", i, gw[i].log.String())
			}
		})
	}
	w := newWorld(t, 4*time.Minute)
	start := func(name string, gateway, port int) *field.Peer {
		return w.start(&side{host: "127.0.0.1"}, field.PeerConfig{Kind: field.KindJXSE27, Name: name, Port: 21750 + port + 10*(os.Getpid()%500), Seed: "tcp://" + gw[gateway].lan})
	}
	a, near, far := start("A", 0, 0), start("near", 0, 1), start("far", 1, 2)
	names := []string{"open", "home-waters", "secret-plan"}
	for _, n := range names {
		w.tell(a, "publish "+n+" propagate")
		w.await(a, "pipe_ready", n)
	}
	for _, n := range names {
		w.tell(near, "find "+n+" 3")
		w.tell(far, "find "+n+" 3")
	}
	w.await(far, "discovered", "open")
	w.await(near, "discovered", "open")
	w.await(near, "discovered", "home-waters")
	// Six questions each: three times as long as an answer across the link takes.
	for _, x := range []struct {
		p    *field.Peer
		name string
	}{{far, "home-waters"}, {far, "secret-plan"}, {near, "secret-plan"}} {
		if _, err := x.p.Wait(w.ctx, func(e field.Event) bool { return e.Ev == "query" && e.Name == x.name && e.N >= 6 }); err != nil {
			t.Fatal(err)
		}
		for _, e := range x.p.Events() {
			if e.Ev == "discovered" && e.Name == x.name {
				t.Errorf("%s has discovered %s", x.p.Name(), x.name)
			}
		}
	}
	out, err := exec.Command(binary, "adverts", "-c", gw[0].file, "--type", "spec", "--json").Output()
	if err != nil {
		t.Fatalf("gateway adverts: %v: %s", err, out)
	}
	var rows []api.AdvertRow
	if err := json.Unmarshal(out, &rows); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := map[string]api.Travel{}
	for _, r := range rows {
		if len(r.Sites) == 1 {
			got[r.Name] = r.Sites[0]
		}
	}
	in := check.In(t, "gateway adverts:", string(out))
	check.Equal(in, "len(rows)", len(rows), 2)
	check.Equal(in, `got["open"].State`, got["open"].State, "held")
	check.Equal(in, `got["home-waters"].State`, got["home-waters"].State, "stays")
	check.Differ(in, `got["home-waters"].Why`, got["home-waters"].Why, "")
	t.Logf("%s", out)
}
