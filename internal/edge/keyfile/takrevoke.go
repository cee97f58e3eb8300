package keyfile

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// RevokeTAK revokes the certificate of a client that NewTAKKeys has made in a directory, which must have ca.key. Its serial
// number goes into revoked.pem, signed by the authority, and its files are set aside, so that the client can get a new one.
func RevokeTAK(dir, name string, now time.Time) error {
	if name != filepath.Base(name) || name == "." || name == "ca" || name == "server" {
		return fmt.Errorf("%q is no name of a client", name)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	text, err := readPEM(at(name + ".pem"))
	if err != nil {
		return err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("%s has no certificate", at(name+".pem"))
	}
	client, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	var made []string
	if _, err := os.Stat(at(caKey)); err != nil {
		return err
	}
	ca, private, err := authority(at(CACert), at(caKey), now, &made)
	if err != nil {
		return err
	}
	old, err := readRevoked(at(revokedList), ca)
	if err != nil {
		return err
	}
	list := x509.RevocationList{Number: big.NewInt(now.UnixMilli()), ThisUpdate: now.Add(-24 * time.Hour), NextUpdate: now.Add(takCertLife),
		RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: client.SerialNumber, RevocationTime: now}}}
	if old != nil {
		list.RevokedCertificateEntries = append(old.RevokedCertificateEntries, list.RevokedCertificateEntries...)
	}
	der, err := x509.CreateRevocationList(rand.Reader, &list, ca, private)
	if err != nil {
		return err
	}
	if err := Replace(at(revokedList), string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})), 0o644); err != nil {
		return err
	}
	aside := fmt.Sprintf("%s.revoked-%x", name, client.SerialNumber)
	return errors.Join(os.Rename(at(name+".pem"), at(aside+".pem")), os.Rename(at(name+".key"), at(aside+".key")))
}

// readRevoked reads an authority's list of revoked certificates; nil: there is none.
func readRevoked(file string, by *x509.Certificate) (*x509.RevocationList, error) {
	text, err := readPEM(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is no list of revoked certificates", file)
	}
	list, err := x509.ParseRevocationList(block.Bytes)
	if err == nil {
		err = list.CheckSignatureFrom(by)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}

// revoked is a list of revoked certificates that is read anew when its file changes. A file that cannot be read leaves it as it
// was.
type revoked struct {
	file string
	by   *x509.Certificate

	mu      sync.Mutex
	at      time.Time // of the file
	size    int64
	serials map[string]bool
}

// reload reads the list if its file has changed.
func (r *revoked) reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(r.file)
	if err != nil || info.ModTime().Equal(r.at) && info.Size() == r.size {
		return nil // no certificate was ever revoked, or the list is known
	}
	list, err := readRevoked(r.file, r.by)
	if err != nil || list == nil {
		return err
	}
	r.at, r.size, r.serials = info.ModTime(), info.Size(), map[string]bool{}
	for _, e := range list.RevokedCertificateEntries {
		r.serials[e.SerialNumber.String()] = true
	}
	return nil
}

// errRevoked says that a certificate was revoked.
var errRevoked = errors.New("the certificate was revoked")

// verify refuses a client with a revoked certificate, whether it connects or is connected.
func (r *revoked) verify(s tls.ConnectionState) error {
	_ = r.reload() // on an error the list before stays in force
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range s.PeerCertificates {
		if r.serials[c.SerialNumber.String()] {
			return fmt.Errorf("%w: %s", errRevoked, c.Subject.CommonName)
		}
	}
	return nil
}
