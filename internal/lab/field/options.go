package field

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aldis/internal/edge/infile"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/shapes"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

// Options of a Blue Game. The zero value of a field means its default; Duration and the times of scenarios count from
// the start of the (last) ship's peer.
type Options struct {
	Profile  string        // name or path; iridium-directip
	Duration time.Duration // the peers send until then; 150 s
	Rate     time.Duration // between two messages of a peer; 5 s
	Size     int           // octets of a message's body element, with strangers of all its elements; 200
	Shapes   string        // ShapesTracks or ShapesStrangers; tracks
	Arrivals string        // pattern of strangers' messages (lab/shapes); steady
	Squeeze  bool          // a busy loop for each processor runs during the game
	Reorder  bool          // jitter lets packets overtake each other, whatever the profile says
	Twice    float64       // percent of packets that arrive twice, on each leg
	Seed     uint64        // of the emulator
	Up, Down string        // files with the results of a real link for each packet (linkemu.ReadMeasured), for the ships' legs; "": the profile decides
	Peers    string        // KindJXSE27, KindJXSE27Unsigned or KindJXTA22, KindTAK for TAKGame or KindXMPP for XMPPGame; JXSE 2.7 signed
	Devices  int           // TAK devices or XMPP clients of a site, 1 to 100; 3
	ShipPeer string        // kind of the ships' peers when it is another one
	HTTP     bool          // the peers use HTTP instead of TCP, as in 2004
	Ships    int           // 1 to 20; 1
	Unaided  bool          // the same peers over the same link without gateways as well
	Only     string        // "gateway" or "unaided": that run only

	Drain time.Duration // how long after Duration to wait for messages under way, at most; 60 s and four round trips, unaided 20 s
	Idle  time.Duration // silence after that, for the background; 20 s

	OutageAt, OutageFor time.Duration // every ship's link is down
	Asker               bool          // during the outage a second peer on the first ship asks for HQ's service
	Bulk                int           // octets of one long message each way, besides the short ones
	BulkAt              time.Duration // a third of Duration
	RedialAt            time.Duration // the first ship's link gets another address; 0: never
	Silent              int           // how many ships, the last ones, transmit nothing for a while (EMCON)
	SilentAt, SilentFor time.Duration // a minute, and half of Duration
	Deaf                string        // ship whose peer publishes, opens and sends nothing
	Kill                string        // site whose gateway gets kill -9 and is started again
	KillAt              time.Duration

	Gateway  string    // the binary under test; "": the one in this program's directory
	JarDir   string    // field-tests/peers; found from the working directory and the binary
	Keep     string    // directory for logs, configurations and captures of the link; "": they are removed
	Pictured bool      // collect the data for Result.Page
	Progress io.Writer // a line of text now and then; nil: none

	up, down linkemu.Measured // the contents of the files Up and Down
}

// UsageError is a mistake in the Options.
type UsageError struct{ Problem string }

// Error is the mistake in words, a line for each.
func (e *UsageError) Error() string { return "lab: " + e.Problem }

// transport is the transport of the peers.
func (o *Options) transport() string {
	if o.HTTP {
		return "http"
	}
	return "tcp"
}

// complete fills in the defaults and reports what cannot be played.
func (o *Options) complete() (profile.Profile, error) {
	o.Profile = cmp.Or(o.Profile, "iridium-directip")
	p, err := profile.Load(o.Profile, readProfile)
	if err != nil {
		return p, err
	}
	o.defaults()
	if bad := o.mistakes(p); len(bad) > 0 {
		return p, &UsageError{strings.Join(bad, "\nlab: ")}
	}
	if o.Gateway == "" {
		if o.Gateway, err = cli.Beside("gateway"); err != nil {
			return p, fmt.Errorf("lab: %w", err)
		}
	}
	if o.JarDir == "" && !o.other() {
		if o.JarDir, err = FindPeers(o.Peers); err != nil {
			return p, err
		}
	}
	return p, nil
}

// defaults fills in the fields that are zero.
func (o *Options) defaults() {
	o.Duration = cmp.Or(o.Duration, 150*time.Second)
	o.Rate = cmp.Or(o.Rate, 5*time.Second)
	o.Idle = cmp.Or(o.Idle, 20*time.Second)
	o.BulkAt = cmp.Or(o.BulkAt, o.Duration/3)
	if o.Silent > 0 {
		o.SilentAt = cmp.Or(o.SilentAt, time.Minute)
		o.SilentFor = cmp.Or(o.SilentFor, o.Duration/2)
	}
	o.Size = cmp.Or(o.Size, 200)
	o.Shapes = cmp.Or(o.Shapes, ShapesTracks)
	o.Reorder = o.Reorder || o.Shapes == ShapesStrangers
	o.Arrivals = cmp.Or(o.Arrivals, shapes.Patterns[0])
	o.Devices = cmp.Or(o.Devices, 3)
	o.Ships = cmp.Or(o.Ships, 1)
	o.Peers = cmp.Or(o.Peers, KindJXSE27)
	o.ShipPeer = cmp.Or(o.ShipPeer, o.Peers)
	if o.Progress == nil {
		o.Progress = io.Discard
	}
}

// mistakes lists, in sentences, the options that cannot be played on p.
func (o *Options) mistakes(p profile.Profile) (bad []string) {
	check := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Sprintf(format, args...))
		}
	}
	kinds := []string{KindJXSE27, KindJXSE27Unsigned, KindJXTA22}
	if o.other() {
		kinds = []string{o.Peers}
		o.checkOther(check)
	}
	check(slices.Contains(kinds, o.Peers) && slices.Contains(kinds, o.ShipPeer), "peers: %s or %s is none of %s", o.Peers, o.ShipPeer, strings.Join(kinds, ", "))
	strangers := o.Shapes == ShapesStrangers
	check(strangers || o.Shapes == ShapesTracks, "shapes %q: %s or %s", o.Shapes, ShapesTracks, ShapesStrangers)
	check(slices.Contains(shapes.Patterns, o.Arrivals), "arrivals %q is none of %s", o.Arrivals, strings.Join(shapes.Patterns, ", "))
	check(strangers || o.Arrivals == shapes.Patterns[0], "arrivals %q: only with --shapes %s", o.Arrivals, ShapesStrangers)
	check(!strangers || o.Bulk == 0 && o.Size <= shapes.MaxOctets, "strangers send no bulk, and at most %d octets", shapes.MaxOctets)
	check(o.Twice >= 0 && o.Twice <= 50, "twice %v: 0 to 50 percent", o.Twice)
	check(o.Duration >= 10*time.Second, "duration %v is shorter than 10 s: the peers would hardly have started", o.Duration)
	check(o.Rate >= 10*time.Millisecond, "rate %v is shorter than 10 ms", o.Rate)
	check(o.Size >= 64 && o.Size <= 4<<20, "size %d is not from 64 to %d octets", o.Size, 4<<20)
	check(o.Bulk == 0 || o.Bulk >= 64 && o.Bulk <= 4<<20 && o.Bulk != o.Size, "bulk %d is not from 64 to %d octets, or the size of the short messages", o.Bulk, 4<<20)
	check(o.Ships >= 1 && o.Ships <= 20, "%d ships: 1 to 20", o.Ships)
	check(o.Only == "" || o.Only == "gateway" || o.Only == "unaided", "only %q", o.Only)
	for what, at := range map[string]time.Duration{"outage": o.OutageAt, "bulk": o.BulkAt, "kill": o.KillAt, "redial": o.RedialAt} {
		check(at >= 0 && at < o.Duration, "%s at %v: the peers send until %v", what, at, o.Duration)
	}
	check(o.OutageFor >= 0 && o.OutageAt+o.OutageFor <= o.Duration, "the outage ends after the peers stopped sending")
	check(!o.Asker || o.OutageFor > 0, "nobody can ask during an outage without an outage")
	check(o.Silent >= 0 && o.Silent <= o.Ships && (o.Silent == 0 || o.Deaf == "" && o.Only != "unaided"), "%d silent ships of %d: with gateways, and none of them deaf", o.Silent, o.Ships)
	check(o.Silent == 0 || o.SilentFor > 5*silenceSettles && o.SilentAt+o.SilentFor < o.Duration, "silence of %v at %v: more than %v, and over before %v",
		o.SilentFor, o.SilentAt, 5*silenceSettles, o.Duration)
	check(o.Deaf == "" || o.Ships > 1 && slices.Contains(o.siteNames()[2:], o.Deaf), "deaf %q: one of several ships, not the first", o.Deaf)
	check(o.Kill == "" || slices.Contains(o.siteNames(), o.Kill), "kill %q: there are %s", o.Kill, strings.Join(o.siteNames(), ", "))
	var err error
	o.up, err = measured(o.Up)
	check(err == nil, "measured-up: %v", err)
	o.down, err = measured(o.Down)
	check(err == nil, "measured-down: %v", err)
	check(o.Up == "" || !p.Shared, "measured-up: on a channel what a frame meets is met where it is heard: measured-down")
	return bad
}

// other says whether the game is without JXTA peers.
func (o *Options) other() bool { return o.Peers == KindTAK || o.Peers == KindXMPP }

// checkOther reports the options that games with TAK devices and XMPP clients do not have.
func (o *Options) checkOther(check func(ok bool, format string, args ...any)) {
	check(o.Devices >= 1 && o.Devices <= 100, "%d devices of a site: 1 to 100", o.Devices)
	for what, asked := range map[string]bool{"http": o.HTTP, "shapes": o.Shapes != ShapesTracks, "ship-peers": o.ShipPeer != o.Peers, "bulk": o.Bulk > 0, "asker": o.Asker, "deaf": o.Deaf != "",
		"silent (hf-net: say --silent 0)": o.Silent > 0, "redial": o.RedialAt > 0} {
		check(!asked, "%s: not with --peers %s", what, o.Peers)
	}
}

func readProfile(path string) ([]byte, error) { return infile.Read(path, 1<<20) }

// measured reads the results of a real link; "": there are none.
func measured(file string) (m linkemu.Measured, err error) {
	if file == "" {
		return nil, nil
	}
	f, err := infile.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if m, err = linkemu.ReadMeasured(f); err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return m, err
}

// siteNames are HQ and the ships, in the order of their node ids.
func (o *Options) siteNames() []string {
	names := []string{"hq"}
	if o.Ships == 1 {
		return append(names, "ship")
	}
	for i := range o.Ships {
		names = append(names, fmt.Sprintf("ship%d", i+1))
	}
	return names
}

// FindPeers looks for field-tests/peers upwards from the working directory and from the binary.
func FindPeers(kind string) (string, error) {
	jar := filepath.Join(strings.TrimSuffix(kind, "-unsigned"), "target", "peer.jar")
	if found := findUp("field-tests", "peers", jar); found != "" {
		return strings.TrimSuffix(found, string(filepath.Separator)+jar), nil
	}
	return "", fmt.Errorf("lab: the JXTA peers are not built: no field-tests/peers/%s above %s; run make -C field-tests/peers, or say where with --peers-dir", jar, strings.Join(startingPoints(), " or "))
}

// findUp is the path of a file of the source tree, above the working directory or the binary; "": there is none.
func findUp(names ...string) string {
	for _, dir := range startingPoints() {
		for ; ; dir = filepath.Dir(dir) {
			file := filepath.Join(append([]string{dir}, names...)...)
			if _, err := os.Stat(file); err == nil {
				return file
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return ""
}

// startingPoints are the directories from which to look upwards for files of the source tree.
func startingPoints() (starts []string) {
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	return starts
}
