package norm

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A socket belongs to the network namespace in which it was made, whoever holds it. So the child, in its own network, makes the
// supervisor's sockets too and hands them over (unix(7), SCM_RIGHTS): the two processes exchange packets over a network that
// nobody else is in.

// socketPipe is the child's descriptor of the pipe on which it hands sockets over: the first of exec.Cmd.ExtraFiles.
const socketPipe = 3

// handOver opens the sockets of so many legs, sends the supervisor its two of each leg, and closes its own copies of them. It
// returns the number of their loopback net.
func handOver(pipe, try, legs int) (netNo int, err error) {
	defer unix.Close(pipe)
	netNo, sockets, err := openSockets(try, legs)
	if err != nil {
		return 0, err
	}
	defer closeSockets(sockets)
	for i, l := range sockets {
		var fds []int
		for _, conn := range []*net.UDPConn{l.all, l.peer} {
			raw, err := conn.SyscallConn()
			if err == nil {
				err = raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
			}
			if err != nil {
				return 0, fmt.Errorf("norm: socket of leg %d: %w", i, err)
			}
		}
		// Nothing closes them before the message is sent: closeSockets comes later.
		if err := unix.Sendmsg(pipe, []byte{byte(netNo)}, unix.UnixRights(fds...), nil, 0); err != nil {
			return 0, fmt.Errorf("norm: handing sockets over: %w", err)
		}
	}
	return netNo, nil
}

// socketPair makes the pipe: the supervisor's end, and the one that the child inherits.
func socketPair() (ours *net.UnixConn, childs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("norm: pipe for sockets: %w", err)
	}
	childs = os.NewFile(uintptr(pair[1]), "sockets")
	f := os.NewFile(uintptr(pair[0]), "sockets")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		childs.Close()
		return nil, nil, fmt.Errorf("norm: pipe for sockets: %w", err)
	}
	return conn.(*net.UnixConn), childs, nil
}

var errNoSockets = errors.New("norm: the child hands over something else than its sockets")

// takeOver receives the supervisor's sockets of so many legs. On an error it closes those that have come.
func takeOver(pipe *net.UnixConn, legs int, within time.Duration) (netNo int, sockets []legSockets, err error) {
	defer func() {
		if err != nil {
			closeSockets(sockets)
			sockets = nil
		}
	}()
	pipe.SetReadDeadline(time.Now().Add(within))
	word, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(2*4))
	for i := range legs {
		_, n, _, _, err := pipe.ReadMsgUnix(word, rights)
		if err != nil {
			return 0, sockets, fmt.Errorf("norm: no sockets from the child: %w", err)
		}
		conns, err := received(rights[:n])
		if err != nil {
			return 0, sockets, err
		}
		netNo = int(word[0])
		l := legSockets{all: conns[0], peer: conns[1]}
		l.child = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(netNo), byte(i + 1), memberSelf}), portSession)
		l.from = netip.AddrPortFrom(l.child.Addr(), portTx)
		sockets = append(sockets, l)
		if l.all.LocalAddr().String() != udpAddr(netNo, i, memberAll, portSession).String() ||
			l.peer.LocalAddr().String() != udpAddr(netNo, i, memberPeer, portSession).String() {
			return 0, sockets, errNoSockets
		}
	}
	return netNo, sockets, nil
}

// received turns the two descriptors in a control message into connections.
func received(rights []byte) (conns [2]*net.UDPConn, err error) {
	var fds []int
	messages, err := syscall.ParseSocketControlMessage(rights)
	for _, m := range messages {
		some, _ := syscall.ParseUnixRights(&m) // a message of another type has none
		fds = append(fds, some...)
	}
	if err == nil && len(fds) != len(conns) {
		err = errNoSockets
	}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		if err == nil {
			var conn net.PacketConn
			if conn, err = net.FilePacketConn(f); err == nil {
				conns[i], _ = conn.(*net.UDPConn)
			}
			if err == nil && conns[i] == nil {
				conn.Close()
				err = errNoSockets
			}
		}
		f.Close()
	}
	if err != nil {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}
	return conns, err
}
