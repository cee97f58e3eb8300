package operator

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/gdamore/tcell/v2"

	"aldis/internal/operator/cli"
	"aldis/internal/operator/control/top"
)

const topAbout = `usage: gateway top [-c FILE]

Shows the gateway that runs on this machine in the terminal, live: its sites, what waits and when it will be there, what is
wrong, and the messages. The page at http.listen shows the same and more. From FILE it reads only where the gateway answers
(control.socket). It asks and gives no order.

Keys: 1 Now, 2 Messages, arrows or j and k, Enter shows the life of a message, Escape goes back, w shows only what waits,
q ends.
`

func topCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("top", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	if _, code, done := cli.Parse(fs, args, 0, topAbout, stdout, stderr); done {
		return code
	}
	d, err := DeskOf(*file, "")
	if err == nil {
		_, err = d.talk("GET", "/status", nil) // before the screen is taken: a mistake is said where it can be read
	}
	if err != nil {
		return cli.Fail(stderr, "top", err)
	}
	screen, err := tcell.NewScreen()
	if err != nil {
		return cli.Fail(stderr, "top", fmt.Errorf("this terminal cannot be used (TERM is %q): %w", os.Getenv("TERM"), err))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := top.Run(ctx, screen, top.Source{Ask: d.ask, Follow: d.follow}); err != nil {
		return cli.Fail(stderr, "top", err)
	}
	return cli.ExitGood
}

// get requests a path, and returns the body of a good answer.
func (d desk) get(ctx context.Context, path string) (io.ReadCloser, error) {
	resp, err := d.do(ctx, "GET", path, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 400))
		resp.Body.Close()
		return nil, errors.New(strings.TrimSpace(string(text)))
	}
	return resp.Body, nil
}

func (d desk) ask(ctx context.Context, path string) ([]byte, error) {
	body, err := d.get(ctx, path)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, 16<<20))
}

// follow reads server-sent events; each is one line of data.
func (d desk) follow(ctx context.Context, path string, tell func([]byte)) error {
	body, err := d.get(ctx, path)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			tell(bytes.Clone(data))
		}
	}
	return lines.Err()
}
