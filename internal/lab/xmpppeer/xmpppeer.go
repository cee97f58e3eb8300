// Package xmpppeer is a minimal XMPP client for tests: it logs in over TLS, and then sends what the test wants, right or wrong.
package xmpppeer

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/xdg-go/scram"
)

const patience = 10 * time.Second // for each part of a login

// Peer is a client that has logged in, and is available.
type Peer struct {
	*tls.Conn
	in *bufio.Reader
}

// Until reads up to and including a text.
func (c *Peer) Until(text string) (string, error) {
	var got strings.Builder
	for !strings.HasSuffix(got.String(), text) {
		b, err := c.in.ReadByte()
		if err != nil {
			return "", fmt.Errorf("after %.300q: %w", got.String(), err)
		}
		got.WriteByte(b)
	}
	return got.String(), nil
}

// Login logs a user in, from an address of this machine.
func Login(at, from, host, user, password string) (*Peer, error) {
	d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	sock, err := d.Dial("tcp", at)
	if err != nil {
		return nil, err
	}
	sock.SetDeadline(time.Now().Add(2 * patience))
	plain := &Peer{in: bufio.NewReaderSize(sock, 1)}
	header := fmt.Sprintf("<?xml version='1.0'?><stream:stream to='%s' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>", host)
	fmt.Fprint(sock, header)
	if _, err := plain.Until("</stream:features>"); err != nil {
		return nil, err
	}
	fmt.Fprint(sock, "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
	if _, err := plain.Until("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"); err != nil {
		return nil, err
	}
	t := tls.Client(sock, &tls.Config{InsecureSkipVerify: true})
	c := &Peer{t, bufio.NewReaderSize(t, 512)}
	fmt.Fprint(c, header)
	if _, err := c.Until("</stream:features>"); err != nil {
		return nil, err
	}
	client, err := scram.SHA256.NewClient(user, password, "")
	if err != nil {
		return nil, err
	}
	conv, name, asked := client.NewConversation(), "auth", ""
	for !strings.Contains(asked, "<success") {
		_, inside, _ := strings.Cut(asked, ">")
		inside, _, _ = strings.Cut(inside, "<")
		text, _ := base64.StdEncoding.DecodeString(inside)
		said, err := conv.Step(string(text))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(c, "<%s xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='SCRAM-SHA-256'>%s</%s>", name, base64.StdEncoding.EncodeToString([]byte(said)), name)
		name = "response"
		if asked, err = c.Until(">"); err == nil {
			var rest string
			rest, err = c.Until(">")
			asked += rest
		}
		if err != nil {
			return nil, err
		}
	}
	fmt.Fprint(c, header)
	if _, err := c.Until("</stream:features>"); err != nil {
		return nil, err
	}
	fmt.Fprint(c, "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq><presence/>")
	sock.SetDeadline(time.Time{})
	return c, nil
}
