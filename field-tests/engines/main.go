// Command engines measures replicated engines on three members over loopback, for docs/decisions/three-at-a-site.md: messages of 200
// octets a second with a sync on each write, their latency, and how many acknowledged messages are lost when members lose their power.
//
//	sudo go run . [-engines raft,hashicorp,etcd,jetstream,jetstream-default] [-for 5s]
//
// It needs root for the disks that forget unsynced data.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"aldis/internal/lab/baddisk"
)

// members is the number of members.
const members = 3

// octets of a message.
const octets = 200

// engine is three members in this process.
type engine interface {
	// put returns when a majority has acknowledged a message.
	put(message []byte) error
	// count is how many messages the members agree on.
	count() (int, error)
}

// engines start the members of which in dirs; fresh: for the first time.
var engines = map[string]func(dirs []string, which []int, fresh bool) (engine, error){}

func main() {
	list := flag.String("engines", "raft,hashicorp,etcd,jetstream,jetstream-default", "what is measured")
	span := flag.Duration("for", 5*time.Second, "how long each load lasts")
	child := flag.String("child", "", "of its own use: load, write or count")
	dirs := flag.String("dirs", "", "of its own use")
	which := flag.String("which", "0,1,2", "of its own use")
	fresh := flag.Bool("fresh", true, "of its own use")
	flag.Parse()
	var err error
	if *child != "" {
		err = inside(*child, *list, strings.Split(*dirs, ","), *which, *fresh, *span)
	} else {
		for _, name := range strings.Split(*list, ",") {
			if engines[name] != nil {
				err = measure(name, *span)
			}
			if err != nil {
				fmt.Println(name, err)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// measure is the load, then the two losses of power.
func measure(name string, span time.Duration) error {
	top, err := os.MkdirTemp("", "engines-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(top)
	dir := func(name string) string {
		at := filepath.Join(top, name)
		_ = os.MkdirAll(at, 0o700)
		return at
	}
	out, err := self(name, "load", []string{dir("l0"), dir("l1"), dir("l2")}, "0,1,2", true, span, 0)
	if err != nil {
		return err
	}
	fmt.Print(out)
	for _, one := range []bool{false, true} {
		if err := power(name, dir, one); err != nil {
			fmt.Printf("%s: loss of power: %v\n", name, err)
		}
	}
	return nil
}

// power has members lose their power while a member is away: both that acknowledged, or one of them, which is also cut off from the other.
func power(name string, dir func(string) string, one bool) error {
	at := dir(fmt.Sprintf("disk-%v", one))
	d, err := baddisk.New(dir(fmt.Sprintf("fuse-%v", one)))
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Mount(at); err != nil {
		return err
	}
	forgets := func(m int) string { at := filepath.Join(at, strconv.Itoa(m)); _ = os.MkdirAll(at, 0o700); return at }
	dirs := []string{forgets(0), forgets(1), dir(fmt.Sprintf("third-%v", one))}
	if one {
		dirs[1] = dir("second")
	}
	if _, err := self(name, "settle", dirs, "0,1,2", true, 0, 0); err != nil {
		return err
	}
	out, err := self(name, "write", dirs, "0,1", false, time.Minute, 4*time.Second) // the third is cut off
	acked := strings.Count(out, "acked")
	if acked == 0 {
		return fmt.Errorf("nothing was acknowledged: %v: %s", err, out)
	}
	if err := d.LosePower(); err != nil {
		return err
	}
	back, what := "0,1,2", "both members that acknowledged lose their power"
	if one {
		back, what = "0,2", "one loses its power, and is cut off from the other"
	}
	out, err = self(name, "count", dirs, back, false, time.Minute, 90*time.Second)
	fmt.Printf("%s: %s: acknowledged %d; then %s %v\n", name, what, acked, strings.TrimSpace(out), err)
	return nil
}

// self runs this program for one engine; kill ends it without warning that long after it began to write.
func self(name, child string, dirs []string, which string, fresh bool, span, kill time.Duration) (string, error) {
	c := exec.Command(os.Args[0], "-engines", name, "-child", child, "-dirs", strings.Join(dirs, ","), "-which", which, fmt.Sprintf("-fresh=%v", fresh), "-for", span.String())
	c.Stderr = os.Stderr
	if os.Getenv("QUIET") != "" {
		c.Stderr = nil
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := c.Start(); err != nil {
		return "", err
	}
	var text strings.Builder
	var once sync.Once
	limit := time.AfterFunc(2*time.Minute, func() { c.Process.Kill() })
	defer limit.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if child == "write" {
			once.Do(func() { time.AfterFunc(kill, func() { c.Process.Kill() }) })
		}
	}
	return text.String(), c.Wait()
}

// inside is the work of the child.
func inside(what, name string, dirs []string, which string, fresh bool, span time.Duration) error {
	var list []int
	for _, s := range strings.Split(which, ",") {
		n, _ := strconv.Atoi(s)
		list = append(list, n)
	}
	e, err := engines[name](dirs, list, fresh)
	if err != nil {
		return err
	}
	message := make([]byte, octets)
	for end := time.Now().Add(80 * time.Second); ; time.Sleep(50 * time.Millisecond) { // until a member leads
		if what == "count" {
			if n, err := e.count(); err == nil {
				fmt.Println("there are", n)
				return nil
			}
		} else if err = e.put(message); err == nil {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("nobody leads: %w", err)
		}
	}
	switch what {
	case "write":
		fmt.Println("acked") // the first
		for {
			if err := e.put(message); err == nil {
				fmt.Println("acked")
			}
		}
	case "load":
		for _, writers := range []int{1, 64, 256} {
			load(name, e, writers, span)
		}
	}
	return nil
}

func load(name string, e engine, writers int, span time.Duration) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	var failed atomic.Int64
	end := time.Now().Add(span)
	for range writers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			var own []time.Duration
			for message := make([]byte, octets); time.Now().Before(end); {
				began := time.Now()
				if e.put(message) != nil {
					failed.Add(1)
					continue
				}
				own = append(own, time.Since(began))
			}
			mu.Lock()
			all = append(all, own...)
			mu.Unlock()
		}()
	}
	wait.Wait()
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	fmt.Printf("%s: %d writers: %.0f messages a second, median %v, 99 of 100 within %v, %d failed\n", name, writers, float64(len(all))/span.Seconds(),
		all[len(all)/2].Round(10*time.Microsecond), all[len(all)*99/100].Round(10*time.Microsecond), failed.Load())
}
