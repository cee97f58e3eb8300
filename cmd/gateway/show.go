package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// show writes a page to its file, if one is asked for, and prints the figures unless the page is what is printed.
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

// jsonOr prints v as JSON, or what text prints.
func jsonOr(asJSON bool, v any, text func(io.Writer) error) func(io.Writer) error {
	if !asJSON {
		return text
	}
	return func(w io.Writer) error { return printJSON(w, v) }
}

func printJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	return err
}
