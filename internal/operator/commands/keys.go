package operator

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aldis/internal/edge/keyfile"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
	"aldis/internal/operator/cli"
)

const keysAbout = `usage: gateway keys new -o FILE
       gateway keys node new -o FILE | node show FILE
       gateway keys authority new -o FILE [--passphrase-file FILE] | authority show FILE
       gateway keys roster new -o ROSTER --network NAME --authority FILE --node 'ID,NAME,PUBLIC[,on=BEARER[@HOST:PORT]][,relay]' ...
       gateway keys roster add|remove|roll ROSTER --authority FILE [--node ...] [--id ID] [--at TIME]
       gateway keys roster verify ROSTER --by PUBLIC
       gateway keys rollover ROSTER [-c FILE] [--dry-run]
       gateway keys destroy [-c FILE] --yes
       gateway keys show FILE
       gateway keys tak -o DIR [--revoke CLIENT | HOST [CLIENT...]]

Either all gateways of a network share one key: anyone who has it belongs to the network, reads everything and speaks as anybody.
Or each gateway has a key of its own, and a roster names them all; then none can speak as another.

  new           make a key for all, and write it to a new file that only its owner can read. Bring the file to each
                gateway over a channel that you trust, and name it as link.key_file
  node new      make a gateway's own key, on its machine, which it never leaves. Its name is link.node_key. What is
                printed, the public half, goes to the authority; read the fingerprint to each other
  authority new make the key that signs rosters, under a passphrase. Keep it on a machine that has no network.
                link.authority is what is printed, at every gateway
  roster new    make a network's first roster. PUBLIC is what keys node show prints. Bring the file to each gateway;
                its name is link.roster. It holds no secret that another than the named nodes can read
  roster add    name more nodes, or give a node another key
  roster remove name a node no more: nodes that have the new roster neither hear it nor tell it anything
  roster roll   the same nodes, a new secret for what goes to all. Each of these is a new serial, in the same file
  roster verify check who has signed it
  rollover      have the gateway on this machine go by a newer roster, and tell it to all others over the link. With
                --dry-run nothing is changed, and it says who would be left behind, and until when
  destroy       overwrite and remove the keys of the gateway that FILE configures, the token of http.token_file, and all in
                its data directory but the audit log: its messages too. It must not run
  tak           make certificates for TAK devices in a directory, what of it is missing: an authority (ca.pem), the server's
                for HOST, the name or address that devices connect to (or several: A,B), and one for each CLIENT (CLIENT.pem, CLIENT.key).
                Name the directory as tak.tls_keys. Keep ca.key off the gateway once all clients have theirs. --revoke takes
                back a client's certificate: revoked.pem beside ca.pem says so, and a running gateway sees it at once
  show          print fingerprints: five groups that two operators compare aloud. They say nothing of a private key.
                FILE is any of these files. gateway status prints those in use

No file is ever overwritten, but a roster by add, remove and roll. TIME is as for gateway silence, 260600ZNOV26: until then
the nodes go on with the secret of the roster before. Without --passphrase-file the passphrase is asked on the terminal.
`

// keysOrder holds the arguments of keys.
type keysOrder struct {
	revoke                                      string
	name, file                                  string // the subcommand, such as "roster add", and the file that it works on
	out, authority, passphrase, network, by, at string
	config                                      string
	dryRun, yes                                 bool
	nodes, ids                                  listFlag
	names                                       []string
	stdout, stderr                              io.Writer
}

// listFlag is a flag that may be given several times.
type listFlag []string

// String is the default in a flag's help: none.
func (l *listFlag) String() string { return "" }

// Set adds a value.
func (l *listFlag) Set(s string) error { *l = append(*l, s); return nil }

// keysVerb is a subcommand of keys: whether it takes a file or names, which flags it needs, and which others it may have.
type keysVerb struct {
	file, names bool
	needs, also []string
	do          func(*keysOrder) error
}

var signs = []string{"passphrase-file", "at"}

var keysVerbs = map[string]keysVerb{
	"new":            {needs: []string{"o"}, do: newNetworkKey},
	"show":           {file: true, do: showKey},
	"node new":       {needs: []string{"o"}, do: newNodeKey},
	"node show":      {file: true, do: showNodeKey},
	"authority new":  {needs: []string{"o"}, also: []string{"passphrase-file"}, do: newAuthority},
	"authority show": {file: true, do: showAuthority},
	"rollover":       {file: true, also: []string{"c", "dry-run"}, do: rollOver},
	"destroy":        {needs: []string{"yes"}, also: []string{"c"}, do: destroyKeys},
	"roster new":     {needs: []string{"o", "network", "authority", "node"}, also: signs, do: newRoster},
	"roster add":     {file: true, needs: []string{"authority", "node"}, also: signs, do: changeRoster},
	"roster remove":  {file: true, needs: []string{"authority", "id"}, also: signs, do: changeRoster},
	"roster roll":    {file: true, needs: []string{"authority"}, also: signs, do: changeRoster},
	"roster show":    {file: true, do: showRoster},
	"tak":            {names: true, needs: []string{"o"}, also: []string{"revoke"}, do: newTAKKeys},
	"roster verify":  {file: true, needs: []string{"by"}, do: verifyRoster},
}

func keysCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("keys", flag.ContinueOnError)
	o := keysOrder{stdout: stdout, stderr: stderr}
	fs.StringVar(&o.revoke, "revoke", "", "tak: take back the certificate of this `client`")
	fs.StringVar(&o.out, "o", "", "new: the `file` to make; tak: the directory")
	fs.StringVar(&o.authority, "authority", "", "roster: `file` with the authority's key")
	fs.StringVar(&o.passphrase, "passphrase-file", "", "`file` whose first line is the authority's passphrase")
	fs.StringVar(&o.network, "network", "", "roster new: `name` of the network")
	fs.StringVar(&o.by, "by", "", "roster verify: the authority's public `key`")
	fs.StringVar(&o.at, "at", "", "roster: `time` from which on its secret is used; left out: as soon as all have it")
	fs.StringVar(&o.config, "c", cli.DefaultConfig, "rollover, destroy: configuration `file`; no more is read from it than is needed")
	fs.BoolVar(&o.yes, "yes", false, "destroy: it is meant")
	fs.BoolVar(&o.dryRun, "dry-run", false, "rollover: change nothing, and say who would be left behind")
	fs.Var(&o.nodes, "node", "roster new, add: `ID,NAME,PUBLIC` of a node, then on=BEARER or on=BEARER@HOST:PORT for each of its bearers, and relay; may come again")
	fs.Var(&o.ids, "id", "roster remove: `id` of a node; may come again")
	rest, code, done := cli.Parse(fs, args, 1000, keysAbout, stdout, stderr)
	if done {
		return code
	}
	verb, err := o.verb(rest, fs)
	if err != nil {
		fmt.Fprintf(stderr, "gateway keys: %v\n\n%s", err, keysAbout)
		return cli.ExitUsage
	}
	if err := verb.do(&o); err != nil {
		return cli.Fail(stderr, "keys "+o.name, err)
	}
	return cli.ExitGood
}

// verb finds the subcommand, and checks that it has everything that it needs, and nothing else.
func (o *keysOrder) verb(rest []string, fs *flag.FlagSet) (keysVerb, error) {
	for n := min(2, len(rest)); n > 0; n-- {
		o.name = strings.Join(rest[:n], " ")
		v, ok := keysVerbs[o.name]
		if !ok {
			continue
		}
		switch {
		case v.file && len(rest) != n+1:
			return v, fmt.Errorf("%s: name the file", o.name)
		case v.names:
			o.names = rest[n:]
		case !v.file && len(rest) != n:
			return v, fmt.Errorf("%s: unexpected argument %q", o.name, rest[n])
		case v.file:
			o.file = rest[n]
		}
		given := map[string]bool{}
		var err error
		fs.Visit(func(f *flag.Flag) {
			given[f.Name] = true
			if !slices.Contains(v.needs, f.Name) && !slices.Contains(v.also, f.Name) {
				err = fmt.Errorf("%s does not take --%s", o.name, f.Name)
			}
		})
		for _, flag := range v.needs {
			if !given[flag] && err == nil {
				err = fmt.Errorf("%s: --%s is missing", o.name, flag)
				if flag == "o" {
					err = fmt.Errorf("say: gateway keys %s -o FILE", o.name)
				}
			}
		}
		return v, err
	}
	return keysVerb{}, errors.New("say: gateway keys new -o FILE, gateway keys show FILE, or one of: " + strings.Join(slices.Sorted(maps.Keys(keysVerbs)), ", "))
}

func newTAKKeys(o *keysOrder) error {
	if o.revoke != "" {
		if len(o.names) > 0 {
			return errors.New("say --revoke NAME, or names of whom to make certificates for, not both")
		}
		if err := keyfile.RevokeTAK(o.out, o.revoke, time.Now()); err != nil {
			return err
		}
		fmt.Fprintf(o.stdout, "the certificate of %s is revoked: %s says so; give that file to the gateway's directory of keys\n", o.revoke, filepath.Join(o.out, "revoked.pem"))
		return nil
	}
	host, clients := "", []string(nil)
	if len(o.names) > 0 {
		host, clients = o.names[0], o.names[1:]
	}
	made, err := keyfile.NewTAKKeys(o.out, host, clients, time.Now())
	for _, name := range made {
		fmt.Fprintf(o.stdout, "%s is new\n", name)
	}
	return err
}

func newNetworkKey(o *keysOrder) error {
	err := keyfile.NewKey(o.out)
	if err == nil {
		fmt.Fprintf(o.stdout, "%s holds a new network key\n", o.out)
	}
	return err
}

func newNodeKey(o *keysOrder) error {
	key, err := keyfile.NewNodeKey(o.out)
	if err == nil {
		o.print("%s holds a new key of a node, and never leaves this machine", roster.NodePublic(key.Public()), key.Public())
	}
	return err
}

// print says which file it is about, and prints a public key with its fingerprint.
func (o *keysOrder) print(about, public string, key seal.PublicKey) {
	fmt.Fprintf(o.stdout, about+"\npublic      %s\nfingerprint %s\n", cmp.Or(o.out, o.file), public, key.Fingerprint())
}

func showNodeKey(o *keysOrder) error {
	key, err := keyfile.LoadNodeKey(o.file)
	if err == nil {
		o.print("%s is the key of a node", roster.NodePublic(key.Public()), key.Public())
	}
	return err
}

func newAuthority(o *keysOrder) error {
	passphrase, err := askPassphrase(o.passphrase, true, o.stderr)
	if err != nil {
		return err
	}
	public, err := keyfile.NewAuthority(o.out, passphrase)
	if err == nil {
		o.print("%s holds a new authority's key under the passphrase: keep both, and off every network", roster.AuthorityPublic(public), public)
	}
	return err
}

func showAuthority(o *keysOrder) error {
	a, err := keyfile.LoadAuthority(o.file)
	if err == nil {
		o.print("%s is the key of an authority", roster.AuthorityPublic(a.Public), a.Public)
	}
	return err
}

// showKey finds out what kind of key a file holds, and shows it.
func showKey(o *keysOrder) error {
	key, err := keyfile.LoadKey(o.file)
	if err == nil {
		fmt.Fprintln(o.stdout, key.Fingerprint())
		return nil
	}
	if _, other := keyfile.LoadRoster(o.file); other == nil {
		return showRoster(o)
	}
	if !errors.Is(err, seal.ErrKeyText) {
		return err
	}
	if _, other := keyfile.LoadNodeKey(o.file); other == nil {
		return showNodeKey(o)
	}
	if _, other := keyfile.LoadAuthority(o.file); other == nil {
		return showAuthority(o)
	}
	return fmt.Errorf("%s is no key and no roster of Aldis", o.file)
}
