package tlslink

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"aldis/internal/gateway/api"
)

// Whatever a member sends, posted datagrams have 1 to Largest octets, and are those of the stream up to the first broken one.
func FuzzDatagrams(f *testing.F) {
	f.Add([]byte{0, 1, 'x', 0, 2, 'y', 'z'})
	f.Add([]byte{0, 0, 1})
	f.Add([]byte{0xff, 0xff, 1, 2, 3})
	f.Fuzz(func(t *testing.T, stream []byte) {
		var got []byte
		l := &Link{cfg: Config{Largest: 100, Half: time.Minute, Post: func(d api.Datagram) bool {
			if len(d.Data) == 0 || len(d.Data) > 100 {
				t.Errorf("%d octets", len(d.Data))
			}
			got = append(binary.BigEndian.AppendUint16(got, uint16(len(d.Data))), d.Data...)
			return true
		}}}
		n := &conn{link: l, raw: &net.TCPConn{}, in: bufio.NewReader(bytes.NewReader(stream))}
		n.read()
		if !bytes.HasPrefix(stream, got) {
			t.Errorf("handed over %x of %x", got, stream)
		}
	})
}
