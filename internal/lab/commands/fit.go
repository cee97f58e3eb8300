package commands

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"aldis/internal/cli"
	"aldis/internal/lab/trace"
	"aldis/internal/link/fit"
	"aldis/internal/link/profile"
)

// fitted is what gateway tune --fit was told.
type fitted struct {
	base     profile.Profile
	source   []byte // of base
	captures string
	out      string
	name     string
	json     bool
}

// fitCommand says from captures what a link does.
func fitCommand(f fitted, stdout, stderr io.Writer) int {
	files := strings.Split(f.captures, ",")
	if len(files) != 2 {
		return cli.Fail(stderr, "tune", fmt.Errorf("--fit %s: two captures, with a comma between: one end alone does not show when its packets arrive", f.captures))
	}
	var ends [2][]fit.Passage
	for i, file := range files {
		broken, err := readCapture(file, stderr, func(p trace.Packet) {
			if one, ok := trace.PassageOf(p); ok && len(ends[i]) < fit.MaxPackets {
				ends[i] = append(ends[i], one)
			}
		}, nil)
		if err != nil {
			return cli.Fail(stderr, "tune", fmt.Errorf("%s: %w", file, err))
		}
		if broken != nil {
			fmt.Fprintf(stderr, "gateway tune: %s: %v: what comes before it is used\n", file, broken)
		}
		if len(ends[i]) == fit.MaxPackets {
			fmt.Fprintf(stderr, "gateway tune: %s: the first %d packets are used\n", file, fit.MaxPackets)
		}
		slices.SortStableFunc(ends[i], func(x, y fit.Passage) int { return cmp.Compare(x.At, y.At) })
	}
	joined, err := fit.Join(ends[0], ends[1])
	var res fit.Result
	if err == nil {
		res, err = fit.Fit(joined, f.base)
	}
	if errors.Is(err, fit.ErrNothing) || errors.Is(err, fit.ErrFew) {
		fmt.Fprintf(stderr, "gateway tune: %v\n", err)
		return cli.ExitRefused
	}
	if err != nil {
		return cli.Fail(stderr, "tune", err)
	}
	f.name = cmp.Or(f.name, strings.TrimSuffix(f.base.Name, "-fitted")+"-fitted")
	if f.out != "" {
		head := []string{fmt.Sprintf("Fitted: gateway tune --profile %s --fit %s,%s", f.base.Name, filepath.Base(files[0]), filepath.Base(files[1]))}
		text, err := res.Write(f.source, f.base, f.name, head)
		if err == nil {
			err = cli.WriteTo(f.out, stdout, func(w io.Writer) error { _, err := w.Write(text); return err })
		}
		if err != nil {
			return cli.Fail(stderr, "tune", fmt.Errorf("--out: %w", err))
		}
	}
	switch {
	case f.out == "-":
	case f.json:
		err = cli.PrintJSON(stdout, res.Figures(f.base.Name))
	default:
		_, err = io.WriteString(stdout, res.Text(f.out, f.name))
	}
	if err != nil {
		return cli.Fail(stderr, "tune", err)
	}
	return cli.ExitGood
}
