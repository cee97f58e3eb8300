package jxtabridge

import (
	"bytes"
	"cmp"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/rules/filter"
)

// Config of one bridge. Zero values of the bounds mean the defaults.
type Config struct {
	Name    string // of the gateway, shown to peers
	Address string // "ip:port" where peers dial over TCP; put in every route. Empty: not served
	HTTP    string // the same over HTTP; at least one of both is set
	// Multicast is the group and port, "ip:port", where peers that have no lease are heard and answered. Empty: off
	Multicast string
	Identity  Identity
	// Beside are the IPs of the site's other machines, which pass connections on: a peer that signs may have connections by each.
	Beside []string

	// SignLater leaves signing to the LAN room that carries out Send: it takes longer than all other work on a message. The
	// room also joins the parts of a body that is not signed.
	SignLater bool

	Lease      time.Duration // rendezvous lease; default 20 min, as JXTA's own (ghosts 10: 2.2 hates short ones)
	RelayLease time.Duration // longest that a relay client gets; default 1 h
	Hold       time.Duration // how long a propagate pipe's message waits for news of a listener; default 15 s
	Wait       time.Duration // how long a far message waits for a peer that is away, if no rule says otherwise; default 24 h
	Question   time.Duration // how long an unanswered question is remembered; default 10 min
	Linger     time.Duration // how long a message not in custody waits for a peer that is re-dialling; default 60 s
	// Filter is the operator's rules, which the gateway has, too; nil: none.
	Filter   *filter.Filter
	Site     uint16        // number of this site; 0: views of far sites that are for one site alone are not understood
	View     View          // of other sites on local peers if no rule fits; default Complete
	Views    []ViewRule    // the first that fits decides
	Ask      time.Duration // how long far sites keep a question of a peer here; default 1 h
	AskAfter time.Duration // how long an answer may come by itself before they get the question; default 4 s (gateway.AskAfter knows the link)
	// Pace is the least distance of two far payloads to one peer, default 10 ms. JXSE 2.7 hands each message to another
	// thread, so that the second of two messages that come together may overtake the first: seen with every other pair of a
	// backlog at no distance, with one of 100 at 2 ms, and on a busy machine with one of 120 at 10 ms: so a backlog
	// that is soon over keeps fifteenfold distance.
	Pace time.Duration

	MaxPeers        int // peers with a lease or a connection; default 4096
	MaxAway         int // of these, peers at one address that have a lease and no connection; default 64
	MaxPipes        int // open pipes of one peer; default 1024
	MaxGroups       int // groups of one peer; default 64
	MaxAdverts      int // advertisements; default 131,072
	MaxAdvertOctets int // of these in memory, indexes included; default 192 MiB
	MaxQuestions    int // remembered questions; default 2048, of one peer an eighth of it, of one host half
	MaxHeld         int // messages held; default 1024
	MaxHeldOctets   int // default 8 MiB
	MaxQueue        int // messages waiting for one peer; default 16,384
	MaxQueueOctets  int // default 32 MiB
	// Octets of far messages that wait for peers without a lease, or without the pipe: of all, default 64 MiB, and of one,
	// default a quarter of that.
	MaxAwayOctets, MaxAwayOctetsOfPeer int

	Window      int // octets handed to a connection and not written yet; default 512 KiB
	MaxFarItems int // items of one far site; default 65,536
	MaxAsks     int // questions to far sites, and from one far site; default 256, of one peer an eighth of it, of one host half
	MaxStreams  int // BiDi pipes and sockets to far peers; default 1024, of one peer a quarter of it, of one host half
	// Octets and blocks of one stream that may be under way to the far site before its sender has to wait; the sender's own window, up
	// to 50 blocks, may come on top. As many octets may wait for a missing block.
	StreamOctets int // default 256 KiB
	StreamBlocks int // default 100
}

func (c Config) withDefaults() Config {
	c.Lease = cmp.Or(c.Lease, 20*time.Minute)
	c.RelayLease = cmp.Or(c.RelayLease, time.Hour)
	c.Hold = cmp.Or(c.Hold, 15*time.Second)
	c.Wait = cmp.Or(c.Wait, 24*time.Hour)
	c.Question = cmp.Or(c.Question, 10*time.Minute)
	c.Linger = cmp.Or(c.Linger, time.Minute)
	c.View = cmp.Or(c.View, Complete)
	c.Ask = cmp.Or(c.Ask, time.Hour)
	c.AskAfter = cmp.Or(c.AskAfter, 4*time.Second)
	c.Pace = cmp.Or(c.Pace, 10*time.Millisecond)
	c.MaxPeers = cmp.Or(c.MaxPeers, 4096)
	c.MaxAway = cmp.Or(c.MaxAway, 64)
	c.MaxPipes = cmp.Or(c.MaxPipes, 1024)
	c.MaxGroups = cmp.Or(c.MaxGroups, 64)
	c.MaxAdverts = cmp.Or(c.MaxAdverts, 131072)
	c.MaxAdvertOctets = cmp.Or(c.MaxAdvertOctets, 192<<20)
	c.MaxQuestions = cmp.Or(c.MaxQuestions, 2048)
	c.MaxHeld = cmp.Or(c.MaxHeld, 1024)
	c.MaxHeldOctets = cmp.Or(c.MaxHeldOctets, 8<<20)
	c.MaxQueue = cmp.Or(c.MaxQueue, 16384)
	c.MaxQueueOctets = cmp.Or(c.MaxQueueOctets, 32<<20)
	c.MaxAwayOctets = cmp.Or(c.MaxAwayOctets, 64<<20)
	c.MaxAwayOctetsOfPeer = cmp.Or(c.MaxAwayOctetsOfPeer, c.MaxAwayOctets/4)
	c.Window = cmp.Or(c.Window, 512<<10)
	c.MaxFarItems = cmp.Or(c.MaxFarItems, 65536)
	c.MaxAsks = cmp.Or(c.MaxAsks, 256)
	c.MaxStreams = cmp.Or(c.MaxStreams, 1024)
	c.StreamOctets = cmp.Or(c.StreamOctets, 256<<10)
	c.StreamBlocks = cmp.Or(c.StreamBlocks, 100)
	return c
}

// Identity is the identity of the gateway for its peers. It has to stay the same across restarts (ghosts 2).
type Identity struct {
	Peer string // unique value, format uuid
	Key  *rsa.PrivateKey
	Cert []byte // DER, self-signed
}

const keyBits = 1024 // as JXSE itself; 742 octets of trailer (wire 2.5)

// NewIdentity makes an Identity. Its key is as strong as the keys of the network: receivers check self-consistency only.
func NewIdentity(random io.Reader) (Identity, error) {
	peer, err := jxta.NewID(jxta.KindPeer, jxta.WorldUUID, random)
	if err != nil {
		return Identity{}, err
	}
	key, err := rsa.GenerateKey(random, keyBits)
	if err != nil {
		return Identity{}, fmt.Errorf("jxtabridge: identity: %w", err)
	}
	var serial [8]byte
	if _, err := io.ReadFull(random, serial[:]); err != nil {
		return Identity{}, fmt.Errorf("jxtabridge: identity: %w", err)
	}
	serial[0] &= 0x7f
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial[:]),
		Subject:      pkix.Name{Organization: []string{"aldis"}, CommonName: peer[len(peer)-8:]},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	cert, err := x509.CreateCertificate(random, template, template, &key.PublicKey, key)
	if err != nil {
		return Identity{}, fmt.Errorf("jxtabridge: identity: %w", err)
	}
	return Identity{peer, key, cert}, nil
}

const (
	pemKey  = "RSA PRIVATE KEY"
	pemCert = "CERTIFICATE"
	pemPeer = "JXTA-Peer"
)

// Marshal writes the identity for a file: PEM, key first with the peer id as a header, then the certificate.
func (id Identity) Marshal() []byte {
	var b bytes.Buffer
	pem.Encode(&b, &pem.Block{Type: pemKey, Headers: map[string]string{pemPeer: id.Peer}, Bytes: x509.MarshalPKCS1PrivateKey(id.Key)})
	pem.Encode(&b, &pem.Block{Type: pemCert, Bytes: id.Cert})
	return b.Bytes()
}

// ParseIdentity reads an identity that Marshal wrote.
func ParseIdentity(b []byte) (Identity, error) {
	k, rest := pem.Decode(b)
	if k == nil || k.Type != pemKey {
		return Identity{}, fmt.Errorf("jxtabridge: identity: no %s block", pemKey)
	}
	c, _ := pem.Decode(rest)
	if c == nil || c.Type != pemCert {
		return Identity{}, fmt.Errorf("jxtabridge: identity: no %s block", pemCert)
	}
	key, err := x509.ParsePKCS1PrivateKey(k.Bytes)
	if err != nil {
		return Identity{}, fmt.Errorf("jxtabridge: identity: %w", err)
	}
	peer, err := jxta.Normalize(k.Headers[pemPeer])
	if err != nil {
		return Identity{}, fmt.Errorf("jxtabridge: identity: %w", err)
	}
	return Identity{peer, key, c.Bytes}, nil
}
