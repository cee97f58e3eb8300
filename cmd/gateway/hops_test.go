package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/operator/control"
)

// Two ships, each with satellite and HF, reach each other through their headquarters. Every report for operators shows the bearer and the
// hop: status, distance, messages, metrics, the page's view, bill and probe.
func TestOperatorsSeeBearersAndHops(t *testing.T) {
	t.Parallel()
	sites := [3]*testSite{newSite(t, 1, "")}
	sites[1], sites[2] = newSite(t, 2, sites[0].key()), newSite(t, 3, sites[0].key())
	at := map[string]string{}
	for _, link := range []string{"sat", "hf"} {
		for i := range sites {
			at[fmt.Sprint(link, i)] = check.FreeAddress(t, "udp")
		}
	}
	var gateways [3]*running
	for i, s := range sites {
		text := fmt.Sprintf("[node]\nid = %d\nname = \"node%d\"\ndata_dir = %q\nrelay = %v\n[lan]\ntcp = %q\n[http]\nlisten = %q\n", i+1, i+1, s.dir+"/data", i == 0, s.lan, s.http)
		for price, link := range []string{"sat", "hf"} {
			text += fmt.Sprintf("[[link]]\nname = %q\nprofile = \"iridium-certus-100\"\nprice = %d\nlisten = %q\n", link, price+1, at[fmt.Sprint(link, i)])
			if link == "sat" {
				text += "key_file = \"net.key\"\n"
			}
			for j := range sites {
				peer, direct := fmt.Sprintf("[[link.peer]]\nid = %d\n", j+1), i == 0 || j == 0
				switch {
				case j == i, !direct && link == "hf":
				case direct:
					text += peer + fmt.Sprintf("address = %q\n", at[fmt.Sprint(link, j)])
				default:
					text += peer + "via = \"1\"\n"
				}
			}
		}
		check.NoError(check.Fatal(t), os.WriteFile(s.file, []byte(text), 0o644))
		gateways[i] = s.start(t)
	}
	b, c := gateways[1], gateways[2]
	k := newTalk(t, b, c)
	c.until(t, "the listener is known through the relay", func() bool { return len(c.status(t).Peers) == 2 && c.status(t).Peers[1].FarItems > 0 })
	check.NoError(check.Fatal(t), k.say("text-0"))
	b.until(t, "the message arrives", func() bool { return k.there.all() == "text-0" })

	file := sites[2].file
	asks := func(args ...string) string {
		t.Helper()
		code, out, errs := run(t, append(args, "-c", file)...)
		check.Equal(t, strings.Join(args, " ")+": exit, and "+errs, code, 0)
		return out
	}
	matches := func(what, text, pattern string) {
		t.Helper()
		check.True(t, fmt.Sprintf("%s tells %s", what, pattern), regexp.MustCompile(pattern).MatchString(text), text)
	}
	status := asks("status")
	matches("status", status, `node-2 +relay \* +\S+ +via node-1`)
	matches("status's distances", status, `node-2 +relay +[0-9.]+ s +\d+ s +[0-9.]+ % +4 +2 node-1`)
	check.True(t, "nobody is reached over others who answers himself", !regexp.MustCompile(`node-1 +relay`).MatchString(status), status)
	_, text := c.get("/distance")
	var list []control.Distance
	check.NoError(check.Fatal(t), json.Unmarshal([]byte(text), &list))
	check.True(t, "/distance names the hop", len(list) == 2 && list[1].Hops == 2 && list[1].NextHop == "node-1" && list[0].Hops == 1 && len(list[0].Ways) == 2 && list[1].ShortS > list[0].ShortS, text)
	id := strings.Fields(asks("messages", "--ids"))[0]
	matches("message ID", asks("message", id), `relay: the only one`)
	_, metrics := c.get("/metrics")
	for _, line := range []string{`aldis_bearer_hops{bearer="relay",peer="node-2"} 2`, `aldis_bearer_hops{bearer="sat",peer="node-1"} 1`, `aldis_bearer_bytes_total{bearer="sat"`, `aldis_month_bearer_bytes{bearer="sat",direction="sent"}`} {
		check.True(t, "metrics have "+line, strings.Contains(metrics, line), len(metrics))
	}
	bill := asks("bill")
	matches("bill", bill, `link sat: `)
	check.True(t, "an idle bearer has no bill", !strings.Contains(bill, "link hf: "), bill)
	c.until(t, "a bearer that was never used is asked before it is measured", func() bool {
		code, out, _ := run(t, "probe", "1", "--link", "hf", "--yes", "--budget", "2500", "-c", file)
		return code == 0 && strings.Contains(out, "node-1 on hf: ")
	})
	matches("bill after that", asks("bill", "--link", "hf"), `link hf: `)
}
