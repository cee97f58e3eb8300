package commands

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"aldis/internal/operator/cli"
)

// show writes a page to its file, if there is one, and prints the figures unless it prints the page instead.
func show(page string, stdout io.Writer, html, figures func(io.Writer) error) error {
	if page != "" {
		if err := writeTo(page, stdout, html); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	if page == "-" {
		return nil
	}
	return figures(stdout)
}

// jsonOr prints v as JSON, or calls text.
func jsonOr(asJSON bool, v any, text func(io.Writer) error) func(io.Writer) error {
	if !asJSON {
		return text
	}
	return func(w io.Writer) error { return cli.PrintJSON(w, v) }
}

// writeTo fills a file and puts it in its place only when it is complete.
func writeTo(file string, stdout io.Writer, fill func(io.Writer) error) error {
	if file == "-" {
		return fill(stdout)
	}
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer cli.IfInterrupted(func() { os.Remove(f.Name()) })()
	err = f.Chmod(0o644)
	if err == nil {
		err = fill(f)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
