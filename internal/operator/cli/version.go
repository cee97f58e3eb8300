package cli

import (
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// Version is the release that this source becomes. CHANGELOG.md names it first; it is written nowhere else.
const Version = "0.2.0"

// commit is set by the Makefile.
var commit = ""

const versionAbout = `usage: gateway version

Prints the version, the commit it was built from when that is known, and the platform.
`

// version prints the version of a program.
func (p Program) version(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("version", flag.ContinueOnError)
	if _, code, done := Parse(fs, args, 0, versionAbout, stdout, stderr); done {
		return code
	}
	fmt.Fprintf(stdout, "aldis %s %s, %s %s/%s\n", p.Name, VersionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return ExitGood
}

// VersionText is the version, with the commit of the build if that is known.
func VersionText() string {
	c := commit
	if info, ok := debug.ReadBuildInfo(); ok && c == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 7 {
				c = s.Value[:7]
			}
		}
	}
	if c == "" {
		return Version
	}
	return fmt.Sprintf("%s (commit %s)", Version, c)
}
