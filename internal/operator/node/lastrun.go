package node

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/journal"
)

// bucketRun records when this run began. It belongs to this package, not to the gateway room.
const bucketRun = "run"

// moment is a time since the machine's start that nobody can set; it runs on while the machine is suspended (CLOCK_BOOTTIME).
type moment struct {
	start string // the machine's start: its boot_id
	since time.Duration
}

// machineNow is the present moment. Its start is "" if the kernel does not name it.
func machineNow() (moment, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return moment{}, fmt.Errorf("time since the machine's start: %w", err)
	}
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it no two moments are of one start
	return moment{strings.TrimSpace(string(id)), time.Duration(ts.Nano())}, nil
}

// after is the time from an earlier moment to m; 0 if that is not known.
func (m moment) after(earlier moment) time.Duration {
	if m.start == "" || m.start != earlier.start {
		return 0
	}
	return max(m.since-earlier.since, 0)
}

func (m moment) marshal() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(m.since)), m.start...)
}

// parseMoment reads what marshal wrote. Anything else gives a moment without a start.
func parseMoment(b []byte) (m moment) {
	if len(b) > 8 && int64(binary.BigEndian.Uint64(b)) >= 0 {
		m = moment{string(b[8:]), time.Duration(binary.BigEndian.Uint64(b))}
	}
	return m
}

// begin makes the beginning of this run durable, and returns the time since the beginning of the last one, 0 if that is not
// known.
func begin(keep func([]journal.Op) error, last []byte) (sinceLast time.Duration, err error) {
	now, err := machineNow()
	if err != nil {
		return 0, err
	}
	return now.after(parseMoment(last)), keep([]journal.Op{{Bucket: bucketRun, Key: []byte("self"), Value: now.marshal()}})
}
