package tlslink

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"strconv"
	"time"
)

// Identity is this node as its peers see it, and says which peers it accepts.
type Identity struct {
	Self uint16
	// Key is the node's key, or KeyOfNetwork.
	Key ed25519.PrivateKey
	// Twin says that the other end may be this node itself, on another machine.
	Twin bool
	// Member says whether a key belongs to a node of the network. Any goroutine may call it.
	Member func(id uint16, key ed25519.PublicKey) bool
}

// KeyOfNetwork is the key shown by all nodes that share a secret of 32 octets.
func KeyOfNetwork(secret []byte) ed25519.PrivateKey {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("aldis tls key 1"))
	return ed25519.NewKeyFromSeed(h.Sum(nil))
}

var errStranger = errors.New("it has no key of this network")

// certificate is the certificate of a key; its name is the node's id. Its dates mean nothing: the clocks of ships are sometimes
// wrong, and only the key counts.
func (i *Identity) certificate() (tls.Certificate, error) {
	c := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: strconv.Itoa(int(i.Self))},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, i.Key.Public(), i.Key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: i.Key}, err
}

// peer is the node whose certificate the other end of a connection has shown; the handshake has proved that it has the key.
func (i *Identity) peer(s tls.ConnectionState) (uint16, ed25519.PublicKey, error) {
	if len(s.PeerCertificates) != 1 {
		return 0, nil, errStranger
	}
	c := s.PeerCertificates[0]
	key, ok := c.PublicKey.(ed25519.PublicKey)
	id, err := strconv.ParseUint(c.Subject.CommonName, 10, 16)
	if !ok || err != nil || id == 0 || !i.takes(uint16(id), key) {
		return 0, nil, errStranger
	}
	return uint16(id), key, nil
}

// takes says whether a key belongs to a node that may be the other end.
func (i *Identity) takes(id uint16, key ed25519.PublicKey) bool {
	if id == i.Self {
		return i.Twin && key.Equal(i.Key.Public())
	}
	return i.Member(id, key)
}

// Config is the TLS configuration of one end of a connection that is not a bearer's. Peer then returns the node that the other
// end has proved to be. want is the node that is called; 0: any.
func (i *Identity) Config(want uint16) (*tls.Config, error) {
	own, err := i.certificate()
	return i.config(own, want), err
}

// Peer is the node at the other end of a connection.
func (i *Identity) Peer(s tls.ConnectionState) (uint16, error) {
	id, _, err := i.peer(s)
	return id, err
}

// config is the TLS configuration of either end. want is the peer that is called; 0: any.
func (i *Identity) config(own tls.Certificate, want uint16) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own},
		ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
		CurvePreferences:   []tls.CurveID{tls.X25519}, // others cost 2 kB a connection, and the datagrams are sealed anyway
		InsecureSkipVerify: true,                      // no authority signs these certificates: VerifyConnection decides
		VerifyConnection: func(s tls.ConnectionState) error {
			id, _, err := i.peer(s)
			if err == nil && want != 0 && id != want {
				return errors.New("node " + strconv.Itoa(int(id)) + " answers in the place of node " + strconv.Itoa(int(want)))
			}
			return err
		},
	}
}
