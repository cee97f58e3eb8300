package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"aldis/internal/config"
)

const keysAbout = `usage: gateway keys new -o FILE
       gateway keys show FILE
       gateway keys tak -o DIR [HOST [CLIENT...]]

Every gateway of a net needs the same key. Whoever has the key belongs to the net.

  new   make a key and write it to a new file that only its owner can read. Bring the file to each gateway over a channel
        that you trust, and name it as link.key_file. An existing file is never overwritten
  show  print the fingerprint of a key: five groups that two operators compare aloud. It says nothing of the key. gateway
        status prints that of the key in use
  tak   make certificates for TAK devices in a directory, what of it is missing: an authority (ca.pem), the server's for
        HOST, the name or address that devices connect to, and one for each CLIENT (CLIENT.pem, CLIENT.key). Name the
        directory as tak.tls_keys. Keep ca.key off the gateway once all clients have theirs
`

func keysCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("keys", flag.ContinueOnError)
	file := fs.String("o", "", "new: the `file` to make; tak: the directory")
	rest, code, done := parse(fs, args, 1000, keysAbout, stdout, stderr)
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
	case len(rest) >= 1 && rest[0] == "tak" && *file != "":
		host, clients := "", []string(nil)
		if len(rest) > 1 {
			host, clients = rest[1], rest[2:]
		}
		made, err := config.NewTAKKeys(*file, host, clients, time.Now())
		for _, name := range made {
			fmt.Fprintf(stdout, "%s is new\n", name)
		}
		if err != nil {
			return fail(stderr, "keys tak", err)
		}
	default:
		fmt.Fprintf(stderr, "gateway keys: say: gateway keys new -o FILE, gateway keys show FILE, or gateway keys tak -o DIR HOST CLIENT...\n\n%s", keysAbout)
		return exitUsage
	}
	return exitGood
}
