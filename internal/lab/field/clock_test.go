//go:build long

package field

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// A gateway's clock cannot be set apart from the machine's: namespaces shift only the clocks that cannot be set, and a Go program asks
// the kernel without the C library. So the gateway under test is the product compiled with a time.Now that adds the number of seconds in
// a file. Nothing else differs, neither the source of the product nor its timers.
const (
	clockEnv   = "ALDIS_LAB_CLOCK"
	clockAsked = `sec, nsec, mono := runtimeNow()`
	clockTold  = clockAsked + "\n\tsec += *labShift"
	clockFile  = `package time

import (
	"syscall"
	"unsafe"
)

// labShift is the number in the file that the environment names, mapped: Now may run where no call of the system can. The
// process that runs libnorm may not open it, and asks for no date.
var labShift = func() *int64 {
	name, ok := syscall.Getenv("` + clockEnv + `")
	if !ok {
		return new(int64)
	}
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return new(int64)
	}
	defer syscall.Close(fd)
	b, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*int64)(unsafe.Pointer(&b[0]))
}()
`
)

// shiftedGateway compiles the gateway with a clock that can be set.
func shiftedGateway(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	std := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), clockAsked); n != 1 {
		t.Fatalf("time.go of this Go asks the clock in %d places that the test knows, want 1", n)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": strings.Replace(string(source), clockAsked, clockTold, 1), "lab.go": clockFile} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(std, name)] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "gateway")
	// -trimpath: the build cache recognises the standard library, whatever its directory in this run.
	if out, err := exec.Command("go", "build", "-trimpath", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "aldis/cmd/gateway").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// clockSeeds are the seeds of TestClocks, clockSettings how many settings each has.
var clockSeeds = []uint64{1, 2, 3, 4, 5}

const clockSettings = 25

// wallClock is the clock of one gateway.
type wallClock struct {
	t    *testing.T
	file string
	log  string // of the gateway; "": it does not run yet
	sets int    // that the log must report
}

// set shifts the clock against that of the machine, and waits until the gateway has seen it.
func (c *wallClock) set(by time.Duration) {
	c.t.Helper()
	f, err := os.OpenFile(c.file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err == nil {
		_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by/time.Second)), 0)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		c.t.Fatal(err)
	}
	if c.log == "" {
		return
	}
	c.sets++
	check.Until(c.t, recovery, "the gateway sees that its clock was set", func() bool {
		b, err := os.ReadFile(c.log)
		return err == nil && strings.Count(string(b), "the wall clock was set") >= c.sets
	})
}

// TestClocks sets the clocks of both gateways while peers talk, by hours and by years, forth and back, and kills gateways whose clock is
// wrong by hours. No accepted message is lost, and no gateway takes libnorm for hung.
func TestClocks(t *testing.T) {
	binary := shiftedGateway(t)
	for _, seed := range clockSeeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			dir := t.TempDir()
			var clocks [2]*wallClock
			p := newVoyage(t, seed, func(g *game) {
				for i, s := range g.sites {
					clocks[i] = &wallClock{t: t, file: filepath.Join(dir, s.name+"-clock")}
					clocks[i].set(0)
					clocks[i].log = s.gateway.logFile
					own := filepath.Join(dir, s.name+"-gateway")
					script := fmt.Sprintf("#!/bin/sh\nexport %s=%s\nexec %s \"$@\"\n", clockEnv, clocks[i].file, binary)
					if err := os.WriteFile(own, []byte(script), 0o755); err != nil {
						t.Fatal(err)
					}
					s.gateway.binary = own
				}
			})
			p.setClocks(clocks, rand.New(rand.NewPCG(seed, 4)))
		})
	}
}

func (p *voyage) setClocks(clocks [2]*wallClock, rng *rand.Rand) {
	t := p.t
	p.meet()
	hush := p.talk(func(i int) *rand.Rand { return rand.New(rand.NewPCG(rng.Uint64(), uint64(30+i))) })
	hours := func(most int) time.Duration { return time.Duration(rng.IntN(2*most*3600)-most*3600) * time.Second }
	for range clockSettings {
		n := rng.IntN(2)
		c, clock := p.crews[n], clocks[n]
		p.progress(3 + rng.IntN(5))
		if rng.IntN(3) == 0 { // years, for a while: a start at such a time is refused by the peers
			years := time.Duration(1+rng.IntN(30)) * 365 * 24 * time.Hour
			if rng.IntN(4) == 0 {
				years = -years / 30
			}
			clock.set(years)
			p.progress(5)
			clock.set(0)
			continue
		}
		clock.set(hours(11)) // two gateways differ by less than a day
		p.progress(3 + rng.IntN(5))
		if rng.IntN(3) > 0 {
			p.restart(c)
			p.progress(5)
		}
	}
	hush()
	p.settle()
	t.Logf("%d settings; %s", clockSettings, p.summary())
	p.judge()
	for _, c := range p.crews {
		if b, err := os.ReadFile(c.site.gateway.logFile); err != nil || strings.Contains(string(b), "no heartbeat") {
			t.Errorf("%s: libnorm was taken for hung when the clock was set, %v", c.site.name, err)
		}
	}
}

// restart kills a gateway and starts it at another time than that of its death. If the clock is ahead of the end of its peers' leases,
// these have ended, and until they dial in the site has no listener, as docs/limits.md says.
func (p *voyage) restart(c *crew) {
	p.t.Helper()
	from := time.Now()
	c.site.gateway.kill()
	c.died()
	if err := c.site.gateway.start(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	p.progress(1)
	p.meet()
	for _, c := range p.crews {
		c.mu.Lock()
		c.deaf = append(c.deaf, interval{from, time.Now().Add(2 * time.Second)}) // until the news has crossed
		c.mu.Unlock()
	}
}
