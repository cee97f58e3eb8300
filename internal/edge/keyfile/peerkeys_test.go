package keyfile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// A certificate is valid for the domains in its dNSName and id-on-xmppAddr names, if its authority is known and it has not expired.
func TestCertificateOfDomain(t *testing.T) {
	c := check.Fatal(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.NoError(c, err)
	text, err := asn1.MarshalWithParams("ship.example", "utf8")
	check.NoError(c, err)
	other, err := asn1.MarshalWithParams(struct {
		ID    asn1.ObjectIdentifier
		Value asn1.RawValue
	}{oidXMPPAddr, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: text}}, "tag:0")
	check.NoError(c, err)
	dns := asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 2, Bytes: []byte("conference.ship.example")}
	dnsText, err := asn1.Marshal(dns)
	check.NoError(c, err)
	names, err := asn1.Marshal([]asn1.RawValue{{FullBytes: other}, {FullBytes: dnsText}})
	check.NoError(c, err)
	made := func(now time.Time, ext ...pkix.Extension) *x509.Certificate {
		cert := certificate("of a test", now)
		cert.IsCA, cert.BasicConstraintsValid, cert.ExtraExtensions = true, true, ext
		der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
		check.NoError(c, err)
		cert, err = x509.ParseCertificate(der)
		check.NoError(c, err)
		return cert
	}
	names1 := pkix.Extension{Id: oidNames, Value: names}
	good, old := made(time.Now(), names1), made(time.Now().Add(-2*takCertLife), names1)
	broken := made(time.Now(), pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3}, Value: []byte{0x30, 0x7f}})
	roots := x509.NewCertPool()
	for _, cert := range []*x509.Certificate{good, old, broken} {
		roots.AddCert(cert)
	}
	for _, row := range []struct {
		what   string
		shown  []*x509.Certificate
		roots  *x509.CertPool
		domain string
		is     bool
	}{
		{"id-on-xmppAddr", []*x509.Certificate{good}, roots, "ship.example", true},
		{"dNSName", []*x509.Certificate{good}, roots, "conference.ship.example", true},
		{"another domain", []*x509.Certificate{good}, roots, "hq.example", false},
		{"an unknown authority", []*x509.Certificate{good}, x509.NewCertPool(), "ship.example", false},
		{"an old one", []*x509.Certificate{old}, roots, "ship.example", false},
		{"one without names", []*x509.Certificate{broken}, roots, "ship.example", false},
		{"none", nil, roots, "ship.example", false},
	} {
		check.Equal(t, row.what, OfDomain(row.shown, row.roots, row.domain) == nil, row.is)
	}
}
