package operator

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/gateway/api"
	"aldis/internal/jxta"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control"
	"aldis/internal/operator/control/glance"
	"aldis/internal/rules/filter"
)

const advertsAbout = `usage: gateway adverts [-c FILE] [--type TYPE] [--name PATTERN] [--group ID] [--limit N] [--json]

Lists the advertisements of local peers and of far sites that the gateway on this machine has, with remaining lifetime
and octets. For a local one it shows the state at each far site (held there, under way, waiting, or staying here) and
why. From FILE it reads only where the gateway answers (http.listen).

TYPE is a word of the filter rules: group, pipe, class, spec, impl, other. PATTERN may have "*". ID is a group's, or net.
With --json it prints all as a list; otherwise at most N lines, by default 1000 (0: all).
Exit: 0 listed, 1 no gateway answers or it stopped answering.
`

func advertsCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("adverts", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`")
	kind := fs.String("type", "", "only advertisements of this `type`")
	name := fs.String("name", "", "only those whose name fits the `pattern`")
	group := fs.String("group", "", "only those published in the group with this `id`")
	limit := fs.Int("limit", -1, "list at most this `many`, 0 for all")
	asJSON := fs.Bool("json", false, "print a list in JSON")
	if _, code, done := cli.Parse(fs, args, 0, advertsAbout, stdout, stderr); done {
		return code
	}
	q := url.Values{}
	if *kind != "" {
		q.Set("type", *kind)
	}
	if *name != "" {
		q.Set("name", *name)
	}
	if *group != "" {
		id, err := config.ParseID(*group, jxta.KindGroup)
		if err != nil {
			fmt.Fprintf(stderr, "gateway adverts: --group %s: %v\n", *group, err)
			return cli.ExitUsage
		}
		q.Set("group", id)
	}
	if *kind != "" && !isAdvert(*kind) {
		fmt.Fprintf(stderr, "gateway adverts: --type %s: must be one of group, pipe, class, spec, impl, other\n", *kind)
		return cli.ExitUsage
	}
	if *limit < 0 {
		*limit = 1000
		if *asJSON {
			*limit = 0
		}
	}
	q.Set("limit", strconv.Itoa(*limit))
	at, err := config.HTTPListen(*file)
	if err != nil {
		return cli.Fail(stderr, "adverts", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := advertPrinter{out: stdout, json: *asJSON, limit: *limit}
	if err := adverts(ctx, at, q, &p); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("interrupted after %d", p.count)
		}
		return cli.Fail(stderr, "adverts", err)
	}
	return cli.ExitGood
}

func isAdvert(kind string) bool {
	switch kind {
	case filter.Group, filter.Pipe, filter.Class, filter.Spec, filter.Impl, filter.Other:
		return true
	}
	return false
}

// adverts requests the rows of the cache and prints them as they come.
func adverts(ctx context.Context, at netip.AddrPort, q url.Values, p *advertPrinter) error {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+dialable(at).String()+"/adverts?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{ResponseHeaderTimeout: 10 * time.Second}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no gateway answers at %s: it does not run, or runs with another http.listen", at)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return fmt.Errorf("the gateway at %s says: %s", at, strings.TrimSpace(string(text)))
	}
	p.total, _ = strconv.Atoi(resp.Header.Get(control.AdvertTotal))
	lines := json.NewDecoder(resp.Body)
	for {
		var l control.AdvertLine
		err := lines.Decode(&l)
		switch {
		case err == io.EOF:
			return p.end(false)
		case err != nil:
			return fmt.Errorf("the gateway's answer ends in the middle, after %d: %w", p.count, err)
		case l.Error == "limit":
			return p.end(true)
		case l.Error != "":
			return fmt.Errorf("the gateway's answer ends after %d: %s", p.count, l.Error)
		}
		if err := p.row(l.AdvertRow); err != nil {
			return err
		}
	}
}

// advertPrinter writes rows as they come.
type advertPrinter struct {
	out          io.Writer
	json         bool
	limit        int
	count, total int
}

func (p *advertPrinter) row(r api.AdvertRow) error {
	p.count++
	if p.json {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		before := ",\n "
		if p.count == 1 {
			before = "[\n "
		}
		_, err = fmt.Fprintf(p.out, "%s%s", before, line)
		return err
	}
	if p.count == 1 {
		fmt.Fprintf(p.out, "%-12s %-6s %9s %7s  %s\n", "ORIGIN", "TYPE", "LIFE", "OCTETS", "NAME, GROUP, ID; SITES")
	}
	group := r.Group
	if group == jxta.NetGroup {
		group = "net"
	}
	life := (time.Duration(r.LifetimeS) * time.Second).String()
	text := fmt.Sprintf("%-12s %-6s %9s %7d  %q, %s, %s", r.Origin, r.Type, life, r.Octets, glance.Cut(r.Name), glance.Cut(group), glance.Cut(r.ID))
	for i, s := range r.Sites {
		text += map[bool]string{true: "; ", false: ", "}[i == 0] + s.Site + ": " + s.State
		if s.Why != "" {
			text += " (" + s.Why + ")"
		}
	}
	_, err := fmt.Fprintln(p.out, text)
	return err
}

// end closes the list; more says that the limit cut it.
func (p *advertPrinter) end(more bool) (err error) {
	switch {
	case p.json && p.count == 0:
		_, err = fmt.Fprintln(p.out, "[]")
	case p.json:
		_, err = fmt.Fprintln(p.out, "\n]")
	case more:
		_, err = fmt.Fprintf(p.out, "%d shown, the cache has %d: --limit 0 shows all, --type, --name and --group some\n", p.count, p.total)
	default:
		_, err = fmt.Fprintf(p.out, "%d shown, the cache has %d\n", p.count, p.total)
	}
	return err
}
