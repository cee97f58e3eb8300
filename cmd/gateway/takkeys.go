package main

import (
	"flag"
	"fmt"
	"time"

	"aldis/internal/config"
)

// mostKeysArgs is how many words keys takes: clients of TAK above all.
const mostKeysArgs = 1000

// keysTAK makes the certificates that are missing: rest is a host and clients.
func keysTAK(o *keysOrder, rest []string, fs *flag.FlagSet) int {
	if o.out == "" || fs.NFlag() != 1 {
		fmt.Fprintf(o.stderr, "gateway keys: say: gateway keys tak -o DIR HOST CLIENT...\n\n%s", keysAbout)
		return exitUsage
	}
	host, clients := "", []string(nil)
	if len(rest) > 0 {
		host, clients = rest[0], rest[1:]
	}
	made, err := config.NewTAKKeys(o.out, host, clients, time.Now())
	for _, name := range made {
		fmt.Fprintf(o.stdout, "%s is new\n", name)
	}
	if err != nil {
		return fail(o.stderr, "keys tak", err)
	}
	return exitGood
}
