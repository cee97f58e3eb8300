package main

import (
	"flag"
	"fmt"
	"io"

	"aldis/internal/config"
)

const keysAbout = `usage: gateway keys new -o FILE
       gateway keys show FILE

Every gateway of a net needs the same key. Whoever has the key belongs to the net.

  new   make a key and write it to a new file that only its owner can read. Bring the file to each gateway over a channel
        that you trust, and name it as link.key_file. An existing file is never overwritten
  show  print the fingerprint of a key: five groups that two operators compare aloud. It says nothing of the key. gateway
        status prints that of the key in use
`

func keysCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("keys", flag.ContinueOnError)
	file := fs.String("o", "", "new: the `file` to make")
	rest, code, done := parse(fs, args, 2, keysAbout, stdout, stderr)
	switch {
	case done:
		return code
	case len(rest) == 1 && rest[0] == "new" && *file != "":
		if err := config.NewKey(*file); err != nil {
			return fail(stderr, "keys new", err)
		}
		fmt.Fprintf(stdout, "%s holds a new net key\n", *file)
	case len(rest) == 2 && rest[0] == "show" && *file == "":
		key, err := config.LoadKey(rest[1])
		if err != nil {
			return fail(stderr, "keys show", err)
		}
		fmt.Fprintln(stdout, key.Fingerprint())
	default:
		fmt.Fprintf(stderr, "gateway keys: say: gateway keys new -o FILE, or gateway keys show FILE\n\n%s", keysAbout)
		return exitUsage
	}
	return exitGood
}
