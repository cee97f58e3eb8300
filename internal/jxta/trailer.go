package jxta

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"fmt"
	"math/big"
)

// Trailer is the CBJX trailer that JXSE 2.7 appends to a message (wire 2.5). The fields alias the packet.
type Trailer struct {
	Cert   []byte // DER X.509
	Source string // URN of the sending hop, or "jxtatls://..."
	Sig    []byte // SHA256withRSA, PKCS #1 v1.5, over message || Cert || Source
}

const (
	maxCert       = 16 << 10 // octets; those of JXSE have 514 to 522
	maxModulusLen = 4096     // bits; bounds the time of one verification
)

// AppendTrailer appends t in wire form.
func AppendTrailer(b []byte, t Trailer) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(t.Cert)))
	b = append(b, t.Cert...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(t.Source)))
	b = append(b, t.Source...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(t.Sig)))
	return append(b, t.Sig...)
}

// ParseTrailer reads the octets that ParseMessage left over; nothing may follow the trailer.
func ParseTrailer(b []byte) (Trailer, error) {
	cert, b, err := block(b, "certLen", maxCert)
	if err != nil {
		return Trailer{}, err
	}
	src, b, err := block(b, "srcLen", maxAddress)
	if err != nil {
		return Trailer{}, err
	}
	sig, b, err := block(b, "sigLen", maxModulusLen/8)
	if err != nil {
		return Trailer{}, err
	}
	if len(b) != 0 {
		return Trailer{}, fail("trailer", "end", ErrTooLong)
	}
	return Trailer{cert, string(src), sig}, nil
}

func block(b []byte, field string, limit uint32) (head, tail []byte, err error) {
	if len(b) < 4 {
		return nil, nil, fail("trailer", field, ErrShort)
	}
	n := binary.BigEndian.Uint32(b)
	if n > limit {
		return nil, nil, fail("trailer", field, ErrTooLong)
	}
	b = b[4:]
	if int(n) > len(b) {
		return nil, nil, fail("trailer", field, ErrShort)
	}
	return b[:n:n], b[n:], nil
}

// SignMessage appends its trailer to message, a whole serialised message. The claimed source is not bound to the
// key (wire 0.2), so a gateway signs for ghosts with its own key.
func SignMessage(message []byte, key *rsa.PrivateKey, cert []byte, source string) ([]byte, error) {
	h := sha256.New()
	h.Write(message)
	h.Write(cert)
	h.Write([]byte(source))
	sig, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, h.Sum(nil))
	if err != nil {
		return message, fmt.Errorf("jxta: sign message: %w", err)
	}
	return AppendTrailer(message, Trailer{cert, source, sig}), nil
}

// Verify checks the trailer's signature over message with the key in the enclosed certificate. The certificate
// itself proves nothing: it is self-signed.
func (t Trailer) Verify(message []byte) error {
	_, err := new(Verifier).Verify(t, message)
	return err
}

// Verifier remembers the key of the last certificate: a peer signs everything with the same key.
type Verifier struct {
	cert  []byte
	key   *rsa.PublicKey
	maker string
}

// Verify is Trailer.Verify. It returns the peer id that the certificate makes (CertPeer).
func (v *Verifier) Verify(t Trailer, message []byte) (maker string, err error) {
	if v.key == nil || !bytes.Equal(t.Cert, v.cert) {
		key, err := trailerKey(t.Cert)
		if err != nil {
			return "", err
		}
		maker, err := CertPeer(t.Cert)
		if err != nil {
			return "", err
		}
		v.cert, v.key, v.maker = bytes.Clone(t.Cert), key, maker
	}
	h := sha256.New()
	h.Write(message)
	h.Write(t.Cert)
	h.Write([]byte(t.Source))
	if err := rsa.VerifyPKCS1v15(v.key, crypto.SHA256, h.Sum(nil), t.Sig); err != nil {
		return "", fmt.Errorf("jxta: trailer: signature: %w", err)
	}
	return v.maker, nil
}

func trailerKey(cert []byte) (*rsa.PublicKey, error) {
	spki, err := certKey(cert)
	if err != nil {
		return nil, err
	}
	pub, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		return nil, fmt.Errorf("jxta: trailer: key: %w", err)
	}
	key, ok := pub.(*rsa.PublicKey)
	if !ok || key.N.BitLen() > maxModulusLen {
		return nil, fail("trailer", "key", ErrMismatch)
	}
	return key, nil
}

// TrailerRoom is about the size of a trailer of a gateway or peer, in octets.
const TrailerRoom = 1024

// CertPeer is the peer id that belongs to a certificate: the first 16 octets of SHA-1 over its public key, in the
// world group (wire 1.3).
func CertPeer(cert []byte) (string, error) {
	spki, err := certKey(cert)
	if err != nil {
		return "", err
	}
	sum := sha1.Sum(spki)
	return IDParts{CBID: true, Kind: KindPeer, Group: WorldUUID, UUID: [16]byte(sum[:16])}.Unique(), nil
}

// certKey returns the DER SubjectPublicKeyInfo. Package x509 refuses certificates that old Java made (negative serial
// numbers, odd names), and only the key matters here.
func certKey(cert []byte) ([]byte, error) {
	var c struct {
		TBS struct {
			Version    int `asn1:"optional,explicit,default:0,tag:0"`
			Serial     *big.Int
			Algorithm  asn1.RawValue
			Issuer     asn1.RawValue
			Validity   asn1.RawValue
			Subject    asn1.RawValue
			PublicKey  asn1.RawValue
			Extensions asn1.RawValue `asn1:"optional,explicit,tag:3"`
		}
		Algorithm asn1.RawValue
		Signature asn1.BitString
	}
	if len(cert) > maxCert {
		return nil, fail("trailer", "certificate", ErrTooLong)
	}
	if _, err := asn1.Unmarshal(cert, &c); err != nil {
		return nil, fmt.Errorf("jxta: trailer: certificate: %w", err)
	}
	return c.TBS.PublicKey.FullBytes, nil
}
