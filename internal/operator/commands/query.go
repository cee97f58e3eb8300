package operator

import (
	"errors"
	"fmt"
	"io"

	"aldis/internal/edge/infile"
	"aldis/internal/link/compact"
	"aldis/internal/operator/cli"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/query"
)

// Queried holds the values that one file has at the place of a condition.
type Queried struct {
	File   string   `json:"file"`
	Fits   bool     `json:"fits"`
	Values []string `json:"values,omitempty"`
}

// mostValues bounds the values that are shown of a file.
const mostValues = 100

func queryFiles(condition string, files []string, asJSON bool, stdout, stderr io.Writer) int {
	c, err := query.Parse(condition)
	if err != nil {
		fmt.Fprintf(stderr, "gateway compact: --query: %q %v\n", condition, err)
		return cli.ExitUsage
	}
	code := cli.ExitRefused
	var coder compact.Coder
	list := []Queried{}
	for _, file := range files {
		text, err := cli.ReadFile(file)
		if err == nil {
			var plain []byte
			if plain, err = coder.ExpandFile(text, cli.MostFile); err == nil {
				text = plain
			} else if errors.Is(err, compact.ErrFile) {
				err = nil
			}
		}
		if err != nil {
			return cli.Fail(stderr, "compact", fmt.Errorf("%s: %w", file, infile.Why(err)))
		}
		q := Queried{File: file, Fits: c.Fits(text, filter.Match)}
		c.Values(text, func(value string) bool {
			q.Values = append(q.Values, value)
			return len(q.Values) < mostValues
		})
		if q.Fits {
			code = cli.ExitGood
		}
		list = append(list, q)
	}
	if asJSON {
		if err := cli.PrintJSON(stdout, list); err != nil {
			return cli.Fail(stderr, "compact", err)
		}
		return code
	}
	for _, q := range list {
		fits := "does not fit"
		if q.Fits {
			fits = "fits"
		}
		fmt.Fprintf(stdout, "%s: %s\n", q.File, fits)
		for _, v := range q.Values {
			fmt.Fprintf(stdout, "    %q\n", v)
		}
	}
	return code
}
