package linkemu

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Measured is the fates of the packets of a real link in one direction, in order of the times at which they were sent. A frame has the
// fate of the last packet before it, so the direction's own loss, delay and jitter do not count; rate and queue do. After its end the
// list begins again.
type Measured []Sample

// Sample is one packet.
type Sample struct {
	At    time.Duration // from the beginning of the measurement
	Delay time.Duration // one way, without the packet's own airtime
	Lost  bool
}

// ErrMeasured is wrapped when a measurement cannot be read.
var ErrMeasured = errors.New("linkemu: not a measured link")

// maxSamples bounds a measurement: a day with eleven packets a second.
const maxSamples = 1 << 20

// ReadMeasured reads lines of two fields between commas, semicolons or white space: milliseconds from the beginning, and
// milliseconds of delay or the word lost. Empty lines, lines that begin with #, and a heading are skipped.
func ReadMeasured(r io.Reader) (Measured, error) {
	var m Measured
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.FieldsFunc(lines.Text(), func(c rune) bool { return strings.ContainsRune(",; \t", c) })
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("%w: line %d has %d fields, not two", ErrMeasured, n, len(fields))
		}
		at, err := millis(fields[0])
		if err != nil && len(m) == 0 {
			continue // a heading
		}
		s := Sample{At: at}
		s.Lost = fields[1] == "lost"
		if !s.Lost && err == nil {
			s.Delay, err = millis(fields[1])
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: line %d: %w", ErrMeasured, n, err)
		case len(m) > 0 && s.At < m[len(m)-1].At:
			return nil, fmt.Errorf("%w: line %d goes back in time", ErrMeasured, n)
		case len(m) == maxSamples:
			return nil, fmt.Errorf("%w: more than %d packets", ErrMeasured, maxSamples)
		}
		m = append(m, s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMeasured, err)
	}
	if len(m) < 2 || m[len(m)-1].At == m[0].At {
		return nil, fmt.Errorf("%w: it needs two packets at two times", ErrMeasured)
	}
	return m, nil
}

func millis(s string) (time.Duration, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= 1e9) {
		return 0, fmt.Errorf("%q is not milliseconds from 0 to a thousand million", s)
	}
	return time.Duration(f * float64(time.Millisecond)), nil
}

// at is the fate of a frame that is sent so long after the beginning.
func (m Measured) at(since time.Duration) Sample {
	first, last := m[0].At, m[len(m)-1].At
	length := last - first + (last-first)/time.Duration(len(m)-1) // the last one holds for the mean time of the others
	since = first + since%length
	return m[max(0, sort.Search(len(m), func(i int) bool { return m[i].At > since })-1)]
}
