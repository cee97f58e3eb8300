package gateway_test

// A script in testdata plays whole gateways in virtual time and has all that anybody could have seen. One seed gives one
// run, so that the output is the same on every machine. After a change that is meant to show, rewrite the outputs and
// read the difference:
//
//	go test ./internal/gateway -run TestScripts -update && git diff internal/gateway/testdata
//
// A script is blocks: command lines, a line of four dashes, the output of these commands up to an empty line. A line
// that begins with # is a comment. An argument is a word, key=word or key="some text". Node 1 is hq, the others are
// ship1, ship2 and so on.
//
//	rule at=hq type=other rate=6/min action=deny   a rule of the operator's; before world
//	world profile=hf-2400 nodes=2 seed=1 waiting=octets   begins; waiting bounds the octets that wait for a peer
//	air on | air off              whether datagrams are shown: IP octets, and the frames inside with those of their bodies
//	send from=hq to=ship1,ship2 text="..."   a message now; octets=300 fills it up with incompressible octets,
//	                              count=5 sends as many, numbered; topic, precedence, key (the newer one replaces the
//	                              older) and expires are what rules would give it
//	item at=hq name=x text="..." life=1h   a document of the site; without text it is withdrawn
//	run 30s                       lets time pass and shows what happens
//	cut ship1 60s                 the node is off the air
//	kill ship1 5s                 kill -9, and a new start after so long; "kill ship1 5s empty" loses the store too
//	silence ship1 on announce until=1h | silence ship1 off   the operator's order
//	status hq | ledger hq | rules hq   what the operator is told; zeros are left out

import (
	"bytes"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata")

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var now strings.Builder
			p := &player{t: t, far: map[uint16]map[uint16]map[string]site.Item{}, got: map[uint16]int{}}
			for _, block := range strings.Split(strings.TrimRight(string(text), "\n"), "\n\n") {
				commands, want, _ := strings.Cut(block+"\n", "----\n")
				p.out.Reset()
				for _, line := range strings.Split(strings.TrimSpace(commands), "\n") {
					if !strings.HasPrefix(line, "#") {
						p.do(line)
					}
				}
				if got := p.out.String(); got != want && !*update {
					t.Errorf("%s\ngives\n%swant\n%s", strings.TrimSpace(commands), got, want)
				}
				fmt.Fprintf(&now, "%s----\n%s\n", commands, p.out.String())
			}
			if *update {
				if err := os.WriteFile(file, []byte(strings.TrimRight(now.String(), "\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// player plays one script.
type player struct {
	t     *testing.T
	w     *sim.World
	out   bytes.Buffer
	rules map[string][]filter.Rule // by node
	air   bool

	ears  ears
	notes int                                        // shown so far
	got   map[uint16]int                             // the same, by node
	far   map[uint16]map[uint16]map[string]site.Item // the same, by node and site
}

// nameOf is the name that a world gives to a node.
func nameOf(id uint16) string {
	if id == 1 {
		return "hq"
	}
	return fmt.Sprintf("ship%d", id-1)
}

func (p *player) node(name string) *sim.Node {
	for _, n := range p.w.Nodes {
		if n.Name == name {
			return n
		}
	}
	p.t.Fatalf("no node %q", name)
	return nil
}

var argument = regexp.MustCompile(`(?:(\w+)=)?("[^"]*"|\S+)`)

// do carries out one command.
func (p *player) do(line string) {
	var words []string
	args := map[string]string{}
	for _, m := range argument.FindAllStringSubmatch(line, -1) {
		if m[1] == "" {
			words = append(words, m[2])
		} else {
			args[m[1]] = strings.Trim(m[2], `"`)
		}
	}
	word := func(i int) string {
		if i >= len(words) {
			p.t.Fatalf("%s: a word is missing", line)
		}
		return words[i]
	}
	switch words[0] {
	case "rule":
		p.rule(args)
	case "world":
		p.world(args)
	case "air":
		p.air = word(1) == "on"
	case "send":
		p.send(args)
	case "item":
		it := site.Item{Kind: site.Document, Scope: scope, Owner: args["at"], ID: args["name"], Sub: 2, Doc: []byte(args["text"])}
		if life := args["life"]; life != "" {
			it.Expires = p.w.Now.Add(p.duration(life))
		}
		if it.Gone = args["text"] == ""; it.Gone {
			it = it.Withdrawal()
		}
		p.node(args["at"]).Site.Put(p.w, it)
	case "run":
		p.w.Run(p.duration(word(1)))
	case "cut":
		p.w.Outage(p.node(word(1)), p.duration(word(2)))
	case "kill":
		if len(words) > 3 {
			p.w.LoseStore(p.node(word(1)))
		}
		p.w.Kill(p.node(word(1)), p.duration(word(2)))
	case "silence":
		s := api.Silence{On: word(2) == "on", Announce: slices.Contains(words, "announce")}
		if until := args["until"]; until != "" {
			s.Until = p.w.Now.Add(p.duration(until))
		}
		order(p.w, p.node(word(1)), s)
	case "status":
		p.status(p.node(word(1)))
	case "ledger":
		for _, row := range p.node(word(1)).GW.Status(p.w.Now).Ledger {
			if row.Octets > 0 {
				p.printf("%-8s %-6s %-13s %6d\n", row.Direction, row.Peer, row.Kind, row.Octets)
			}
		}
	case "rules":
		for _, f := range p.node(word(1)).GW.Status(p.w.Now).Filters {
			p.printf("%+v\n", f.Counts)
		}
	default:
		p.t.Fatalf("%s: not a command", line)
	}
}

func (p *player) printf(format string, args ...any) { fmt.Fprintf(&p.out, format, args...) }

func (p *player) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

func (p *player) number(text string, otherwise int) int {
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *player) rule(args map[string]string) {
	r := filter.Rule{Line: len(p.rules[args["at"]]) + 1, Type: args["type"], Name: args["name"], Pipe: args["topic"]}
	if rate := args["rate"]; rate != "" {
		var err error
		if r.Rate, err = filter.ParseRate(rate); err != nil {
			p.t.Fatal(err)
		}
	}
	for a := filter.Allow; a <= filter.Local; a++ {
		if a.String() == args["action"] {
			r.Action = a
		}
	}
	if p.rules == nil {
		p.rules = map[string][]filter.Rule{}
	}
	p.rules[args["at"]] = append(p.rules[args["at"]], r)
}

func (p *player) world(args map[string]string) {
	nodes := p.number(args["nodes"], 2)
	p.ears = newEars(nodes)
	p.w = world(p.t, nodes, args["profile"], uint64(p.number(args["seed"], 1)), func(c *sim.Config) {
		c.Group = c.Profile.Transport == profile.PMul
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			g.MaxWaiting = p.number(args["waiting"], 0)
			g.Filter = filter.New(p.rules[n.Name])
		}
		c.LAN = p.stepped
	})
}

func (p *player) send(args map[string]string) {
	from := p.node(args["from"])
	m := site.Message{Published: true, Scope: scope, Topic: "reports", From: "somebody at " + from.Name}
	if topic := args["topic"]; topic != "" {
		m.Topic = topic
	}
	if name := args["precedence"]; name != "" {
		m.Precedence, _ = site.ParsePrecedence(name)
	}
	if key := args["key"]; key != "" {
		h := fnv.New32a()
		h.Write([]byte(key))
		m.LastValue, m.Key = key, h.Sum32()&0xffffff|1
	}
	if expires := args["expires"]; expires != "" {
		m.Expires = p.w.Now.Add(p.duration(expires))
	}
	var to []uint16
	for _, name := range strings.Split(args["to"], ",") {
		to = append(to, p.node(name).ID)
	}
	count := p.number(args["count"], 1)
	for i := range count {
		data := []byte(args["text"])
		if count > 1 {
			data = fmt.Appendf(data, " %d", i+1)
		}
		if octets := p.number(args["octets"], 0); len(data) < octets {
			data = append(data, 0) // the part that is shown ends here
			for rng := rand.New(rand.NewPCG(uint64(i), 1)); len(data) < octets; {
				data = append(data, byte(rng.Uint32()))
			}
		}
		m.Parts = []site.Part{{Name: "text", Data: data}}
		from.Site.Send(p.w, m, to...)
	}
}
