// Command road plays the runs behind docs/measured.md and writes its tables. It needs root, the built gateway and the
// built peers (make build peers), and about an hour:
//
//	go run ./field-tests/road -parallel 5
//
// Every run is one `gateway lab blue-game` in namespaces of its own; its JSON is kept under -results, and a run whose
// JSON is there already is not played again.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// run is one game. Group names the table that it belongs to.
type run struct {
	group, profile, peers string
	seed                  int
	args                  []string
}

func (r run) name() string {
	return fmt.Sprintf("%s-%s-%s-%d", r.group, r.profile, r.peers, r.seed)
}

func (r run) command(binary, file string) []string {
	lab := "blue-game"
	if r.group == "hf-net" {
		lab = r.group
	}
	args := []string{binary, "lab", lab, "--profile", r.profile, "--peers", r.peers, "--seed", fmt.Sprint(r.seed)}
	return append(append(args, r.args...), "--json", file)
}

func matrix() (runs []run) {
	links := []string{"iridium-directip", "iridium-dialup"}
	kinds := []string{"jxse27", "jxse27-unsigned", "jxta22"}
	for _, l := range links {
		for seed := 1; seed <= 3; seed++ {
			for _, k := range kinds {
				runs = append(runs, run{"road", l, k, seed, []string{"--duration", "5m"}})
			}
			runs = append(runs,
				run{"bulk", l, "jxse27", seed, []string{"--duration", "4m", "--bulk", "20000@60s"}},
				run{"outage", l, "jxse27", seed, []string{"--duration", "4m", "--outage", "60s@60s", "--asker"}})
		}
		runs = append(runs,
			run{"idle", l, "jxse27", 1, []string{"--duration", "40s", "--idle", "10m"}},
			run{"kill-ship", l, "jxse27", 1, []string{"--duration", "4m", "--kill", "ship@60s"}},
			run{"kill-hq", l, "jxse27", 1, []string{"--duration", "4m", "--kill", "hq@60s"}},
			run{"ships", l, "jxse27", 1, []string{"--duration", "4m", "--ships", "3"}},
			run{"mixed", l, "jxta22", 1, []string{"--duration", "4m", "--ship-peers", "jxse27"}},
			run{"unaided", l, "jxse27", 1, []string{"--duration", "5m", "--unaided", "--only", "unaided"}})
	}
	for _, k := range []string{"jxta22", "jxse27"} {
		runs = append(runs, run{"http", "iridium-directip", k, 1, []string{"--duration", "4m", "--http"}})
	}
	for seed := 1; seed <= 3; seed++ {
		runs = append(runs, run{"hf-net", "hf-2400", "jxse27", seed, []string{"--duration", "8m"}})
	}
	return runs
}

// figures are the members of the lab's JSON that the tables show.
type figures struct {
	Rendezvous *float64 `json:"rendezvous_s"`
	Discovery  *float64 `json:"discovery_s"`
	FirstData  *float64 `json:"first_data_s"`
	Sent       int      `json:"messages_sent"`
	Delivered  int      `json:"messages_delivered"`
	Duplicates int      `json:"duplicates"`
	Corrupted  int      `json:"corrupted"`
	OutOfOrder int      `json:"out_of_order"`
	Latency    struct {
		Median *float64 `json:"median"`
		P95    *float64 `json:"p95"`
		Max    *float64 `json:"max"`
	} `json:"latency_s"`
	Link struct {
		Up   int `json:"up"`
		Down int `json:"down"`
	} `json:"link_bytes"`
	TCP         int      `json:"tcp_connections_on_link"`
	Ratio       *float64 `json:"payload_ratio_percent"`
	Disconnects int      `json:"local_disconnects"`
	Idle        *struct {
		Seconds float64 `json:"seconds"`
		Link    struct {
			Up   int `json:"up"`
			Down int `json:"down"`
		} `json:"link_bytes"`
		Percent float64 `json:"percent_of_slower_rate"`
	} `json:"idle"`
	Bulk []struct {
		From   string  `json:"from"`
		To     string  `json:"to"`
		S      float64 `json:"seconds"`
		Limit  float64 `json:"limit_s"`
		Over   float64 `json:"over_limit"`
		Short  float64 `json:"short_median"`
		Others float64 `json:"other_median"`
	} `json:"bulk"`
	Silence *struct {
		Ships   []string `json:"ships"`
		Seconds float64  `json:"seconds"`
		Packets int      `json:"packets"`
		Live    int      `json:"live"`
		Sent    int      `json:"sent"`
	} `json:"silence"`
	Outage *struct {
		Sent        int     `json:"sent"`
		Delivered   int     `json:"delivered"`
		Worst       float64 `json:"worst_latency_s"`
		After       float64 `json:"last_arrived_after_end_s"`
		Disconnects int     `json:"local_disconnects"`
		AnswerMS    float64 `json:"answer_ms"`
	} `json:"outage"`
}

type result struct {
	run
	figures
	gateway string // the gateway under test
	err     error
}

func main() {
	binary := flag.String("gateway", "bin/gateway", "the gateway under test")
	parallel := flag.Int("parallel", 5, "runs at a time")
	results := flag.String("results", "field-tests/road/results", "directory of the runs' JSON")
	out := flag.String("out", "docs/measured.md", "file to write")
	only := flag.String("only", "", "play only runs whose name has this in it; others are read if they are there")
	flag.Parse()
	if err := os.MkdirAll(*results, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	all := play(*binary, *results, *only, *parallel)
	if err := os.WriteFile(*out, []byte(tables(all)), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("wrote", *out)
}

// play plays the missing runs, so many at a time, a few seconds apart: starting Java peers is the only heavy part.
func play(binary, dir, only string, parallel int) []result {
	runs := matrix()
	all := make([]result, len(runs))
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	stopped := make(chan struct{})
	go func() { <-stop; close(stopped) }()
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	start := time.NewTicker(8 * time.Second)
	defer start.Stop()
	for i, r := range runs {
		file := filepath.Join(dir, r.name()+".json")
		all[i] = read(r, file)
		if all[i].err == nil || !strings.Contains(r.name(), only) {
			continue
		}
		slots <- struct{}{}
		select {
		case <-stopped:
			all[i].err = errors.New("not played")
			<-slots
			continue
		case <-start.C:
		}
		wg.Add(1)
		go func() {
			defer func() { <-slots; wg.Done() }()
			args := r.command(binary, file)
			fmt.Println(strings.Join(args, " "))
			cmd := exec.Command(args[0], args[1:]...)
			if log, err := os.Create(filepath.Join(dir, r.name()+".log")); err == nil {
				cmd.Stdout, cmd.Stderr = log, log
				defer log.Close()
			}
			err := cmd.Run()
			all[i] = read(r, file)
			if all[i].err == nil && err != nil {
				fmt.Println(r.name(), "ended with", err)
			}
		}()
	}
	wg.Wait()
	return all
}

func read(r run, file string) result {
	b, err := os.ReadFile(file)
	if err != nil {
		return result{run: r, err: err}
	}
	var doc struct {
		Gateway string             `json:"gateway"`
		Runs    map[string]figures `json:"runs"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return result{run: r, err: err}
	}
	which := "gateway"
	if r.group == "unaided" {
		which = "unaided"
	}
	f, ok := doc.Runs[which]
	if !ok {
		return result{run: r, err: errors.New("no run " + which)}
	}
	return result{run: r, figures: f, gateway: doc.Gateway}
}

func num(p *float64, format string) string {
	if p == nil {
		return "never"
	}
	return fmt.Sprintf(format, *p)
}

// other describes the unusual parts of the games of a group.
var other = map[string]string{"mixed": " at HQ, jxse27 aboard", "http": " over HTTP", "ships": ", three ships", "kill-ship": ", ship killed", "kill-hq": ", HQ killed"}

// about is the head of the page.
const about = `# Measured

Written by ` + "`go run ./field-tests/road`" + ` (after ` + "`make build peers`" + `, as root, about an hour). Each seed is one
` + "`gateway lab blue-game`" + ` with unmodified JXTA peers over the emulated link, measured at the emulator and in the peers. Its JSON is in
field-tests/road/results/.

- A cell has one figure for each seed (or link) in order, or a single figure if all agree.
- Seconds count from the start of the ship's peer process.
- Link octets are IP octets, up/down. Messages are readable text of 200 octets, of which only the new part crosses. So application octets
  exceed link octets.
- *Out of order* counts messages that arrive more than half a second after a later one. JXSE 2.7 gives messages that arrive together to
  several threads.
- No TCP connection crosses the link unless a row says so.
- The machine has two cores and plays eight runs at a time. The line under a table names the gateway's version.

`

func tables(all []result) string {
	var b strings.Builder
	b.WriteString(about)
	group := func(title, head string, names []string, row func(result) string) {
		fmt.Fprintf(&b, "## %s\n\n%s\n%s\n", title, head, rule(head))
		var of []string
		missing := 0
		var rows []*runsOf
		for _, r := range all {
			if !slices.Contains(names, r.group) {
				continue
			}
			if r.gateway != "" && !slices.Contains(of, r.gateway) {
				of = append(of, r.gateway)
			}
			if r.err != nil {
				missing++
				continue
			}
			name := r.peers + other[r.group]
			if r.TCP > 0 {
				name += fmt.Sprintf(", %d TCP connections on the link", r.TCP)
			}
			key := name
			if other[r.group] == "" {
				key += r.profile // the other games have one row for both links
			}
			rows = add(rows, key, fmt.Sprintf("%s | %s | %d | %s", r.profile, name, r.seed, row(r)))
		}
		for _, s := range rows {
			fmt.Fprintf(&b, "| %s |\n", s)
		}
		if missing > 0 {
			fmt.Fprintf(&b, "\nNot played: %d runs.\n", missing)
		}
		if len(of) > 0 {
			fmt.Fprintf(&b, "\n%s\n", strings.Join(of, ", "))
		}
		fmt.Fprintln(&b)
	}
	road := func(r result) string {
		return fmt.Sprintf("%s | %s | %s | %d/%d | %d/%d/%d | %s/%s/%s | %d/%d | %s", num(r.Rendezvous, "%.1f"),
			num(r.Discovery, "%.1f"), num(r.FirstData, "%.1f"), r.Delivered, r.Sent, r.Duplicates, r.Corrupted, r.OutOfOrder,
			num(r.Latency.Median, "%.1f"), num(r.Latency.P95, "%.1f"), num(r.Latency.Max, "%.1f"), r.Link.Up, r.Link.Down, num(r.Ratio, "%.0f%%"))
	}
	head := "| link | peers | seed | rendezvous s | discovered s | first data s | delivered | twice/changed/out of order | latency median/p95/worst s | link octets | application/link |"
	group("200 octets each way every 5 s for 5 minutes", head, []string{"road"}, road)
	group("The same peers without gateways", head, []string{"unaided"}, road)
	group("Other games of four minutes, a message every 5 s: mixed, HTTP, three ships, a gateway killed with SIGKILL at 60 s", head, []string{"mixed", "http", "ships", "kill-ship", "kill-hq"}, road)
	group("20,000 octets each way beside the short messages",
		"| link | peers | seed | hq to ship s | times the limit | ship to hq s | times the limit | median latency of short messages meanwhile/otherwise, down s | up s |",
		[]string{"bulk"}, func(r result) string {
			if len(r.Bulk) != 2 {
				return "incomplete"
			}
			d, u := r.Bulk[0], r.Bulk[1]
			return fmt.Sprintf("%.1f | %.2f | %.1f | %.2f | %.1f/%.1f | %.1f/%.1f", d.S, d.Over, u.S, u.Over, d.Short, d.Others, u.Short, u.Others)
		})
	group("The link is down for 60 s",
		"| link | peers | seed | arrived, of messages sent meanwhile | twice/changed/out of order | worst latency s | last arrival, s after the outage | LAN connections lost | ms to answer a second local peer's question |",
		[]string{"outage"}, func(r result) string {
			if r.Outage == nil {
				return "incomplete"
			}
			o := r.Outage
			return fmt.Sprintf("%d/%d | %d/%d/%d | %.1f | %.1f | %d | %.1f", o.Delivered, o.Sent, r.Duplicates, r.Corrupted, r.OutOfOrder,
				o.Worst, o.After, o.Disconnects, o.AnswerMS)
		})
	group("One HF channel: HQ and three ships, a message every 20 s, one ship silent for half of the time from the first minute on",
		head+" packets of the silent ship, in seconds of silence | HQ's messages that its peers saw at once |", []string{"hf-net"}, func(r result) string {
			if r.Silence == nil {
				return road(r) + " | incomplete"
			}
			return fmt.Sprintf("%s | %d in %.0f | %d/%d", road(r), r.Silence.Packets, r.Silence.Seconds, r.Silence.Live, r.Silence.Sent)
		})
	group("No messages for ten minutes", "| link | peers | seed | seconds | octets | share of the slower rate |",
		[]string{"idle"}, func(r result) string {
			if r.Idle == nil {
				return "incomplete"
			}
			return fmt.Sprintf("%.0f | %d/%d | %.3f%%", r.Idle.Seconds, r.Idle.Link.Up, r.Idle.Link.Down, r.Idle.Percent)
		})
	return b.String()
}

// runsOf is a row: the cells of several runs.
type runsOf struct {
	key  string
	runs [][]string
}

// add puts a run into the row of its key.
func add(rows []*runsOf, key, cells string) []*runsOf {
	at := slices.IndexFunc(rows, func(s *runsOf) bool { return s.key == key })
	if at < 0 {
		at, rows = len(rows), append(rows, &runsOf{key: key})
	}
	rows[at].runs = append(rows[at].runs, strings.Split(cells, " | "))
	return rows
}

// String is each column's figures in turn, or one where they agree.
func (s *runsOf) String() string {
	cells := make([]string, len(s.runs[0]))
	for i := range cells {
		var column []string
		for _, run := range s.runs {
			if i < len(run) { // an incomplete run has fewer
				column = append(column, run[i])
			}
		}
		if same := slices.Compact(slices.Clone(column)); len(same) == 1 {
			column = same
		}
		cells[i] = strings.Join(column, "; ")
	}
	return strings.Join(cells, " | ")
}

func rule(head string) string {
	return "|" + strings.Repeat("---|", strings.Count(head, "|")-1)
}
