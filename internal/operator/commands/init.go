package operator

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"aldis/internal/edge/config"
	"aldis/internal/edge/keyfile"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

const initAbout = `usage: gateway init [-o FILE] [--ashore] [--id N] [--name NAME] [--lan ADDRESS] [--profile NAME] [--peer ID,NAME[,ADDRESS]]
                    [--new-key] [--key FILE] [--link ADDRESS] [--data DIR]

Writes the configuration of a gateway to a new file. What no flag says is asked for on a terminal; elsewhere it is a mistake
to leave it out. The file is one that gateway check takes, or it is not written.

The first gateway of a network makes the network's key (--new-key). Bring that file to every other gateway over a channel that you
trust, before init runs there. What the first init prints has the command for each other side.
`

const (
	lanPort  = 9701
	linkPort = 7142
)

// setup is the data for a first configuration.
type setup struct {
	file, data, key string
	newKey, ashore  bool
	id              uint
	name            string
	lan, link       string
	profile         string
	peers           []config.Peer
}

func initCommand(args []string, stdout, stderr io.Writer) int {
	s := &setup{}
	flags := flag.NewFlagSet("init", flag.ContinueOnError)
	flags.StringVar(&s.file, "o", cli.DefaultConfig, "`file` to write")
	flags.BoolVar(&s.ashore, "ashore", false, "this end of the link has no terminal of its own: it paces each ship at that ship's down rate")
	flags.UintVar(&s.id, "id", 0, "`number` of this gateway, 1 to 65535, unique in the network")
	flags.StringVar(&s.name, "name", "", "`name` of this site")
	flags.StringVar(&s.lan, "lan", "", "`address` of this machine that JXTA peers dial in to (port 9701 unless it says another)")
	flags.StringVar(&s.profile, "profile", "", "`name` of the link, the same at both ends (gateway profiles)")
	flags.Func("peer", "a far gateway: `id,name[,address]`; may be repeated", func(text string) error {
		p, err := parsePeer(text)
		s.peers = append(s.peers, p)
		return err
	})
	flags.BoolVar(&s.newKey, "new-key", false, "make the network's key: this is the first gateway of the network")
	flags.StringVar(&s.key, "key", "", "`file` of the network's key (default net.key beside the configuration)")
	flags.StringVar(&s.link, "link", fmt.Sprintf("0.0.0.0:%d", linkPort), "UDP `address` towards the other gateways")
	flags.StringVar(&s.data, "data", "/var/lib/aldis", "`directory` of the journal")
	if _, code, done := cli.Parse(flags, args, 0, initAbout, stdout, stderr); done {
		return code
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if _, err := os.Lstat(s.file); err == nil {
		return cli.Fail(stderr, "init", fmt.Errorf("%s is there already: name another file with -o, or edit that one and run gateway check", s.file))
	}
	if missing := s.missing(given); len(missing) > 0 {
		if !cli.IsTerminal(os.Stdin) {
			fmt.Fprintf(stderr, "gateway init: --%s missing; on a terminal init asks for it\n", strings.Join(missing, ", --"))
			return cli.ExitUsage
		}
		if err := s.ask(os.Stdin, stdout, missing); err != nil {
			return cli.Fail(stderr, "init", err)
		}
	}
	if err := s.write(); err != nil {
		if faults := (*profile.FieldError)(nil); errors.As(err, &faults) {
			return cli.Mistakes(stderr, err)
		}
		return cli.Fail(stderr, "init", err)
	}
	s.next(stdout)
	return cli.ExitGood
}

// parsePeer reads id,name[,address].
func parsePeer(text string) (p config.Peer, err error) {
	parts := strings.Split(text, ",")
	if len(parts) < 2 || len(parts) > 3 {
		return p, errors.New("say id,name or id,name,address: 1,hq,192.0.2.1:7142")
	}
	id, err := strconv.ParseUint(strings.TrimSpace(parts[0]), 10, 16)
	if err != nil || id == 0 {
		return p, fmt.Errorf("%q is no number from 1 to 65535", parts[0])
	}
	p = config.Peer{ID: uint16(id), Name: strings.TrimSpace(parts[1])}
	if len(parts) == 3 {
		p.Address, err = withPort(strings.TrimSpace(parts[2]), linkPort)
	}
	return p, err
}

// withPort reads an address that may lack its port.
func withPort(text string, port uint16) (netip.AddrPort, error) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at, nil
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is no address such as 192.0.2.1 or 192.0.2.1:%d", text, port)
	}
	return netip.AddrPortFrom(addr, port), nil
}

// keyPath is the path of the network's key: beside the configuration unless a flag says otherwise.
func (s *setup) keyPath() string {
	if s.key != "" {
		return s.key
	}
	return filepath.Join(filepath.Dir(s.file), "net.key")
}

// missing names the flags that are required and not given.
func (s *setup) missing(given map[string]bool) (names []string) {
	for _, need := range []string{"id", "name", "lan", "profile", "peer"} {
		if !given[need] {
			names = append(names, need)
		}
	}
	if _, err := os.Stat(s.keyPath()); err != nil && !s.newKey {
		names = append(names, "new-key")
	}
	return names
}

// ask asks for the missing values. An empty answer takes the default in brackets.
func (s *setup) ask(in io.Reader, out io.Writer, missing []string) error {
	lines := bufio.NewScanner(in)
	question := func(text, standard string, take func(string) error) error {
		for {
			fmt.Fprint(out, text)
			if standard != "" {
				fmt.Fprintf(out, " [%s]", standard)
			}
			fmt.Fprint(out, ": ")
			if !lines.Scan() {
				return errors.New("the answers ended: nothing was written")
			}
			answer := strings.TrimSpace(lines.Text())
			if answer == "" {
				answer = standard
			}
			err := take(answer)
			if err == nil {
				return nil
			}
			fmt.Fprintln(out, " ", err)
		}
	}
	needs := func(name string) bool { return slices.Contains(missing, name) }
	if needs("id") || needs("name") {
		err := question("Is this end a ship, or ashore? Its number and name follow, such as: ship 2 tug", "", func(answer string) error {
			words := strings.Fields(answer)
			if len(words) != 3 || words[0] != "ship" && words[0] != "ashore" {
				return errors.New("say: ship NUMBER NAME, or: ashore NUMBER NAME")
			}
			id, err := strconv.ParseUint(words[1], 10, 16)
			if err != nil || id == 0 {
				return fmt.Errorf("%q is no number from 1 to 65535", words[1])
			}
			s.ashore, s.id, s.name = words[0] == "ashore", uint(id), words[2]
			return nil
		})
		if err != nil {
			return err
		}
	}
	if needs("lan") {
		err := question("Address of this machine that JXTA peers dial in to", ownAddress(), func(answer string) error {
			_, err := withPort(answer, lanPort)
			s.lan = answer
			return err
		})
		if err != nil {
			return err
		}
	}
	if needs("profile") {
		err := question("The link ("+strings.Join(profile.Names(), ", ")+")", "", func(answer string) error {
			s.profile = answer
			_, err := profile.Load(answer, cli.ReadProfile)
			return err
		})
		if err != nil {
			return err
		}
	}
	if needs("peer") {
		err := question("The far gateway, as number,name or number,name,address on the link", "", func(answer string) error {
			p, err := parsePeer(answer)
			s.peers = []config.Peer{p}
			return err
		})
		if err != nil {
			return err
		}
	}
	if needs("new-key") {
		return question(s.keyPath()+" is not there. Is this the first gateway of the network, which makes the key (yes or no)", "", func(answer string) error {
			switch answer {
			case "yes":
				s.newKey = true
				return nil
			case "no":
				return errors.New("bring the key from the first gateway to " + s.keyPath() + ", then say yes here only if it shall be made anew; Ctrl-C ends")
			}
			return errors.New("say yes or no")
		})
	}
	return nil
}

// ownAddress is this machine's only address on a network, "" if there are several or none.
func ownAddress() (own string) {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() || n.IP.To4() == nil {
			continue
		}
		if own != "" {
			return ""
		}
		own = n.IP.String()
	}
	return own
}

// write makes the key if it must, and the file. If check refuses the file, write leaves nothing behind.
func (s *setup) write() (err error) {
	key := s.keyPath()
	switch _, err := os.Stat(key); {
	case err == nil && s.newKey:
		return fmt.Errorf("%s is there already: leave --new-key out to use it, or name another with --key", key)
	case err != nil && !s.newKey:
		return fmt.Errorf("the network's key %s is not there: bring it from another gateway over a channel that you trust, or say --new-key if this is the first", key)
	}
	if err := os.MkdirAll(filepath.Dir(s.file), 0o755); err != nil {
		return err
	}
	if s.newKey {
		if err := keyfile.NewKey(key); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				os.Remove(key)
			}
		}()
	}
	f, err := os.OpenFile(s.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: run init as root, or name another file with -o", err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(s.file)
		}
	}()
	text, err := s.text()
	if err == nil {
		_, err = f.WriteString(text)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		_, err = config.Load(s.file)
	}
	return err
}

// text is the configuration.
func (s *setup) text() (string, error) {
	lan, err := withPort(s.lan, lanPort)
	if err != nil {
		return "", fmt.Errorf("--lan: %w", err)
	}
	link, err := withPort(s.link, linkPort)
	if err != nil {
		return "", fmt.Errorf("--link: %w", err)
	}
	key := s.keyPath()
	if filepath.Dir(key) == filepath.Dir(s.file) {
		key = filepath.Base(key)
	} else if key, err = filepath.Abs(key); err != nil {
		return "", err
	}
	data, err := filepath.Abs(s.data)
	if err != nil {
		return "", err
	}
	c := config.Config{
		Node: config.Node{ID: uint16(s.id), Name: s.name, DataDir: data},
		LAN:  config.LAN{TCP: lan},
		Link: config.Link{ProfileName: s.profile, Listen: link, KeyFile: key, Shore: s.ashore, Peers: s.peers},
		HTTP: config.HTTP{Listen: netip.MustParseAddrPort("127.0.0.1:9142")},
	}
	return "# Written by gateway init. docs/configure.md explains every key; after a change: gateway check, then gateway reload.\n" + c.Text(), nil
}

// next says what to do next, here and at each other side.
func (s *setup) next(out io.Writer) {
	made := ""
	if s.newKey {
		made = ", and the network's new key " + s.keyPath()
	}
	lan, _ := withPort(s.lan, lanPort)
	link, _ := profile.Load(s.profile, cli.ReadProfile) // write has loaded it already
	fmt.Fprintf(out, "wrote %s%s\n\n", s.file, made)
	fmt.Fprintf(out, "here:  gateway check -c %s\n       gateway doctor -c %s    (looks at this machine, before the start and after it)\n       gateway run -c %s       (or the service of the package)\n", s.file, s.file, s.file)
	fmt.Fprintf(out, "       JXTA peers of this LAN take tcp://%s as their seed\n", lan)
	for _, p := range s.peers {
		if !s.newKey { // it came from a gateway that is set up already
			fmt.Fprintf(out, "\n%s:  its configuration needs a [[link.peer]] with id = %d and name = %q; where it has one, nothing is left to do there\n", p.Name, s.id, s.name)
			continue
		}
		end := " --ashore"
		if s.ashore || link.Shared { // all stations of a channel are alike
			end = ""
		}
		fmt.Fprintf(out, "\n%s:  copy %s there over a channel that you trust, beside its configuration; then\n", p.Name, s.keyPath())
		fmt.Fprintf(out, "       gateway init%s --id %d --name %s --profile %s --lan ITS-LAN-ADDRESS --peer %d,%s%s\n", end, p.ID, p.Name, s.profile, s.id, s.name, s.seenFrom())
	}
}

// seenFrom is this gateway's address for the other side's configuration. A ship's is learned, because it may change.
func (s *setup) seenFrom() string {
	if s.ashore {
		return ",THIS-SIDE-ADDRESS"
	}
	return ""
}
