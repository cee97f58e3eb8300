package fileroom

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds of the connections of one listener.
const (
	mostConns     = 128
	mostConnsHost = 32
	headTime      = 10 * time.Second
	idleTime      = time.Minute
	uploadTime    = 10 * time.Minute
	headOctets    = 16 << 10
)

// doorman bounds the connections at a time, and those of one host.
type doorman struct {
	net.Listener
	room  *Room
	mu    sync.Mutex
	all   int
	hosts map[string]int
}

// guest is a connection that the doorman has let in.
type guest struct {
	net.Conn
	leave sync.Once
	left  func()
}

// Close closes the connection and makes room for another.
func (g *guest) Close() error {
	g.leave.Do(g.left)
	return g.Conn.Close()
}

// Accept waits for a connection for which there is room.
func (d *doorman) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		d.mu.Lock()
		full := d.all >= mostConns || d.hosts[host] >= mostConnsHost
		if !full {
			d.all++
			d.hosts[host]++
		}
		d.mu.Unlock()
		if full {
			c.Close()
			d.room.refuse("connections", host, nil)
			continue
		}
		return &guest{Conn: c, left: func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.all--
			d.hosts[host]--
			if d.hosts[host] == 0 {
				delete(d.hosts, host)
			}
		}}, nil
	}
}

// Serve serves devices until the listener is closed, by Shutdown or from outside; then it returns nil. wrap puts a protocol
// such as TLS on the connections; nil: plain HTTP.
func (r *Room) Serve(ln net.Listener, wrap func(net.Listener) net.Listener) error {
	handler := r.marti()
	if r.cfg.Face == XMPP {
		handler = r.uploads()
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, ReadTimeout: uploadTime, WriteTimeout: uploadTime,
		MaxHeaderBytes: headOctets, ErrorLog: log.New(io.Discard, "", 0), Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	r.mu.Lock()
	closed := r.closed
	if !closed { // Shutdown walks through the servers without the lock
		r.servers[srv] = true
	}
	r.mu.Unlock()
	if closed {
		ln.Close()
		return nil
	}
	var guarded net.Listener = &doorman{Listener: ln, room: r, hosts: map[string]int{}}
	if wrap != nil {
		guarded = wrap(guarded)
	}
	if err := srv.Serve(guarded); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
