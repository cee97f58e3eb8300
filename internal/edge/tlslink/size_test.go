package tlslink

import (
	"crypto/ed25519"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"

	"aldis/internal/lab/check"
)

// weighed counts the written octets.
type weighed struct {
	net.Conn
	octets *atomic.Int64
}

func (w weighed) Write(b []byte) (int, error) {
	w.octets.Add(int64(len(b)))
	return w.Conn.Write(b)
}

// A connection takes no more octets than docs/decisions/tls.md says, and a datagram 24 besides its own and TCP's.
func TestWhatAConnectionCosts(t *testing.T) {
	var octets atomic.Int64
	here, there := net.Pipe()
	of := func(id uint16) *Identity {
		return &Identity{Self: id, Key: keyOf(id), Member: func(uint16, ed25519.PublicKey) bool { return true }}
	}
	one, err := of(1).certificate()
	check.NoError(check.Fatal(t), err)
	two, err := of(2).certificate()
	check.NoError(check.Fatal(t), err)
	server, client := tls.Server(weighed{here, &octets}, of(1).config(one, 0)), tls.Client(weighed{there, &octets}, of(2).config(two, 1))
	done := make(chan error, 1)
	go func() {
		err := server.Handshake()
		if err == nil {
			_, err = server.Read(make([]byte, 200))
		}
		done <- err
	}()
	check.NoError(check.Fatal(t), client.Handshake())
	handshake := octets.Load()
	_, err = client.Write(make([]byte, 102))
	check.NoError(check.Fatal(t), err)
	check.NoError(t, <-done)
	t.Logf("%d octets above TCP for the handshake", handshake)
	check.True(t, "octets of the handshake", handshake < 2000, handshake)
	check.Equal(t, "octets of a datagram of 100", int(octets.Load()-handshake), 124)
}
