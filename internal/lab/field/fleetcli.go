package field

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/edge/infile"
	"aldis/internal/lab/fleet"
)

const usageFleet = `usage: gateway lab fleet --script FILE [flags]
       gateway lab fleet --gateways N [--peers N] [--view VIEW] [--churn SHARE%] [flags]

Plays sites with several bearers each on this machine: network namespaces, a link emulator for each bearer, gateways, unmodified
JXTA peers and TAK devices. The script says which sites there are, what they say, and what happens: a bearer is cut, a site or a
bearer is silent, a gateway is killed, a site gets another address, joins, or is destroyed (docs/fleet.md). With --gateways the lab draws the
script: a satellite star, HF and UHF, and all gateways in one group. It needs root. Ctrl-C removes everything.

Examples:
  gateway lab fleet --script field-tests/fleet/short.toml                    three minutes
  gateway lab fleet --script field-tests/fleet/hour.toml --peers jxse27,jxta22,tak --html hour.html
  gateway lab fleet --gateways 16 --peers 40 --view ask --churn 12.5%
Exit: 0 every message has exactly one true end, 1 not so or the script could not be played, 2 wrong usage.
`

const kindsByDefault = KindJXSE27 + "," + KindTAK

// fleetArgs are the flags of `gateway lab fleet`.
type fleetArgs struct {
	FleetOptions
	outputs
	peers    string
	duration time.Duration
	sketch   fleet.Sketch
	write    string
}

func fleetFlags(a *fleetArgs) *flag.FlagSet {
	fs := flag.NewFlagSet("gateway lab fleet", flag.ContinueOnError)
	fs.StringVar(&a.File, "script", "", "`file` that says what is played")
	a.FleetOptions.flags(fs, &a.peers, kindsByDefault)
	fs.Lookup("peers").Usage += "; with --gateways also how many JXTA peers, with half as many devices"
	fs.IntVar(&a.sketch.Gateways, "gateways", 0, "instead of --script: so many gateways, 6 to 20")
	fs.StringVar(&a.sketch.View, "view", "", "with --gateways: what sites are told of each other's peers, as lan.view")
	fs.Var(&a.sketch.Churn, "churn", "with --gateways: `share` of the sites that are off the air for half of each minute, as 12.5%")
	fs.StringVar(&a.write, "write", "", "with --gateways: write the script to `file`, and play it")
	fs.DurationVar(&a.duration, "duration", 0, "play the script in this time: what happens comes sooner or later in proportion, and the sites talk as often (default as the script says)")
	a.outputs.flags(fs)
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), usageFleet+"\n")
		fs.PrintDefaults()
	}
	return fs
}

const usageSite = `usage: gateway lab site [flags]

Plays HQ and a ship, each of one gateway, of two with a witness, or of three and more, on this machine, as gateway lab fleet does.
First each machine of a site of several loses its power once and is upgraded once, at random moments and in an order that --seed
decides: its gateway stops in order, and another program starts in its place. Then machines lose their power, or stop and wake. Of
three and more a majority stays. It needs root. Ctrl-C removes everything.

With a package (.deb) in --gateway and --upgrade each machine is a clean Debian of its own: dpkg installs and upgrades the package
there, the gateway runs as its unit says, and a machine without power loses what its disk had not been told to keep (docs/site.md).

Examples:
  gateway lab site --members 3 --ship-members 2 --power random --hours 1 --html site.html
  gateway lab site --members 3 --gateway new/aldis-gateway_0.2.0_amd64.deb --upgrade newer/aldis-gateway_0.2.1_amd64.deb
  gateway lab site --members 1 --ship-members 2 --hours 0.2 --profile hf-2400 --seed 3
Exit: 0 every message has exactly one true end, 1 not so or it could not be played, 2 wrong usage.
`

// siteArgs are the flags of `gateway lab site`.
type siteArgs struct {
	FleetOptions
	outputs
	chance fleet.Chance
	peers  string
	local  int
	dry    bool
	hours  float64
}

func siteFlags(a *siteArgs) *flag.FlagSet {
	fs := flag.NewFlagSet("gateway lab site", flag.ContinueOnError)
	fs.IntVar(&a.chance.Members, "members", 2, "machines of HQ: 1 to 9")
	fs.IntVar(&a.chance.ShipMembers, "ship-members", 2, "machines of the ship: 1 to 9")
	fs.StringVar(&a.chance.Power, "power", fleet.Random, "random: machines lose their power and are upgraded at random moments; none: nothing happens")
	fs.IntVar(&a.local, "local", 30, "`number` of local peers of both sites together, two thirds of them JXTA peers and the others TAK devices where both play")
	fs.StringVar(&a.Upgrade, "upgrade", "", "`path` of the gateway, or of its package, that replaces the one under test in upgrades (default: a copy of it)")
	fs.Float64Var(&a.hours, "hours", 1, "how long it plays")
	fs.DurationVar(&a.chance.Every, "rate", 8*time.Second, "between two messages of a site's JXTA peer that talks, and of its TAK device; a site is seen to be served at the next one")
	fs.BoolVar(&a.dry, "dry", false, "say what would happen when, and play nothing")
	fs.StringVar(&a.chance.Profile, "profile", "iridium-directip", "`name` of the profile of the link")
	a.FleetOptions.flags(fs, &a.peers, KindJXSE27+","+KindJXTA22+","+KindTAK)
	a.outputs.flags(fs)
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), usageSite+"\n")
		fs.PrintDefaults()
	}
	return fs
}

// parseSite reads the flags, and makes the script.
func parseSite(_ string, args []string, w io.Writer) (player, outputs, error) {
	var a siteArgs
	err := parsed(siteFlags(&a), args, w)
	if err == nil {
		a.chance.JXTA, a.chance.TAK = shared(a.local, strings.Split(a.peers, ","))
		a.chance.Duration, a.chance.Seed = time.Duration(a.hours*float64(time.Hour)), a.Seed
		a.Script, err = a.chance.Script()
	}
	if a.dry && err == nil {
		fmt.Fprintf(w, "%s: %d JXTA peers and %d TAK devices\n", a.Script.Summary, a.chance.JXTA, a.chance.TAK)
		for _, x := range a.Script.Accidents {
			fmt.Fprintf(w, "%8s  %s\n", x.At.Round(time.Second), x.Said())
		}
		err = flag.ErrHelp // all has been printed
	}
	a.File, a.Peers = "lab site", strings.Split(a.peers, ",")
	return a.player(), a.outputs, err
}

// shared says how many of the local peers are of JXTA, and how many of TAK.
func shared(local int, kinds []string) (jxta, tak int) {
	switch {
	case !slices.Contains(kinds, KindTAK):
		return local, 0
	case len(kinds) == 1:
		return 0, local
	}
	return local - local/3, local / 3
}

// flags declares the flags of every play of a script.
func (o *FleetOptions) flags(fs *flag.FlagSet, peers *string, kinds string) {
	fs.StringVar(peers, "peers", kinds, "`kinds` with commas: jxse27, jxse27-unsigned and jxta22, which the sites take in turn, and tak: devices at each site")
	fs.Uint64Var(&o.Seed, "seed", 1, "of the losses and delays of the bearers, and of the random moments")
	fs.StringVar(&o.Gateway, "gateway", "", "`path` of the gateway under test, or of its package, a .deb (default: gateway beside gateway-lab)")
	fs.StringVar(&o.JarDir, "peers-dir", "", "`directory` of the built JXTA peers (default field-tests/peers above here)")
	fs.StringVar(&o.Keep, "keep", "", "`directory` for logs, configurations and captures of the links")
}

func (o FleetOptions) player() player {
	return func(ctx context.Context, progress io.Writer) (result, error) {
		o.Progress = progress
		return Fleet(ctx, o)
	}
}

// parseFleet reads the flags, and the script.
func parseFleet(_ string, args []string, w io.Writer) (player, outputs, error) {
	var a fleetArgs
	fs := fleetFlags(&a)
	if err := parsed(fs, args, w); err != nil {
		return nil, a.outputs, err
	}
	data, err := a.text()
	if err == nil {
		a.Script, err = fleet.Read(a.File, data)
	}
	if err == nil && a.duration != 0 {
		err = a.Script.Scale(a.duration)
	}
	a.Peers = strings.Split(a.peers, ",")
	return a.player(), a.outputs, err
}

// text is the text of the script: from the file, or drawn.
func (a *fleetArgs) text() ([]byte, error) {
	if a.sketch.Gateways == 0 {
		if a.File == "" || a.write != "" || a.sketch != (fleet.Sketch{}) {
			return nil, errors.New("say what is played: --script FILE, or --gateways N and what belongs to it")
		}
		return infile.Read(a.File, fleet.MaxScript)
	}
	if a.File != "" {
		return nil, errors.New("--script or --gateways, not both")
	}
	if n, err := strconv.Atoi(a.peers); err == nil {
		a.sketch.Peers, a.peers = n, kindsByDefault
	}
	text, err := a.sketch.Text()
	if a.File = "--gateways"; err == nil && a.write != "" {
		a.File = a.write
		err = os.WriteFile(a.write, []byte(text), 0o644)
	}
	return []byte(text), err
}
