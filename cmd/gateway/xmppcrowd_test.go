package main

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdg-go/scram"

	"aldis/internal/lab/check"
)

// xmppRaw is a client of the gateway that says what a test wants.
type xmppRaw struct {
	*tls.Conn
	in *bufio.Reader
}

// until reads up to a text.
func (c *xmppRaw) until(text string) (string, error) {
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

// rawLogin logs a user in from an address of this machine.
func rawLogin(at, from, host, user string) (*xmppRaw, error) {
	d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	sock, err := d.Dial("tcp", at)
	if err != nil {
		return nil, err
	}
	sock.SetDeadline(time.Now().Add(2 * patience))
	plain := &xmppRaw{in: bufio.NewReaderSize(sock, 1)}
	header := fmt.Sprintf("<?xml version='1.0'?><stream:stream to='%s' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>", host)
	fmt.Fprint(sock, header)
	if _, err := plain.until("</stream:features>"); err != nil {
		return nil, err
	}
	fmt.Fprint(sock, "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
	if _, err := plain.until("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"); err != nil {
		return nil, err
	}
	t := tls.Client(sock, &tls.Config{InsecureSkipVerify: true})
	c := &xmppRaw{t, bufio.NewReaderSize(t, 512)}
	fmt.Fprint(c, header)
	if _, err := c.until("</stream:features>"); err != nil {
		return nil, err
	}
	client, err := scram.SHA256.NewClient(user, "secret", "")
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
		if asked, err = c.until(">"); err == nil {
			var rest string
			rest, err = c.until(">")
			asked += rest
		}
		if err != nil {
			return nil, err
		}
	}
	fmt.Fprint(c, header)
	if _, err := c.until("</stream:features>"); err != nil {
		return nil, err
	}
	fmt.Fprint(c, "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq><presence/>")
	_, err = c.until("</iq>")
	sock.SetDeadline(time.Time{})
	return c, err
}

// memory is what a process has in memory, in KiB.
func (r *running) memory(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	check.NoError(check.Fatal(t), err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fmt.Sscan(rest, &n)
	return n
}

// A thousand clients that say nothing take less than 64 MiB. One that says ten thousand stanzas as fast as it can takes no more than that
// again, and the lines of others take three times as long as alone at the most; one that speaks for others is put out.
func TestXMPPCrowd(t *testing.T) {
	air := newRelay(t, 2, false, 7, func(int, []int, []byte) {})
	ship := newSite(t, 2, "")
	ship.link = air.links[1].String()
	var users []string
	for i := range 64 {
		users = append(users, fmt.Sprint("u", i))
	}
	p := ship.writeXMPPServer(t, "ship.example", users, "", "1 "+air.address(1, 0))
	r := ship.start(t)
	before := r.memory(t)
	const clients = 1000
	var wait sync.WaitGroup
	all, failed := make([]*xmppRaw, clients), make(chan error, clients)
	for worker := range 8 {
		wait.Go(func() {
			for i := worker; i < clients; i += 8 {
				c, err := rawLogin(p.c2s, fmt.Sprintf("127.0.0.%d", 2+i%8), p.host, users[i%len(users)])
				if err != nil {
					failed <- fmt.Errorf("client %d: %w", i, err)
					return
				}
				all[i] = c
			}
		})
	}
	wait.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	taken := r.memory(t) - before
	t.Logf("%d clients take %d KiB", clients, taken)
	if taken > 64<<10 {
		t.Errorf("%d idle clients take %d KiB, more than 64 MiB", clients, taken)
	}

	anna, alma := all[0], all[1]
	n := 0
	median := func() time.Duration {
		var took []time.Duration
		for range 31 {
			n++
			text := fmt.Sprintf("line %d.", n)
			start := time.Now()
			fmt.Fprintf(anna, "<message to='u1@ship.example' type='chat'><body>%s</body></message>", text)
			alma.SetReadDeadline(start.Add(patience))
			if _, err := alma.until(text); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	alone := median()
	quiet := r.memory(t)
	flood := make(chan error, 1)
	go func() {
		_, err := all[2].Write([]byte(strings.Repeat("<message to='u3@ship.example' type='chat'><body>flood</body></message>", 10_000)))
		flood <- err
	}()
	beside := median()
	more := r.memory(t) - quiet
	t.Logf("a line takes %v alone, %v beside a flood, which takes %d KiB", alone, beside, more)
	if beside > 3*max(alone, 5*time.Millisecond) {
		t.Errorf("a line takes %v beside a flood, %v alone", beside, alone)
	}
	if more > 64<<10 {
		t.Errorf("a flood takes %d KiB", more)
	}
	fmt.Fprint(all[4], strings.Repeat("<message from='u0@ship.example' to='u1@ship.example'><body>forged</body></message>", 100))
	all[4].SetReadDeadline(time.Now().Add(patience))
	if _, err := all[4].until("invalid-from"); err != nil {
		t.Error(err)
	}
	_, metrics := r.get("/metrics")
	if !strings.Contains(metrics, "aldis_xmpp_stanzas_total{what=\"refused forged\"} 1\n") {
		t.Error("more than one forged stanza was read")
	}
}
