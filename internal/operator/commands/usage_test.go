package operator

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// Wrong usage exits with 2 and says what is wrong, before any file is read.
func TestWrongUsage(t *testing.T) {
	for _, tt := range []struct {
		command func([]string, io.Writer, io.Writer) int
		args    string
		says    string
	}{
		{corpusCommand, "send", "name the sites"},
		{corpusCommand, "send a b --to hq", "one corpus at a time"},
		{corpusCommand, "save", "save needs the name of a corpus"},
		{corpusCommand, "save 01234567", "needs -o FILE"},
		{corpusCommand, "accept", "accept needs the name of a corpus"},
		{corpusCommand, "show", "name the file"},
		{corpusCommand, "make", "none of build, show, send"},
		{messagesCommand, "--state nonsense", "must be one of waiting, under_way, ended"},
	} {
		var errs bytes.Buffer
		code := tt.command(strings.Fields(tt.args), io.Discard, &errs)
		check.Equal(check.In(t, tt.args), "code, "+errs.String(), code, cli.ExitUsage)
		check.Contains(check.In(t, tt.args), "error", errs.String(), tt.says)
	}
}
