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

// bucketRun holds when this run began. It is ours, not the gateway room's.
const bucketRun = "run"

// moment is a time of the machine's since its start, which nobody sets: suspended or not, it goes on (CLOCK_BOOTTIME).
type moment struct {
	start string // of the machine: its boot_id
	since time.Duration
}

// machineNow is the moment now. Its start is "" where the kernel does not name it.
func machineNow() (moment, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return moment{}, fmt.Errorf("time since the machine's start: %w", err)
	}
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it no two moments are of one start
	return moment{strings.TrimSpace(string(id)), time.Duration(ts.Nano())}, nil
}

// after is how long m comes after an earlier moment; 0 where nobody knows.
func (m moment) after(earlier moment) time.Duration {
	if m.start == "" || m.start != earlier.start {
		return 0
	}
	return max(m.since-earlier.since, 0)
}

func (m moment) marshal() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(m.since)), m.start...)
}

// parseMoment reads what marshal wrote. Something else is a moment of no start.
func parseMoment(b []byte) (m moment) {
	if len(b) > 8 && int64(binary.BigEndian.Uint64(b)) >= 0 {
		m = moment{string(b[8:]), time.Duration(binary.BigEndian.Uint64(b))}
	}
	return m
}

// begin makes durable when this run began, and says how long after the last one that was, 0 where nobody knows.
func begin(keep func([]journal.Op) error, last []byte) (sinceLast time.Duration, err error) {
	now, err := machineNow()
	if err != nil {
		return 0, err
	}
	return now.after(parseMoment(last)), keep([]journal.Op{{Bucket: bucketRun, Key: []byte("self"), Value: now.marshal()}})
}
