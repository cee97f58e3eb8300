package pairlink

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"aldis/internal/gateway/pair"
)

// Bounds of connections.
const (
	greetTime    = 3 * time.Second
	quietTime    = 3 * time.Second // after so long without a frame a connection is dead
	pingEvery    = time.Second
	writeTime    = 10 * time.Second // for one write
	callAgain    = 300 * time.Millisecond
	mostQueue    = 64 << 20 // octets of commits that wait for the follower
	pushQueue    = 4 << 20  // octets of a snapshot that may wait in the queue
	mostGreeters = 16       // connections whose other end has not shown its key
)

// conn is a connection with the other machine, which has shown its key and sent its hello.
type conn struct {
	raw   net.Conn
	in    *bufio.Reader
	out   writer
	hello pair.Hello

	// The fields below are guarded by Link.mu.
	streaming, attached bool
	acked               uint64    // commit of this leadership that the follower has on its disk
	behind              time.Time // since when the follower lacks commits; stale while it lacks none
	filling             *filling

	mu      sync.Mutex
	room    sync.Cond // of mu: octets were written, or the connection is closed
	waiting [][]byte
	octets  int
	closed  bool
	last    bool // it is closed once the queue has been written
	wake    chan struct{}
}

func (c *conn) close() {
	c.mu.Lock()
	c.closed = true
	c.room.Broadcast()
	c.mu.Unlock()
	c.raw.Close()
	c.nudge()
}

func (c *conn) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// finish closes the connection once its queue has been written, at the latest after within.
func (c *conn) finish(within time.Duration) {
	c.mu.Lock()
	c.last = true
	c.mu.Unlock()
	c.nudge()
	time.AfterFunc(within, c.close)
}

func (c *conn) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// say queues a frame. A connection whose queue is too long is closed.
func (c *conn) say(frame []byte) {
	c.mu.Lock()
	full := c.octets+len(frame) > mostQueue
	if !full && !c.closed {
		c.waiting, c.octets = append(c.waiting, frame), c.octets+len(frame)
	}
	c.mu.Unlock()
	if full {
		c.close()
		return
	}
	c.nudge()
}

// push queues a frame of a snapshot, and waits for room.
func (c *conn) push(frame []byte) error {
	c.mu.Lock()
	for c.octets > pushQueue && !c.closed {
		c.room.Wait()
	}
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	c.say(frame)
	return nil
}

// write writes the queue until the connection is closed.
func (c *conn) write() {
	defer c.close()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case <-c.wake:
		case <-ping.C:
			c.say(appendFrame(nil, kindPing))
			<-c.wake
		}
		c.mu.Lock()
		batch := net.Buffers(c.waiting)
		n, closed, last := c.octets, c.closed, c.last
		c.waiting = nil
		c.mu.Unlock()
		for _, frame := range batch {
			c.raw.SetWriteDeadline(time.Now().Add(writeTime))
			if _, err := c.out.Write(frame); err != nil {
				return
			}
		}
		c.raw.SetWriteDeadline(time.Now().Add(writeTime))
		if c.out.Flush() != nil {
			return
		}
		c.mu.Lock()
		c.octets -= n
		c.room.Broadcast()
		c.mu.Unlock()
		if closed || last {
			return
		}
	}
}

// say queues a frame for the other machine, if it is connected. The caller holds mu.
func (l *Link) say(frame []byte) {
	if l.conn != nil {
		l.conn.say(frame)
	}
}

// accept accepts calls of machines until the listener is closed.
func (l *base) accept(takes func(netip.Addr) bool, serve func(raw *tls.Conn, done func())) {
	defer l.wait.Done()
	for {
		raw, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			select {
			case <-l.life.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		l.mu.Lock()
		fits := takes(hostOf(raw.RemoteAddr())) && l.greeting < mostGreeters
		if fits {
			l.greeting++
		}
		l.mu.Unlock()
		if !fits {
			raw.Close()
			l.refuse("address", raw.RemoteAddr().String(), errors.New("it is none of the machines that site.other or cluster.members names"))
			continue
		}
		l.wait.Add(1)
		go func() {
			defer l.wait.Done()
			serve(tls.Server(raw, l.twin), func() { l.greeting-- })
		}()
	}
}

// call calls a machine whenever there is no connection.
func (l *base) call(to netip.AddrPort, serve func(raw *tls.Conn, done func())) {
	defer l.wait.Done()
	d := net.Dialer{Timeout: greetTime, LocalAddr: &net.TCPAddr{IP: l.cfg.Listen.Addr().AsSlice()}}
	for l.life.Err() == nil {
		if raw, err := d.DialContext(l.life, "tcp", to.String()); err == nil {
			serve(tls.Client(raw, l.twin), func() {})
		}
		select {
		case <-l.life.Done():
		case <-time.After(callAgain):
		}
	}
}

// serve greets the machine at the other end, and runs the connection until it is closed. done is called once, with mu held, when the
// greeting is over.
func (l *Link) serve(raw *tls.Conn, done func()) {
	c, g, err := l.greet(raw, func() greeting { return greeting{Hello: l.m.Hello()} })
	l.mu.Lock()
	done()
	if err == nil {
		if why := l.refusal(g); why != "" {
			l.refused, err = why, errors.New(why)
		}
	}
	if err != nil || l.life.Err() != nil {
		l.mu.Unlock()
		l.turnAway(raw, c, err)
		return
	}
	if old := l.conn; old != nil {
		old.close()
		l.conn = nil
		l.step(pair.Parted{})
	}
	l.conn, l.other, l.refused = c, g, ""
	l.step(pair.Met{Hello: g.Hello})
	l.mu.Unlock()
	l.wait.Add(1)
	go func() { defer l.wait.Done(); c.write() }()
	err = l.read(c, l.hear)
	c.close()
	if c.filling != nil {
		c.filling.refill.Abandon()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == c {
		l.conn = nil
		if l.life.Err() == nil {
			l.cfg.Log.Info("the connection with the other machine of the site has ended", "error", err)
			l.step(pair.Parted{})
		}
		l.broadcast()
	}
}

// greet exchanges the first frames. own returns this machine's greeting; it is called with mu held.
func (l *base) greet(raw *tls.Conn, own func() greeting) (c *conn, g greeting, err error) {
	raw.SetDeadline(time.Now().Add(greetTime))
	if err := raw.HandshakeContext(l.life); err != nil {
		return nil, g, err
	}
	if id, err := l.cfg.Peer(raw.ConnectionState()); err != nil {
		return nil, g, err
	} else if id != l.cfg.Self {
		return nil, g, fmt.Errorf("it is node %d, and this site is node %d", id, l.cfg.Self)
	}
	l.mu.Lock()
	is := own()
	l.mu.Unlock()
	is.Protocol, is.Clock, is.Facts, is.Ways, is.Version, is.Packs = protocol, l.cfg.Wall().Unix(), l.cfg.Facts, l.cfg.Ways, l.cfg.Version, true
	text, err := json.Marshal(is)
	if err != nil {
		return nil, g, err
	}
	if _, err := raw.Write(appendFrame(nil, kindHello, text)); err != nil {
		return nil, g, err
	}
	c = &conn{raw: raw, in: bufio.NewReaderSize(raw, 64<<10), out: bufio.NewWriterSize(raw, 64<<10), wake: make(chan struct{}, 1)}
	c.room.L = &c.mu
	k, content, err := readFrame(c.in, mostGreeting)
	if err == nil && k != kindHello {
		err = errFrame
	}
	if err == nil {
		g, err = parseGreeting(content)
	}
	raw.SetDeadline(time.Time{})
	if err != nil {
		return nil, g, err
	}
	c.hello = g.Hello
	if g.Packs {
		c.in, c.out = unpacks(c.in), packs(raw)
	}
	return c, g, nil
}

// turnAway tells the other end why it is refused, and closes its connection. c is nil if the other end has not greeted.
func (l *base) turnAway(raw *tls.Conn, c *conn, err error) {
	if c != nil && err != nil {
		raw.SetWriteDeadline(time.Now().Add(time.Second))
		c.out.Write(appendFrame(nil, kindRefuse, []byte(err.Error())))
		c.out.Flush()
	}
	raw.Close()
	if l.life.Err() == nil {
		l.refuse("greeting", raw.RemoteAddr().String(), err)
	}
}

// read reads frames until the connection is closed.
func (l *base) read(c *conn, hear func(*conn, kind, []byte) error) error {
	for {
		c.raw.SetReadDeadline(time.Now().Add(quietTime))
		if _, err := c.in.Peek(1); err != nil {
			return err
		}
		c.raw.SetReadDeadline(time.Now().Add(writeTime))
		k, content, err := readFrame(c.in, mostFrame)
		if err != nil {
			return err
		}
		if err := hear(c, k, content); err != nil {
			return err
		}
	}
}

func (l *Link) hear(c *conn, k kind, content []byte) error {
	switch k {
	case kindPing:
		return nil
	case kindRefuse:
		l.mu.Lock()
		l.refused = "the other machine refuses this one: " + string(content[:min(len(content), 500)])
		l.mu.Unlock()
		return errors.New(string(content[:min(len(content), 500)]))
	case kindMessage:
		m, err := parseMessage(content)
		if err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if c == l.conn {
			l.step(m)
		}
		return nil
	case kindRecords:
		return l.write(c, content)
	case kindAcked:
		return l.hearAcked(c, content)
	case kindBegin:
		return l.beginFilling(c, content)
	case kindPart:
		return l.fill(c, content)
	case kindEnd:
		return l.endFilling(c)
	case kindPassed:
		return l.taking.hear(c, content)
	case kindTaken:
		return l.passages.agreed(&l.mu, content)
	}
	return fmt.Errorf("%w: kind %d", errFrame, k)
}

// refuse counts a refused connection, and logs each reason now and then.
func (l *base) refuse(reason, remote string, err error) {
	l.metrics.refused.WithLabelValues(reason).Inc()
	l.warn(reason+err.Error(), refusedText, "reason", reason, "remote", remote, "error", err)
}

const refusedText = "a connection to the other machine of the site was refused or not made"

func (l *base) warn(what, text string, args ...any) {
	l.mu.Lock()
	may := l.told.May(time.Now(), what)
	l.mu.Unlock()
	if may {
		l.cfg.Log.Warn(text, args...)
	}
}

// hostOf is the IP address of a remote end.
func hostOf(a net.Addr) netip.Addr {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return t.AddrPort().Addr().Unmap()
}
