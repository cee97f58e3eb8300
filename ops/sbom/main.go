// Command sbom writes the bill of materials of a built program as SPDX 2.3, from what the Go tool chain has put into the
// binary and from the shared libraries that its header names. It refuses when NOTICE lacks the notice of a module.
//
// # Files
//
//   - main.go: the command
//   - spdx.go: the document
package main

import (
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

func main() {
	version := flag.String("version", "", "of the package")
	arch := flag.String("arch", "", "of the package: amd64, arm64")
	notice := flag.String("notice", "NOTICE", "`file` with the notices of all modules")
	made := flag.Int64("time", 0, "`seconds` since 1970 that the document says it was made at")
	flag.Parse()
	if err := run(flag.Arg(0), *notice, product{*version, *arch, time.Unix(*made, 0).UTC()}); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(binary, notice string, p product) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	file, err := elf.Open(binary)
	if err != nil {
		return err
	}
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(notice)
	if err != nil {
		return err
	}
	if missing := unnoticed(info.Deps, string(text)); len(missing) > 0 {
		return fmt.Errorf("%s has no notice of %s: add the LICENSE of each", filepath.Base(notice), strings.Join(missing, ", "))
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(p.document(info, libraries))
}

// unnoticed are the modules of the binary without a heading "path version" in the notices.
func unnoticed(deps []*debug.Module, notices string) (missing []string) {
	for _, m := range deps {
		if heading := m.Path + " " + m.Version; !strings.Contains("\n"+notices, "\n"+heading+"\n") {
			missing = append(missing, heading)
		}
	}
	return missing
}
