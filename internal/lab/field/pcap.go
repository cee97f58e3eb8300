package field

import (
	"bufio"
	"encoding/binary"
	"os"
	"time"
)

// capture writes a pcap file of bare IP packets (link type 101) with microsecond times.
type capture struct {
	f *os.File
	w *bufio.Writer
}

func newCapture(path string) (*capture, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	c := &capture{f, bufio.NewWriter(f)}
	h := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	h = binary.LittleEndian.AppendUint16(h, 2)
	h = binary.LittleEndian.AppendUint16(h, 4)
	h = append(h, 0, 0, 0, 0, 0, 0, 0, 0) // times are UTC
	h = binary.LittleEndian.AppendUint32(h, 65535)
	h = binary.LittleEndian.AppendUint32(h, 101)
	_, err = c.w.Write(h)
	return c, err
}

// packet writes one packet; errors come out of close.
func (c *capture) packet(at time.Time, b []byte) {
	if c == nil {
		return
	}
	h := binary.LittleEndian.AppendUint32(make([]byte, 0, 16), uint32(at.Unix()))
	h = binary.LittleEndian.AppendUint32(h, uint32(at.Nanosecond()/1000))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(b)))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(b)))
	_, _ = c.w.Write(h) // bufio keeps the first error for Flush
	_, _ = c.w.Write(b)
}

func (c *capture) close() error {
	if c == nil {
		return nil
	}
	err := c.w.Flush()
	if cerr := c.f.Close(); err == nil {
		err = cerr
	}
	return err
}
