package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"aldis/internal/link/profile"
)

// Change is one difference between two configurations.
type Change struct {
	Key  string `json:"key"`            // as in the file: link.listen, [[filter]]
	From string `json:"from,omitempty"` // "": it was not there, or it is secret
	To   string `json:"to,omitempty"`
	// Restart says that a running gateway cannot take it: it counts from the next start.
	Restart bool `json:"restart,omitempty"`
	// Effect is what comes of it at once, besides that it counts.
	Effect string `json:"effect,omitempty"`
}

// String is the change as a line for people.
func (c Change) String() string {
	if c.Effect != "" {
		return c.difference() + "; " + c.Effect
	}
	return c.difference()
}

func (c Change) difference() string {
	switch {
	case c.From == "" && c.To == "":
		return c.Key + ": changed"
	case c.From == "":
		return fmt.Sprintf("%s: %s is new", c.Key, c.To)
	case c.To == "":
		return fmt.Sprintf("%s: %s is gone", c.Key, c.From)
	}
	return fmt.Sprintf("%s: %s, was %s", c.Key, c.To, c.From)
}

// Changes lists what differs in next, in the order of the keys in docs/configure.md. The file's own path is no difference.
func (c *Config) Changes(next *Config) (list []Change) {
	value := func(key string, restart bool, from, to any) {
		if !reflect.DeepEqual(from, to) {
			list = append(list, Change{Key: key, From: plain(from), To: plain(to), Restart: restart})
		}
	}
	hidden := func(key string, restart bool, from, to any) {
		if !reflect.DeepEqual(from, to) {
			list = append(list, Change{Key: key, Restart: restart})
		}
	}
	value("node.id", true, c.Node.ID, next.Node.ID)
	value("node.name", true, c.Node.Name, next.Node.Name)
	value("node.data_dir", true, c.Node.DataDir, next.Node.DataDir)
	value("node.journal_key_file", true, c.Node.Secret.File, next.Node.Secret.File)
	value("node.journal_passphrase", true, c.Node.Secret.Ask, next.Node.Secret.Ask)
	value("node.silent", true, c.Node.Silent, next.Node.Silent)
	value("lan.tcp", true, c.LAN.TCP, next.LAN.TCP)
	value("lan.http", true, c.LAN.HTTP, next.LAN.HTTP)
	value("lan.max_connections", true, c.LAN.MaxConnections, next.LAN.MaxConnections)
	value("lan.max_away_per_address", true, c.LAN.MaxAway, next.LAN.MaxAway)
	value("lan.multicast", true, c.LAN.Multicast, next.LAN.Multicast)
	list = append(list, takChanges(c.TAK, next.TAK)...)
	value("link.profile", true, c.Link.ProfileName, next.Link.ProfileName)
	if c.Link.ProfileName == next.Link.ProfileName {
		value("link.profile (its tariff)", false, c.Link.Profile.Tariff, next.Link.Profile.Tariff)
		same := next.Link.Profile
		same.Tariff, same.Summary = c.Link.Profile.Tariff, c.Link.Profile.Summary
		hidden("link.profile (its file)", true, c.Link.Profile, same)
	}
	value("link.listen", true, c.Link.Listen, next.Link.Listen)
	value("link.key_file", true, c.Link.KeyFile, next.Link.KeyFile)
	hidden("the key of link.key_file", true, c.Link.Key, next.Link.Key)
	was, is := c.Link.Trust, next.Link.Trust
	value("link.roster", true, was.RosterFile, is.RosterFile)
	value("link.node_key", true, was.NodeKeyFile, is.NodeKeyFile)
	hidden("the roster of link.roster", true, was.Roster, is.Roster)
	hidden("the key of link.node_key", true, was.Own, is.Own)
	hidden("link.authority", true, was.Authority, is.Authority)
	value("link.end", true, end(c.Link.Shore), end(next.Link.Shore))
	value("link.keepalive", false, c.Link.Keepalive, next.Link.Keepalive)
	value("link.group", true, c.Link.Group, next.Link.Group)
	value("link.group_interface", true, c.Link.GroupIface, next.Link.GroupIface)
	list = append(list, peerChanges(c.Link.Peers, next.Link.Peers, next.Link.Profile.Transport == profile.PMul)...)
	list = append(list, ruleChanges("[[silence]]", c.Silences, next.Silences)...)
	value("delivery.wait", true, c.Delivery.Wait, next.Delivery.Wait)
	value("delivery.max_octets", true, c.Delivery.MaxOctets, next.Delivery.MaxOctets)
	value("delivery.max_octets_per_peer", true, c.Delivery.MaxOctetsOfPeer, next.Delivery.MaxOctetsOfPeer)
	value("compact.corpus", true, c.Corpus.File, next.Corpus.File)
	if c.Corpus.File == next.Corpus.File {
		hidden("the corpus of compact.corpus", true, c.Corpus.CorpusFile, next.Corpus.CorpusFile)
	}
	hidden("compact.corpus_from", true, c.Corpus.From, next.Corpus.From)
	value("compact.corpus_refuse", true, c.Corpus.Refuse, next.Corpus.Refuse)
	list = append(list, ruleChanges("[[compact.rule]]", c.Rules, next.Rules)...)
	list = append(list, ruleChanges("[[filter]]", c.Filters, next.Filters)...)
	list = append(list, ruleChanges("[[message]]", c.Messages, next.Messages)...)
	value("http.listen", true, c.HTTP.Listen, next.HTTP.Listen)
	value("http.names", false, c.HTTP.Names, next.HTTP.Names)
	value("http.token_file", false, c.HTTP.TokenFile, next.HTTP.TokenFile)
	hidden("the token of http.token_file", false, c.HTTP.Token, next.HTTP.Token)
	value("traces.otlp", true, c.Traces.OTLP, next.Traces.OTLP)
	value("control.socket", true, c.Control.Socket, next.Control.Socket)
	value("control.group", true, c.Control.Group, next.Control.Group)
	if c.Control.Group == next.Control.Group {
		value("the number of control.group", true, c.Control.GID, next.Control.GID)
	}
	value("log.level", false, c.Log.Level, next.Log.Level)
	value("log.format", true, c.Log.Format, next.Log.Format)
	return list
}

// takChanges are those of [tak]; its rules count from the next start too.
func takChanges(old, next TAK) (list []Change) {
	value := func(key string, from, to any) {
		if !reflect.DeepEqual(from, to) {
			list = append(list, Change{Key: key, From: plain(from), To: plain(to), Restart: true})
		}
	}
	value("tak.listen", old.Listen, next.Listen)
	value("tak.tls", old.TLS, next.TLS)
	value("tak.tls_keys", old.Keys, next.Keys)
	value("tak.server", old.Server, next.Server)
	value("tak.server_keys", old.ServerKeys, next.ServerKeys)
	value("tak.server_name", old.ServerName, next.ServerName)
	value("tak.mesh", old.Mesh, next.Mesh)
	value("tak.mesh_group", old.Events, next.Events)
	value("tak.mesh_chat_group", old.Chats, next.Chats)
	value("tak.mesh_unicast", old.Unicast, next.Unicast)
	value("tak.files", old.Files.Listen, next.Files.Listen)
	value("tak.files_tls", old.Files.TLS, next.Files.TLS)
	value("tak.max_file", old.Files.MostFile, next.Files.MostFile)
	value("tak.max_files", old.Files.Most, next.Files.Most)
	value("tak.max_crossing", old.Files.Crossing, next.Files.Crossing)
	value("tak.file_life", old.Files.Life, next.Files.Life)
	value("tak.max_connections", old.Conns, next.Conns)
	value("tak.max_units", old.Units, next.Units)
	value("tak.bound", old.Bound, next.Bound)
	value("tak.age", old.Age, next.Age)
	value("tak.gather", old.Gather, next.Gather)
	value("tak.gap", old.Gap, next.Gap)
	value("tak.cadence", old.Cadence, next.Cadence)
	rules := append(ruleChanges("[[tak.rule]]", old.Rules, next.Rules), ruleChanges("[[tak.want]]", old.Wants, next.Wants)...)
	rules = append(rules, ruleChanges("[[tak.bring]]", old.Files.Bring, next.Files.Bring)...)
	for _, c := range append(rules, ruleChanges("[[meet]]", old.Meets, next.Meets)...) {
		c.Restart = true
		list = append(list, c)
	}
	return list
}

func end(shore bool) string {
	if shore {
		return "shore"
	}
	return "terminal"
}

// plain is a value for people; the zero value is "".
func plain(v any) string {
	switch v := v.(type) {
	case bool:
		return fmt.Sprint(v)
	case []string:
		return strings.Join(v, ", ")
	case time.Duration:
		return v.String()
	}
	if reflect.ValueOf(v).IsZero() {
		return ""
	}
	return fmt.Sprint(v)
}

// PeerKey is the Key of the Change of a peer.
func PeerKey(id uint16) string { return fmt.Sprintf("[[link.peer]] %d", id) }

// peerChanges names each [[link.peer]] that came, went or is another. Their order says nothing. On a shared channel
// one that comes and one that goes need a restart.
func peerChanges(old, next []Peer, shared bool) (list []Change) {
	with := func(peers []Peer, id uint16) string {
		i := slices.IndexFunc(peers, func(p Peer) bool { return p.ID == id })
		if i < 0 {
			return ""
		}
		address := "no address"
		if peers[i].Address.IsValid() {
			address = peers[i].Address.String()
		}
		return fmt.Sprintf("%q at %s", peers[i].Name, address)
	}
	var ids []uint16
	for _, p := range slices.Concat(old, next) {
		ids = append(ids, p.ID)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if from, to := with(old, id), with(next, id); from != to {
			list = append(list, Change{Key: PeerKey(id), From: from, To: to, Restart: shared && (to == "" || from == "")})
		}
	}
	return list
}

// ruleChanges says how many rules there are where one of them or their order differs. A rule is the same at another line.
func ruleChanges[R any](key string, old, next []R) []Change {
	same := slices.EqualFunc(old, next, func(a, b R) bool { return reflect.DeepEqual(lineless(a), lineless(b)) })
	if same {
		return nil
	}
	return []Change{{Key: key, From: rules(len(old)), To: rules(len(next))}}
}

func lineless[R any](r R) R {
	if line := reflect.ValueOf(&r).Elem().FieldByName("Line"); line.IsValid() {
		line.SetInt(0)
	}
	return r
}

func rules(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 rule"
	}
	return fmt.Sprintf("%d rules", n)
}
