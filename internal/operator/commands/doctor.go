package operator

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
	"aldis/internal/operator/doctor"
)

const doctorAbout = `usage: gateway doctor [-c FILE] [--json]

Looks at this machine and at the gateway that runs on it, and says what is wrong, with the way out: clock, disk, data
directory and key file, ports, multicast, rights of the process, the way to each far gateway and how long a packet may be
there, whether each far gateway is heard and has the same key, and whether the link does what its profile says.

It changes nothing and sends nothing. What only a running gateway knows is asked of that (control.socket); where none
runs, it says so. Run it as root or as the user that runs the gateway: others may not look at everything.

Exit: 0 no fault (there may be warnings), 1 a fault, 2 wrong usage.
`

// Examined is the answer as JSON.
type Examined struct {
	Running  bool             `json:"running"`
	Faults   int              `json:"faults"`
	Warnings int              `json:"warnings"`
	Findings []doctor.Finding `json:"findings"`
}

func doctorCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("doctor", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	asJSON := fs.Bool("json", false, "print the findings as JSON")
	if _, code, done := cli.Parse(fs, args, 0, doctorAbout, stdout, stderr); done {
		return code
	}
	e := examine(*file, time.Now())
	if *asJSON {
		if err := cli.PrintJSON(stdout, e); err != nil {
			return cli.Fail(stderr, "doctor", err)
		}
	} else {
		printFindings(stdout, e)
	}
	if e.Faults > 0 {
		return cli.ExitRefused
	}
	return cli.ExitGood
}

// examine examines everything that the configuration in a file names.
func examine(file string, now time.Time) (e Examined) {
	run, trouble := runningOf(file)
	cfg, err := config.Load(file)
	if err == nil {
		e.Findings = doctor.Examine(cfg, run, now)
	} else {
		node, _ := config.ReadNode(file)
		e.Findings = doctor.ExamineNode(node.DataDir, err, run, now)
	}
	if trouble != nil {
		e.Findings = append(e.Findings, *trouble)
	}
	e.Running = run != nil
	for _, f := range e.Findings {
		switch f.Grade {
		case doctor.Fault:
			e.Faults++
		case doctor.Warning:
			e.Warnings++
		}
	}
	return e
}

// runningOf asks the gateway of a configuration for its report; nil: none runs, or trouble says why the command cannot know.
func runningOf(file string) (run *doctor.Running, trouble *doctor.Finding) {
	path, err := config.ControlSocket(file)
	if err != nil {
		return nil, nil // the configuration's mistakes are reported elsewhere
	}
	run, err = doctor.Find(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, &doctor.Finding{
			Check:  "gateway",
			Grade:  doctor.Warning,
			Text:   "this user may not ask at " + path + " whether a gateway runs",
			WayOut: "run gateway doctor as root, or as the user that runs the gateway",
		}
	case err != nil:
		return nil, &doctor.Finding{
			Check:  "gateway",
			Grade:  doctor.Fault,
			Text:   "the gateway cannot be asked: " + err.Error(),
			WayOut: "look at its log; if it stays so, restart it",
		}
	}
	desk, err := DeskOf(file, "")
	var r control.Report
	if err == nil {
		var body []byte
		if body, err = desk.talk("GET", "/status", nil); err == nil {
			err = json.Unmarshal(body, &r)
		}
	}
	if err != nil {
		run.Why = err.Error()
	} else {
		run.Report = &r
	}
	return run, nil
}

// printFindings prints a line for each finding, and below it the remedy if there is one.
func printFindings(out io.Writer, e Examined) {
	words := map[doctor.Grade]string{doctor.OK: "ok      ", doctor.Warning: "WARNING ", doctor.Fault: "FAULT   "}
	for _, f := range e.Findings {
		about := ""
		if f.About != "" {
			about = " (" + f.About + ")"
		}
		fmt.Fprintf(out, "%s%s%s: %s\n", words[f.Grade], f.Check, about, f.Text)
		if f.WayOut != "" {
			fmt.Fprintf(out, "        -> %s\n", f.WayOut)
		}
	}
	switch {
	case e.Faults+e.Warnings == 0:
		fmt.Fprintln(out, "all is well")
	default:
		fmt.Fprintf(out, "faults: %d, warnings: %d\n", e.Faults, e.Warnings)
	}
}
