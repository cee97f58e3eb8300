package keyfile

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"strings"
)

// PeerTLS configures a server for connections with other servers, in both directions: it shows the certificate of PairTLS, and
// RootCAs has the authority that signs the others' certificates. It checks no certificate: the caller does, with OfDomain.
func PeerTLS(dir string) (*tls.Config, error) {
	c, err := PairTLS(dir)
	if err != nil {
		return nil, err
	}
	if _, c.RootCAs, err = takAuthority(dir); err != nil {
		return nil, err
	}
	shown := c.GetCertificate
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return shown(nil) }
	c.ClientAuth, c.InsecureSkipVerify = tls.RequireAnyClientCert, true
	return c, nil
}

// OfDomain checks that one of roots has signed the first certificate, perhaps through those behind it, and that it names the domain, as
// dNSName or as id-on-xmppAddr (RFC 6120, 13.7.1.2). nil: all is well.
func OfDomain(shown []*x509.Certificate, roots *x509.CertPool, domain string) error {
	if len(shown) == 0 {
		return errors.New("no certificate was shown")
	}
	rest := x509.NewCertPool()
	for _, cert := range shown[1:] {
		rest.AddCert(cert)
	}
	if _, err := shown[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: rest, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return err
	}
	err := shown[0].VerifyHostname(domain)
	for _, name := range xmppAddrs(shown[0]) {
		if strings.EqualFold(name, domain) {
			return nil
		}
	}
	return err
}

var (
	oidNames    = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidXMPPAddr = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 8, 5}
)

// xmppAddrs are the names id-on-xmppAddr of a certificate, which package x509 leaves out.
func xmppAddrs(cert *x509.Certificate) (list []string) {
	for _, ext := range cert.Extensions {
		var names []asn1.RawValue
		if !ext.Id.Equal(oidNames) {
			continue
		}
		if _, err := asn1.Unmarshal(ext.Value, &names); err != nil {
			continue
		}
		for _, name := range names {
			var other struct {
				ID    asn1.ObjectIdentifier
				Value string `asn1:"explicit,tag:0,utf8"`
			}
			_, err := asn1.UnmarshalWithParams(name.FullBytes, &other, "tag:0")
			if err == nil && name.Class == asn1.ClassContextSpecific && other.ID.Equal(oidXMPPAddr) {
				list = append(list, other.Value)
			}
		}
	}
	return list
}
