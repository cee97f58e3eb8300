package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"os/user"
	"path/filepath"
	"strconv"

	"aldis/internal/edge/keyfile"
	"aldis/internal/link/profile"
)

// Control is where orders come in: a unix socket.
type Control struct {
	Socket string
	Group  string // its members may give orders; "": only root and the gateway's own user may
	GID    int    // of Group; -1: none
}

const (
	defaultSocket = "control.sock" // in node.data_dir
	maxSocket     = 107            // octets of a unix socket's path
)

// readOrders reads who may give orders, on the socket and over HTTP.
func (r *reader) readOrders() {
	c, h := &r.cfg.Control, &r.cfg.HTTP
	s := r.fill("control")
	r.checkSocket(s)
	c.GID = -1
	if c.Group != "" {
		g, err := user.LookupGroup(c.Group)
		if err != nil {
			g, err = user.LookupGroupId(c.Group)
		}
		if err != nil {
			s.fail("group", "%q is no group of this machine", c.Group)
		} else {
			c.GID, _ = strconv.Atoi(g.Gid) // package user says that it is a number
		}
	}
	http := r.fill("http")
	if h.TokenFile != "" {
		var err error
		if h.Token, err = keyfile.LoadToken(h.TokenFile); err != nil {
			http.fail("token_file", "%v", err)
		}
	}
}

// checkSocket puts the socket into the data directory unless told otherwise.
func (r *reader) checkSocket(s section) {
	c := &r.cfg.Control
	if c.Socket == "" && r.cfg.Node.DataDir != "" {
		c.Socket = filepath.Join(r.cfg.Node.DataDir, defaultSocket)
	}
	if n := len(c.Socket); n > maxSocket {
		s.fail("socket", "%s has %d octets, a unix socket may have %d: set a shorter path", c.Socket, n, maxSocket)
	}
}

// asked reads the part of a configuration that a command needs: the asker may not be allowed to read the rest, above all the
// key.
func asked(file string, read func(r *reader)) (*Config, error) {
	data, err := readSmall(file)
	if err != nil {
		return &Config{}, &profile.FieldError{File: file, Problem: readProblem(err)}
	}
	r := newReader(file)
	r.tree = parse(data, func(int, string, string, ...any) {}) // gateway check reports the rest
	read(r)
	if len(r.faults) > 0 {
		return r.cfg, r.faults[0]
	}
	return r.cfg, nil
}

// ReadNode reads only [node] of a configuration: an operator may look after a journal while the rest has mistakes.
func ReadNode(file string) (Node, error) {
	c, err := asked(file, func(r *reader) { r.fill("node", "id", "name", "data_dir", "journal_key_file", "journal_passphrase") })
	return c.Node, err
}

// HTTPListen reads only http.listen of a configuration.
func HTTPListen(file string) (netip.AddrPort, error) {
	c, err := asked(file, func(r *reader) {
		if s := r.fill("http", "listen"); !s.has("listen") {
			s.missing("listen", "")
		}
	})
	return c.HTTP.Listen, err
}

// linksAsked reads some keys of each [[link]].
func linksAsked(file string, keys ...string) (links []Link, err error) {
	_, err = asked(file, func(r *reader) {
		tables := []*table{r.tree.tables["link"]}
		for _, t := range r.tree.links {
			tables = append(tables, t.table)
		}
		for _, t := range tables {
			var l Link
			section{r, t, "link", len(r.faults)}.fill(linkKeys(&l), keys...)
			l.ProfileName = r.profileOf(l.ProfileName)
			links = append(links, l)
		}
	})
	return links, err
}

// LinkProfile reads only which profile a [[link]] of a configuration has, for profile.Load; link "": the first.
func LinkProfile(file, link string) (name string, err error) {
	links, err := linksAsked(file, "name", "profile")
	if err != nil {
		return "", err
	}
	for _, l := range links {
		if link == "" || l.Name == link {
			return l.ProfileName, nil
		}
	}
	return "", fmt.Errorf("%s has no [[link]] with the name %q", file, link)
}

// ControlSocket reads only the path of the socket on which the gateway of a configuration takes orders.
func ControlSocket(file string) (string, error) {
	c, err := asked(file, func(r *reader) {
		s := r.fill("control", "socket")
		if !s.has("socket") {
			r.fill("node", "data_dir")
		}
		r.checkSocket(s)
	})
	return c.Control.Socket, err
}

// ModemSocket reads only the modem's socket of a [[link]]; name "": of the only link that has one.
func ModemSocket(file, name string) (string, error) {
	var found []string
	links, err := linksAsked(file, "name", "modem")
	for _, l := range links {
		if l.Modem != "" && (name == "" || name == l.Name) {
			found = append(found, l.Modem)
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(found) == 0 && name != "":
		return "", fmt.Errorf("%s has no [[link]] with the name %q and a socket in modem", file, name)
	case len(found) != 1:
		return "", fmt.Errorf("%s has %d [[link]] with a socket in modem: say the name of the one that is meant", file, len(found))
	}
	return found[0], nil
}

// Secrets are the files with keys that a configuration names, those in the directories of certificates too, and the data
// directory. The configuration may have mistakes elsewhere.
func Secrets(file string) (keys []string, dataDir string, err error) {
	c, err := asked(file, func(r *reader) {
		r.fill("link", "key_file", "node_key")
		r.fill("http", "token_file")
		r.fill("tak", "tls_keys", "server_keys")
		if r.tree.tables["xmpp"] != nil { // there it is required
			r.fill("xmpp", "secret_file", "tls_keys", "s2s_keys")
		}
		r.fill("node", "data_dir")
	})
	for _, file := range []string{c.Link.KeyFile, c.Link.Trust.NodeKeyFile, c.HTTP.TokenFile, c.XMPP.SecretFile} {
		if file != "" {
			keys = append(keys, file)
		}
	}
	for _, dir := range []string{c.TAK.Keys, c.TAK.ServerKeys, c.XMPP.Keys, c.XMPP.S2SKeys} {
		if dir != "" {
			keys = append(keys, keyfile.KeysIn(dir)...)
		}
	}
	return keys, c.Node.DataDir, err
}

// Traces says where the gateway sends OpenTelemetry traces of messages.
type Traces struct {
	OTLP string // URL of a collector; "": nowhere
}

// collector is the whole URL of a collector, given by address: a name would need a DNS query, perhaps over the link.
func collector(at string) (string, error) {
	u, err := url.Parse(at)
	if err == nil {
		_, err = netip.ParseAddrPort(u.Host)
	}
	if err != nil || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q is no URL of a collector: http://ADDRESS:PORT/v1/traces, by address and not by name", at)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}
