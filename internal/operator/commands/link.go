package operator

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/operator/cli"
)

const linkAbout = `usage: gateway link [-c FILE] [NAME] up | down
       gateway link [-c FILE] [NAME] rate BITS_PER_SECOND | queue OCTETS | free

Says to the gateway on this machine what the modem of the [[link]] NAME is doing, over the socket of its key modem: for
scripts of pppd and the like (docs/modem.md). NAME may be left out where one [[link]] alone has that key.

down: nothing is sent there any more, and messages go on over another [[link]]. up: it is used again. rate: datagrams go
so fast, also faster than the profile says. queue: the modem has so many octets to send yet, and nothing more goes before.
free: nothing is known, and the profile counts. What was said holds until something else is said, or the gateway restarts.

Exit: 0 the gateway has taken it, 1 not so, 2 wrong usage.
`

// linkTime is how long a gateway may take to answer.
const linkTime = 10 * time.Second

func linkCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("link", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	rest, code, done := cli.Parse(fs, args, 3, linkAbout, stdout, stderr)
	if done {
		return code
	}
	said := func(words []string) bool {
		plain := len(words) == 1 && slices.Contains([]string{"up", "down", "free"}, words[0])
		return plain || len(words) == 2 && (words[0] == "rate" || words[0] == "queue")
	}
	name := ""
	if !said(rest) && len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	if !said(rest) {
		fmt.Fprintf(stderr, "gateway link: say up, down, rate N, queue N or free\n\n%s", linkAbout)
		return cli.ExitUsage
	}
	path, err := config.ModemSocket(*file, name)
	if err == nil {
		err = speak(path, "hold", strings.Join(rest, " "))
	}
	if err != nil {
		return cli.Fail(stderr, "link", err)
	}
	return cli.ExitGood
}

// speak sends lines to the gateway, one after the other; the gateway must accept each.
func speak(path string, lines ...string) error {
	conn, err := net.DialTimeout("unix", path, linkTime)
	if err != nil {
		return fmt.Errorf("the gateway does not answer: %w", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(linkTime))
	answers := bufio.NewReader(conn)
	for _, line := range lines {
		if _, err := fmt.Fprintln(conn, line); err != nil {
			return err
		}
		answer, err := answers.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the gateway does not answer: %w", err)
		}
		if why, refused := strings.CutPrefix(strings.TrimSpace(answer), "no "); refused {
			return errors.New("the gateway does not take it: " + why)
		}
	}
	return nil
}
