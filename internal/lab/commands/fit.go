package commands

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aldis/internal/edge/infile"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

// fitted is the flags of gateway tune --fit or --probe.
type fitted struct {
	base      profile.Profile
	source    []byte // of base
	captures  string // two, with a comma between; or
	linkProbe string
	out       string
	name      string
	json      bool
}

// told is the findings about a link from its packets.
type told struct {
	linkemu.Result
	suffix string   // of the profile's name
	head   []string // of its file
	doubts []string
}

// fitCommand finds out from captures, or from the datagrams of a link probe, how a link behaves.
func fitCommand(f fitted, stdout, stderr io.Writer) int {
	of := f.ofCaptures
	if f.linkProbe != "" {
		of = f.ofLinkProbe
	}
	res, err := of(stderr)
	if errors.Is(err, linkemu.ErrNothing) || errors.Is(err, linkemu.ErrFew) {
		fmt.Fprintf(stderr, "gateway tune: %v\n", err)
		return cli.ExitRefused
	}
	if err == nil {
		err = f.print(res, stdout)
	}
	if err != nil {
		return cli.Fail(stderr, "tune", err)
	}
	return cli.ExitGood
}

// print writes the profile, and prints the findings.
func (f fitted) print(res told, stdout io.Writer) error {
	f.name = cmp.Or(f.name, strings.TrimSuffix(f.base.Name, res.suffix)+res.suffix)
	if f.out != "" {
		text, err := res.Write(f.source, f.base, f.name, res.head)
		if err := writeProfile(f.out, stdout, text, err); err != nil {
			return err
		}
	}
	switch {
	case f.out == "-":
		return nil
	case f.json:
		return cli.PrintJSON(stdout, res.Figures(f.base.Name))
	}
	text := res.Text(f.out, f.name)
	for _, line := range res.doubts {
		text += line + "\n"
	}
	_, err := io.WriteString(stdout, text)
	return err
}

// writeProfile writes the text of a profile; err is why there is none.
func writeProfile(out string, stdout io.Writer, text []byte, err error) error {
	if err == nil {
		err = writeTo(out, stdout, func(w io.Writer) error { _, err := w.Write(text); return err })
	}
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// ofCaptures judges a link by captures at both its ends.
func (f fitted) ofCaptures(stderr io.Writer) (res told, err error) {
	files := [2]string(strings.Split(f.captures, ","))
	joined, err := joinCaptures("tune", files, stderr)
	if err == nil {
		res.Result, err = linkemu.Fit(joined, f.base)
	}
	res.suffix = "-fitted"
	res.head = []string{fmt.Sprintf("Fitted: gateway tune --profile %s --fit %s,%s", f.base.Name, filepath.Base(files[0]), filepath.Base(files[1]))}
	return res, err
}

// joinCaptures matches the packets of two captures, for a command.
func joinCaptures(command string, files [2]string, stderr io.Writer) (linkemu.Joined, error) {
	var ends [2][]linkemu.Passage
	for i, file := range files {
		broken, err := readCapture(file, stderr, func(p trace.Packet) {
			if one, ok := trace.PassageOf(p); ok && len(ends[i]) < linkemu.MaxPackets {
				ends[i] = append(ends[i], one)
			}
		}, nil)
		if err != nil {
			return linkemu.Joined{}, fmt.Errorf("%s: %w", file, err)
		}
		if broken != nil {
			fmt.Fprintf(stderr, "gateway %s: %s: %v: what comes before it is used\n", command, file, broken)
		}
		if len(ends[i]) == linkemu.MaxPackets {
			fmt.Fprintf(stderr, "gateway %s: %s: the first %d packets are used\n", command, file, linkemu.MaxPackets)
		}
		slices.SortStableFunc(ends[i], func(x, y linkemu.Passage) int { return cmp.Compare(x.At, y.At) })
	}
	return linkemu.Join(ends[0], ends[1])
}

// mostLinkProbe bounds the file of a link probe, in octets.
const mostLinkProbe = 1 << 20

// ofLinkProbe judges a link by the output of gateway probe --json, from a file or standard input.
func (f fitted) ofLinkProbe(io.Writer) (res told, err error) {
	var text []byte
	if f.linkProbe == "-" {
		text, err = io.ReadAll(io.LimitReader(os.Stdin, mostLinkProbe))
	} else {
		text, err = infile.Read(f.linkProbe, mostLinkProbe)
	}
	if err != nil {
		return res, err
	}
	var got linkemu.LinkProbe
	if err := json.Unmarshal(text, &got); err != nil {
		return res, fmt.Errorf("--probe %s: it is not what gateway probe --json prints: %w", f.linkProbe, err)
	}
	if res.Result, err = linkemu.OfLinkProbe(got.Packets, f.base, got.Terminal); err != nil {
		return res, fmt.Errorf("%w: a larger --budget sends more", err)
	}
	s := got.Status
	res.suffix = "-probed"
	res.head = []string{fmt.Sprintf("Probed: gateway probe %s --budget %d, %d octets from here and %d from there.", s.Peer, s.Budget, s.Sent, s.Received),
		fmt.Sprintf("Datagrams of up to %d IP octets passed. Sealed octets do not compress, and so few do not fill a queue: these keys are as before.", res.Largest())}
	res.doubts = res.Doubts(f.base, s.Budget)
	return res, nil
}
