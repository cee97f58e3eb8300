package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Machine is where a run took place.
type Machine struct {
	Processor string  `json:"processor"`
	Cores     int     `json:"cores"`
	MemoryGB  float64 `json:"memory_gb"`
	Kernel    string  `json:"kernel"`
	Go        string  `json:"go"`
	Java      string  `json:"java,omitempty"`
	Gateway   string  `json:"gateway"` // its version
	Load      float64 `json:"load"`    // of other work: runnable tasks in the minute before the run
	// Of all processes of the run, and of their session where the kernel groups by sessions: how much other work on the
	// machine disturbs it.
	Nice      int `json:"nice,omitempty"`
	Autogroup int `json:"autogroup_nice,omitempty"`
}

// String is the machine in a line.
func (m Machine) String() string {
	s := fmt.Sprintf("%d cores of %s, Linux %s, %s", m.Cores, m.Processor, m.Kernel, m.Go)
	if _, version, ok := strings.Cut(m.Java, `"`); ok {
		version, _, _ = strings.Cut(version, `"`)
		s += ", Java " + version
	}
	return s + fmt.Sprintf(", gateway %s, load before the run: %.1f", m.Gateway, m.Load)
}

func thisMachine(ctx context.Context, cfg Config) Machine {
	m := Machine{Processor: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(b), " ")
		m.Load, _ = strconv.ParseFloat(first, 64) // 0 where it cannot be read
	}
	if v, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil {
		m.Nice = 20 - v // as the system call returns it
	}
	if b, err := os.ReadFile("/proc/self/autogroup"); err == nil { // what counts between sessions where the kernel groups by them
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

func (f *Figure) cell() string {
	if f == nil {
		return "-"
	}
	s := number(f.Value)
	if f.Lost > 0 {
		s += fmt.Sprintf(" (%d lost)", f.Lost)
	}
	if f.ByPeers > 0 {
		s += fmt.Sprintf(" (%d lost by the peers)", f.ByPeers)
	}
	return s
}

func (r Row) goals() string {
	if r.Must == 0 {
		return ""
	}
	return fmt.Sprintf("%s; %s", number(r.Must), number(r.Aim))
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s\n%s, took %s\n", r.Machine, r.Began.Format(time.DateOnly), r.Took.Round(time.Second))
	bench := ""
	for _, row := range r.Rows {
		if row.Bench != bench {
			bench = row.Bench
			fmt.Fprintf(b, "\n%-62s %7s %24s %24s %15s %s\n", bench, "unit", "JXSE 2.7", "gateway", "must; aim", "published")
		}
		fmt.Fprintf(b, "  %-60s %7s %24s %24s %15s %s\n", row.What, row.Unit, row.Direct.cell(), row.Gateway.cell(),
			row.goals(), row.Published)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Page answers the page docs/bench.md with this report's figures in place of older ones of the same benchmarks; what was
// not measured now stays as it is in old, which may be empty.
func (r *Report) Page(old string) string {
	sections := map[string]string{}
	for _, s := range strings.Split(old, sectionMark)[1:] {
		name, _, _ := strings.Cut(s, "\n")
		sections[name] = sectionMark + strings.TrimRight(s, "\n") + "\n"
	}
	names, about := Names()
	b := &strings.Builder{}
	b.WriteString(preface)
	for i, name := range names {
		if s := r.section(name, about[i]); s != "" {
			sections[name] = s
		}
		if s := sections[name]; s != "" {
			b.WriteString("\n" + s)
		}
	}
	return b.String()
}

// command makes such a report again.
func (r *Report) command() string {
	s := "gateway bench"
	if r.Machine.Nice != 0 {
		s = fmt.Sprintf("nice -n %d %s", r.Machine.Nice, s)
	}
	if len(r.Only) > 0 {
		s += " --only " + strings.Join(r.Only, ",")
	}
	if r.Quick {
		s += " --quick"
	}
	if r.Machine.Autogroup != 0 {
		s = fmt.Sprintf("setsid -w sh -c 'echo %d >/proc/self/autogroup; %s'", r.Machine.Autogroup, s)
	}
	return s
}

const sectionMark = "## "

// section is the part of the page about one benchmark, "" if it was not run.
func (r *Report) section(name, about string) string {
	b := &strings.Builder{}
	for _, row := range r.Rows {
		if row.Bench != name {
			continue
		}
		if b.Len() == 0 {
			fmt.Fprintf(b, "%s%s\n\n%s. `%s`, %s: %s.\n\n", sectionMark, name, strings.ToUpper(about[:1])+about[1:], r.command(),
				r.Began.Format("2 January 2006"), r.Machine)
			b.WriteString("| | JXSE 2.7 | gateway | published |\n|---|---|---|---|\n")
		}
		cell := func(f *Figure) string {
			s := f.cell()
			if f != nil && f.Note != "" {
				s += "<br>" + f.Note
			}
			return s
		}
		what := row.What
		if row.Unit != "" {
			what += ", " + row.Unit
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", what, cell(row.Direct), cell(row.Gateway), row.Published)
	}
	return b.String()
}

const preface = `# Bench

Made by ` + "`gateway bench --write docs/bench.md`" + `, one benchmark at a time. Each section has its command, its machine, and the load (number of runnable tasks).

The JXSE 2.7 rendezvous and relay and the gateway get the same traffic in the same run, one after the other, each in a fresh process on
loopback. In *ops* (each figure is the mean of up to 40 operations) and *pipe* the traffic comes from unmodified signing JXSE 2.7 peers, elsewhere from unsigned edge
peers of internal/lab/edgepeer/tcp. With a rendezvous the peers talk directly; the gateway stays between them. "(39 lost by the
peers)": the peers' own library lost 39 messages, not the gateway or rendezvous. Published figures: the performance model of 2004 (JXTA 2.0, 800 MHz, 100 Mbit/s) and the benchmark of 2005
(JXTA-J2SE 2.x, JXTA-C 2.x, gigabit). Machine load affects mainly the 99th percentiles.
`
