// Command pmul measures plain P_Mul (gateway pmul) next to UFTP, NORM and TCP: one file from one node to four over the same emulated
// links, with real processes in network namespaces. It writes docs/transports.md. It needs root, the built gateway (make build) and the
// Debian package uftp, and about half an hour:
//
//	go run ./field-tests/pmul
//
// The JSON of every run is kept under -results; a run whose JSON is there already is not played again.
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
	"strings"
	"sync"
	"syscall"
	"time"

	"aldis/internal/edge/norm"
)

// run is one transfer.
type run struct {
	Link      string `json:"link"`
	Transport string `json:"transport"`
	Octets    int    `json:"octets"`
	Seed      uint64 `json:"seed"`
}

func (r run) name() string { return fmt.Sprintf("%s-%d-%s-%d", r.Link, r.Octets, r.Transport, r.Seed) }

// result is the figures of a run from the emulator and the receivers.
type result struct {
	run
	Complete int     `json:"complete"` // receivers that have the file, unchanged
	Seconds  float64 `json:"seconds"`  // from the hand-over to the last receiver; 0: not all have it
	Limit    float64 `json:"limit_s"`  // octets x 8 / rate + mean delay
	Data     int64   `json:"data_octets"`
	Return   int64   `json:"return_octets"`
	Known    float64 `json:"known_s,omitempty"` // when the sender knew, if it reports that
	Lost     int64   `json:"frames_lost"`
	LateMS   float64 `json:"emulator_late_ms"`
	Version  string  `json:"version,omitempty"` // of the gateway
	err      error
}

const receivers = 4

var (
	links      = []string{"hf-2400", "iridium-directip"}
	sizes      = []int{200, 20000} // on the page; 2,000 octets lie between these
	transports = []string{"p_mul", "norm", "uftp", "tcp"}
)

func matrix() (runs []run) {
	for _, octets := range []int{20000, 2000, 200} { // the longest first
		for _, link := range links {
			for _, transport := range transports {
				seeds := uint64(3)
				if transport == "p_mul" && octets == 20000 {
					seeds = 5
				}
				for seed := uint64(1); seed <= seeds; seed++ {
					runs = append(runs, run{link, transport, octets, seed})
				}
			}
		}
	}
	return runs
}

// giveUp is how long a run may take: the baseline's values (transport 1), and for TCP, which never finishes, a little less.
func giveUp(octets int) time.Duration {
	switch {
	case octets <= 200:
		return 150 * time.Second
	case octets <= 2000:
		return 180 * time.Second
	}
	return 500 * time.Second
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "norm-child":
			os.Exit(norm.ChildMain(os.Args[2:]))
		case "role":
			if err := role(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	binary := flag.String("gateway", "bin/gateway", "the gateway under test")
	parallel := flag.Int("parallel", 12, "runs at a time; each waits nearly all of its time")
	results := flag.String("results", "field-tests/pmul/results", "directory of the runs' JSON")
	out := flag.String("out", "docs/transports.md", "file to write")
	only := flag.String("only", "", "play only runs whose name has one of these, separated by commas, in it")
	flag.Parse()
	if err := measure(*binary, *results, *out, *only, *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "pmul:", err)
		os.Exit(1)
	}
}

// ready lists everything that is missing at once, with the remedy.
func ready(binary string) error {
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("network namespaces need root: sudo"))
	}
	if _, err := os.Stat(binary); err != nil {
		errs = append(errs, fmt.Errorf("%w: make build", err))
	}
	for program, pkg := range map[string]string{"ip": "iproute2", "uftp": "uftp", "uftpd": "uftp"} {
		if _, err := exec.LookPath(program); err != nil {
			errs = append(errs, fmt.Errorf("%s is not installed: apt-get install %s", program, pkg))
		}
	}
	return errors.Join(errs...)
}

func measure(binary, dir, out, only string, parallel int) error {
	if err := ready(binary); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { <-signals; close(stop) }()
	version, err := exec.Command(binary, "version").Output()
	if err != nil {
		return err
	}
	all := play(binary, strings.TrimSpace(string(version)), dir, only, parallel, stop)
	if err := os.WriteFile(out, []byte(tables(all)), 0o644); err != nil {
		return err
	}
	fmt.Println("wrote", out)
	return nil
}

func wanted(name, only string) bool {
	for _, part := range strings.Split(only, ",") {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// play plays the missing runs, so many at a time. Closing stop ends the runs under way and cleans up after them.
func play(binary, version, dir, only string, parallel int, stop <-chan struct{}) []result {
	runs := matrix()
	all := make([]result, len(runs))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, r := range runs {
		file := filepath.Join(dir, r.name()+".json")
		all[i] = read(r, file)
		if all[i].err == nil || !wanted(r.name(), only) {
			continue
		}
		slots <- struct{}{}
		select {
		case <-stop:
			<-slots
			continue
		default:
		}
		wg.Add(1)
		go func() {
			defer func() { <-slots; wg.Done() }()
			fmt.Println("begins:", r.name())
			res, err := transfer(r, i, binary, stop)
			if err != nil {
				all[i].err = err
				fmt.Println(r.name(), "failed:", err)
				return
			}
			res.Version = version
			b, err := json.MarshalIndent(res, "", "  ")
			if err == nil {
				err = os.WriteFile(file, append(b, '\n'), 0o644)
			}
			res.err = err
			all[i] = res
			fmt.Printf("%s: %d of %d, %.1f s, %d and %d octets\n", r.name(), res.Complete, receivers, res.Seconds, res.Data, res.Return)
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
	res := result{}
	if err := json.Unmarshal(b, &res); err != nil {
		return result{run: r, err: err}
	}
	return res
}
