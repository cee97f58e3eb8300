package control

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxConnections is how many connections one listener holds.
const maxConnections = 128

// crowd bounds the connections of one http.Server. If it is full, a new connection replaces the idle one that came or was
// served longest ago; if all connections are being served, the new one is closed. So nobody can keep others out by waiting.
type crowd struct {
	closed prometheus.Counter

	mu    sync.Mutex
	all   map[net.Conn]*list.Element
	order list.List // of *visitor, the latest to come or be served at the end
}

type visitor struct {
	conn net.Conn
	busy bool // a request is being served
}

// visitorKey is the key, in the context of a connection, of its place in the crowd.
type visitorKey struct{}

// state is http.Server.ConnState.
func (c *crowd) state(conn net.Conn, s http.ConnState) {
	if s != http.StateClosed && s != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.all[conn]; e != nil {
		c.order.Remove(e)
		delete(c.all, conn)
	}
}

// come admits a connection; it is part of http.Server.ConnContext.
func (c *crowd) come(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.order.Len() >= maxConnections {
		c.closed.Inc()
		goes := conn
		for e := c.order.Front(); e != nil; e = e.Next() {
			if v := e.Value.(*visitor); !v.busy {
				goes = v.conn
				c.order.Remove(e)
				delete(c.all, goes)
				break
			}
		}
		goes.Close()
		if goes == conn {
			return ctx
		}
	}
	e := c.order.PushBack(&visitor{conn: conn})
	c.all[conn] = e
	return context.WithValue(ctx, visitorKey{}, e)
}

// serving marks a connection as busy while its request is served.
func (c *crowd) serving(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, _ := r.Context().Value(visitorKey{}).(*list.Element)
		mark := func(busy bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if e != nil {
				e.Value.(*visitor).busy = busy
				c.order.MoveToBack(e) // does nothing if it has gone
			}
		}
		mark(true)
		defer mark(false)
		h.ServeHTTP(w, r)
	})
}
