package main

import (
	"flag"
	"fmt"
	"io"

	"aldis/internal/config"
)

const keysAbout = `usage: gateway keys new -o FILE

Makes the key of a net and writes it to a new file that only its owner can read. Every gateway of the net needs the
same key: bring the file to each of them over a channel that you trust, and name it as link.key_file. Whoever has the
key belongs to the net. An existing file is never overwritten.
`

func keysCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("keys", flag.ContinueOnError)
	file := fs.String("o", "", "`file` to make")
	rest, code, done := parse(fs, args, 1, keysAbout, stdout, stderr)
	if done {
		return code
	}
	if len(rest) != 1 || rest[0] != "new" || *file == "" {
		fmt.Fprintf(stderr, "gateway keys: say: gateway keys new -o FILE\n\n%s", keysAbout)
		return exitUsage
	}
	if err := config.NewKey(*file); err != nil {
		return fail(stderr, "keys new", err)
	}
	fmt.Fprintf(stdout, "%s holds a new net key\n", *file)
	return exitGood
}
