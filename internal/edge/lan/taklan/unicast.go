package taklan

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/cot"
)

// Bounds of connections that carry one message each.
const (
	maxDirects        = 64 // from devices
	maxDirectsPerHost = 16 // a chat to a group comes as one message for each member
	maxHands          = 64 // to devices
	directTime        = 30 * time.Second
	handTime          = 10 * time.Second
)

// errBusy says that there are too many connections to devices of the mesh.
var errBusy = errors.New("too many messages are under way to devices of the mesh")

// ServeDirect receives messages that devices of the mesh send to the gateway alone, until the listener is closed; then it
// returns nil.
func (l *LAN) ServeDirect(ln net.Listener) error {
	return l.accept(ln, func(c net.Conn) {
		if l.enterDirect(c) {
			go l.direct(c)
		}
	})
}

// enterDirect says whether there is room for a connection; if not, it has closed it.
func (l *LAN) enterDirect(c net.Conn) bool {
	host := hostOf(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	same := 0
	for _, h := range l.directs {
		if h == host {
			same++
		}
	}
	if l.closed || len(l.directs) >= maxDirects || same >= maxDirectsPerHost {
		c.Close()
		go l.refuse("unicast_connections", c.RemoteAddr().String(), nil)
		return false
	}
	l.directs[c] = host
	l.wait.Add(1)
	return true
}

func hostOf(c net.Conn) string {
	host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	return host
}

// direct posts the messages of a connection until it is closed.
func (l *LAN) direct(c net.Conn) {
	defer l.wait.Done()
	defer func() {
		c.Close()
		l.mu.Lock()
		delete(l.directs, c)
		l.mu.Unlock()
	}()
	remote := c.RemoteAddr().String()
	c.SetDeadline(time.Now().Add(directTime))
	head := make([]byte, 0, 3)
	for len(head) < 3 {
		n, err := c.Read(head[len(head):3])
		head = head[:len(head)+n]
		if err != nil {
			if len(head) > 0 {
				l.refuse("unicast_broken", remote, err)
			}
			return
		}
	}
	var err error
	if cot.Meshed(head) {
		err = l.whole(c, head)
	} else {
		err = l.several(c, head)
	}
	if err != nil {
		l.refuse("unicast_broken", remote, err)
	}
}

// whole reads one message, which lasts until the connection is closed.
func (l *LAN) whole(c net.Conn, head []byte) error {
	b, err := io.ReadAll(io.LimitReader(c, cot.MaxEvent+1))
	if err != nil {
		return err
	}
	if len(b) > cot.MaxEvent {
		return errors.New("a message of more than 256 KiB")
	}
	l.postMesh(c, append(head, b...))
	return nil
}

// several reads messages that mark their own end.
func (l *LAN) several(c net.Conn, head []byte) error {
	var s cot.Splitter
	buf := make([]byte, 4<<10)
	in := io.MultiReader(bytes.NewReader(head), c)
	for {
		n, err := in.Read(buf)
		if fault := s.Feed(buf[:n], func(frame []byte) { l.postMesh(c, slices.Clone(frame)) }); fault != nil {
			return fault
		}
		if errors.Is(err, io.EOF) && !s.Open() {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// postMesh posts a message, unless its host exceeds the rate of the mesh.
func (l *LAN) postMesh(c net.Conn, frame []byte) {
	l.metrics.octets.WithLabelValues("in").Add(float64(len(frame)))
	l.mu.Lock()
	m := l.mesh
	l.mu.Unlock()
	if at, err := netip.ParseAddr(hostOf(c)); m == nil || err != nil || !l.takes(m, at.Unmap()) {
		l.refuse("mesh_rate", c.RemoteAddr().String(), nil)
		return
	}
	l.metrics.events.Inc()
	l.post(tak.Direct{Remote: c.RemoteAddr().String(), Frame: frame})
}

// hand sends a message to a device of the mesh, over a connection of its own, and posts the result.
func (l *LAN) hand(o tak.Hand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.wait.Add(1)
	busy := l.hands >= maxHands
	l.hands++
	go func() {
		defer l.wait.Done()
		err := errBusy
		if !busy {
			err = l.handOver(o)
		}
		l.mu.Lock()
		l.hands--
		l.mu.Unlock()
		said := tak.Handed{ID: o.ID}
		if err != nil {
			said.Err = err.Error()
		}
		l.post(said)
	}()
}

func (l *LAN) handOver(o tak.Hand) error {
	d := net.Dialer{Timeout: handTime}
	c, err := d.DialContext(l.life, "tcp4", o.To)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(handTime))
	n, err := c.Write(o.XML)
	l.metrics.octets.WithLabelValues("out").Add(float64(n))
	if err != nil {
		return err
	}
	if t, ok := c.(*net.TCPConn); ok { // closing this direction tells the device that the message is complete
		if err := t.CloseWrite(); err != nil {
			return err
		}
	}
	// A device that has read the message closes; one that has not closed in time has received it all the same.
	_, err = io.Copy(io.Discard, io.LimitReader(c, 4<<10))
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return nil
	}
	return err
}
