package keyfile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"aldis/internal/edge/infile"
)

// Files of a directory of TAK certificates.
const (
	CACert, caKey         = "ca.pem", "ca.key"
	ServerCert, serverKey = "server.pem", "server.key"
	revokedList           = "revoked.pem"
	takCertLife           = 5 * 365 * 24 * time.Hour
)

// NewTAKKeys makes the missing files of a directory: an authority, a certificate of the server for a host (names or addresses,
// with commas between them), and one for each client. It returns the files that it made.
func NewTAKKeys(dir, host string, clients []string, now time.Time) (made []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	ca, caPrivate, err := authority(at(CACert), at(caKey), now, &made)
	if err != nil {
		return made, err
	}
	sign := func(name, cert, key string, usage []x509.ExtKeyUsage, hosts ...string) error {
		if _, err := os.Stat(cert); !errors.Is(err, fs.ErrNotExist) {
			return err // nil: the file is there
		}
		c := certificate(name, now)
		c.KeyUsage, c.ExtKeyUsage = x509.KeyUsageDigitalSignature, usage
		for _, h := range hosts {
			if ip := net.ParseIP(h); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, h)
			}
		}
		return writePair(c, ca, caPrivate, cert, key, &made)
	}
	if host != "" {
		hosts := strings.Split(host, ",")
		both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} // XMPP servers call each other, and ejabberd checks both usages
		if err := sign(hosts[0], at(ServerCert), at(serverKey), both, hosts...); err != nil {
			return made, err
		}
	}
	for _, name := range clients {
		if name != filepath.Base(name) || name == "." || name == "ca" || name == "server" {
			return made, fmt.Errorf("%q is no name for a client's files", name)
		}
		if err := sign(name, at(name+".pem"), at(name+".key"), []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}); err != nil {
			return made, err
		}
	}
	return made, nil
}

// certificate is a certificate that is not signed yet.
func certificate(name string, now time.Time) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic("config: " + err.Error()) // no randomness: nothing can go on
	}
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: []string{"Aldis"}},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(takCertLife)}
}

func authority(cert, key string, now time.Time, made *[]string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	if _, err := os.Stat(cert); errors.Is(err, fs.ErrNotExist) {
		c := certificate("Aldis TAK authority", now)
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
		if err := writePair(c, nil, nil, cert, key, made); err != nil {
			return nil, nil, err
		}
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, nil, err
	}
	private, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("%s was not made by gateway keys tak", key)
	}
	return pair.Leaf, private, nil
}

// writePair signs a certificate, with its own key if ca is nil, and writes it and its key.
func writePair(c, ca *x509.Certificate, caPrivate *ecdsa.PrivateKey, cert, key string, made *[]string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if ca == nil {
		ca, caPrivate = c, private
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca, &private.PublicKey, caPrivate)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	if err := WriteNew(key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})), 0o600); err != nil {
		return err
	}
	*made = append(*made, key, cert)
	return WriteNew(cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), 0o644)
}

// ServerTLS configures a server that accepts only clients with a certificate of the directory's authority that is not revoked.
func ServerTLS(dir string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, ServerCert), filepath.Join(dir, serverKey))
	if err != nil {
		return nil, err
	}
	ca, pool, err := takAuthority(dir)
	if err != nil {
		return nil, err
	}
	list := &revoked{file: filepath.Join(dir, revokedList), by: ca}
	if err := list.reload(); err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates:     []tls.Certificate{pair},
		ClientCAs:        pool,
		ClientAuth:       tls.RequireAndVerifyClientCert,
		MinVersion:       tls.VersionTLS12,
		VerifyConnection: list.verify,
	}, nil
}

// PairTLS configures a server whose clients prove their identity in another way. Each new client gets the certificate that is in
// the directory at that time; if it cannot be read, the one before.
func PairTLS(dir string) (*tls.Config, error) {
	cert := filepath.Join(dir, ServerCert)
	load := func() (*tls.Certificate, time.Time, error) {
		info, err := os.Stat(cert)
		if err != nil {
			return nil, time.Time{}, err
		}
		pair, err := tls.LoadX509KeyPair(cert, filepath.Join(dir, serverKey))
		return &pair, info.ModTime(), err
	}
	pair, at, err := load()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		if info, err := os.Stat(cert); err == nil && !info.ModTime().Equal(at) {
			if next, of, err := load(); err == nil {
				pair, at = next, of
			}
		}
		return pair, nil
	}}, nil
}

func readPEM(file string) ([]byte, error) { return infile.Read(file, 1<<20) }

// takAuthority reads ca.pem of a directory: the first certificate, and a pool of all.
func takAuthority(dir string) (*x509.Certificate, *x509.CertPool, error) {
	name := filepath.Join(dir, CACert)
	text, err := readPEM(name)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	block, _ := pem.Decode(text)
	if block == nil || !pool.AppendCertsFromPEM(text) {
		return nil, nil, fmt.Errorf("%s has no certificate", name)
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return ca, pool, nil
}

// ClientTLS configures a client of a server whose certificate an authority has signed: the directory has ca.pem, and client.pem
// with client.key if the server demands one. name is the name in the server's certificate; "": any.
func ClientTLS(dir, name string) (*tls.Config, error) {
	_, pool, err := takAuthority(dir)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} // the usual check wants names that TAK servers' certificates lack
	c.VerifyConnection = func(s tls.ConnectionState) error {
		rest := x509.NewCertPool()
		for _, cert := range s.PeerCertificates[1:] {
			rest.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
			Roots:         pool,
			Intermediates: rest,
			DNSName:       name,
			KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		return err
	}
	cert := filepath.Join(dir, "client.pem")
	pair, err := tls.LoadX509KeyPair(cert, filepath.Join(dir, "client.key"))
	switch {
	case err == nil:
		c.Certificates = []tls.Certificate{pair}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return c, nil
}
