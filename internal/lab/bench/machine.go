package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Machine is the machine of a run.
type Machine struct {
	Processor string  `json:"processor"`
	Cores     int     `json:"cores"`
	MemoryGB  float64 `json:"memory_gb"`
	Kernel    string  `json:"kernel"`
	Go        string  `json:"go"`
	Java      string  `json:"java,omitempty"`
	Gateway   string  `json:"gateway"` // its version
	Load      float64 `json:"load"`    // of other work: runnable tasks in the minute before the run
	// The priority of all processes of the run, and of their session if the kernel groups by sessions: it shows how much other work on
	// the machine disturbs the run.
	Nice      int `json:"nice,omitempty"`
	Autogroup int `json:"autogroup_nice,omitempty"`
}

// String is the machine in a line, with the gateway and the present load.
func (m Machine) String() string {
	return fmt.Sprintf("%s, gateway %s, load before the run: %.1f", m.name(), m.Gateway, m.Load)
}

// name is the part that does not change from run to run.
func (m Machine) name() string {
	s := fmt.Sprintf("%d cores of %s, Linux %s, %s", m.Cores, m.Processor, m.Kernel, m.Go)
	if _, version, ok := strings.Cut(m.Java, `"`); ok {
		version, _, _ = strings.Cut(version, `"`)
		s += ", Java " + version
	}
	return s
}

// dirty says why no page may be made from this machine's measurements; "": one may.
func (m Machine) dirty() string {
	switch {
	case !strings.Contains(m.Gateway, "commit "):
		return "the gateway does not say its commit (make build)"
	case strings.Contains(m.Gateway, "-dirty"):
		return "the gateway was built of a tree with changes that are not committed"
	}
	return ""
}

// load is how many tasks were runnable in the last minute; 0 if that cannot be read.
func load() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

// busyShare is the share of its cores from which on other programs make a machine busy.
const busyShare = 0.1

// work is the processor time since the start of the machine: of all programs, and of this one with the children that have ended.
type work struct {
	at       time.Time
	all, own time.Duration
}

// workNow is the processor time of now. The time of interrupts belongs to no program: on loopback the traffic of a run makes most of it.
func workNow() work {
	w := work{at: time.Now()}
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return w
	}
	line, _, _ := strings.Cut(string(b), "\n")
	for i, field := range strings.Fields(line) { // cpu, user, nice, system; in hundredths of a second
		if n, err := strconv.Atoi(field); err == nil && i <= 3 {
			w.all += time.Duration(n) * 10 * time.Millisecond
		}
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			w.own += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return w
}

// others is how many cores other programs used on average between two moments.
func others(from, to work) float64 {
	if to.at.Sub(from.at) <= 0 {
		return 0
	}
	return max(0, (to.all-from.all-(to.own-from.own)).Seconds()/to.at.Sub(from.at).Seconds())
}

// swappedPages is how many the machine has moved out of and into memory since it started.
func swappedPages() (n int) {
	for _, name := range []string{"pswpin ", "pswpout "} {
		n += wordValue("/proc/vmstat", name)
	}
	return n
}

// wordValue is the number after a name at the beginning of a line of a file; 0: there is none.
func wordValue(file, name string) int {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(text))
			return n
		}
	}
	return 0
}

func thisMachine(ctx context.Context, cfg Config) Machine {
	m := Machine{Processor: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	m.Load = load()
	if v, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil {
		m.Nice = 20 - v // the system call returns 20 minus nice
	}
	if b, err := os.ReadFile("/proc/self/autogroup"); err == nil { // this value counts between sessions if the kernel groups by them
		_, text, _ := strings.Cut(string(b), "nice ")
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
			m.Autogroup = n
		}
	}
	if v := infoValue("/proc/cpuinfo", "model name"); v != "" {
		m.Processor = v
	}
	if kb, err := strconv.ParseFloat(strings.TrimSuffix(infoValue("/proc/meminfo", "MemTotal"), " kB"), 64); err == nil {
		m.MemoryGB = kb * 1024 / 1e9
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	first := func(name string, args ...string) string {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		if err != nil {
			return ""
		}
		line, _, _ := strings.Cut(string(out), "\n")
		return strings.TrimSpace(line)
	}
	if cfg.Jars != "" {
		m.Java = first("java", "-version")
	}
	m.Gateway, _, _ = strings.Cut(strings.TrimPrefix(first(cfg.Gateway, "version"), "aldis gateway "), ", ") // without the platform
	return m
}

// infoValue is the value of the first line "name : value" of a file.
func infoValue(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if k, v, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func number(v float64) string {
	switch {
	case v >= 1000:
		s := strconv.FormatFloat(v, 'f', 0, 64)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case v >= 100 || v == float64(int(v)):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Dirty says why no page may be made from the gateway under test, when others could not build the same one; "": one may.
func Dirty(ctx context.Context, cfg Config) string { return thisMachine(ctx, cfg).dirty() }
