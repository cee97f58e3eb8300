package gateway_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// heapParts are octets of the heap in use by the package that asked for them: of the gateway's, as "gateway", and of the lab's, as
// "lab/...". Octets of a package that serves both, as internal/jxta does, count for its caller.
type heapParts map[string]int64

// profiled has the heap told apart from now on, and the sampling of one allocation in so many octets that this needs. What was allocated
// before is in no part.
func profiled(t *testing.T) {
	before := runtime.MemProfileRate
	runtime.MemProfileRate = 4096
	t.Cleanup(func() { runtime.MemProfileRate = before })
}

// heapNow is the heap as its profile has it, without the octets that are no longer in use.
func heapNow() heapParts {
	for range 3 { // a profile tells of the collection before the last
		runtime.GC()
	}
	var records []runtime.MemProfileRecord
	for n, ok := runtime.MemProfile(nil, false); !ok; {
		records = make([]runtime.MemProfileRecord, n+100)
		n, ok = runtime.MemProfile(records, false)
		records = records[:min(n, len(records))]
	}
	parts := heapParts{}
	for i := range records {
		if octets := records[i].InUseBytes(); octets > 0 {
			parts[heapOwner(records[i].Stack())] += octets
		}
	}
	return parts
}

// heapOwner is whose part an allocation is: of the first function outwards that belongs to the lab or to a room of the gateway alone.
func heapOwner(stack []uintptr) string {
	frames := runtime.CallersFrames(stack)
	for {
		f, more := frames.Next()
		room, ours := strings.CutPrefix(f.Function, "aldis/internal/")
		room, _, _ = strings.Cut(room, ".")
		switch {
		case strings.HasPrefix(room, "gateway_test"), strings.HasPrefix(room, "gateway.test"):
			return "lab/test"
		case strings.HasPrefix(room, "lab/"):
			return room
		case ours && (room == "gateway" || room == "jxtabridge" || strings.HasPrefix(room, "gateway/")):
			return room
		case ours && strings.HasPrefix(room, "gateway"):
			return "lab/test"
		case !more:
			return "other"
		}
	}
}

// sum is the octets of the gateway or of the lab.
func (h heapParts) sum(lab bool) (octets int64) {
	for room, part := range h {
		if strings.HasPrefix(room, "lab/") == lab && room != "other" {
			octets += part
		}
	}
	return octets
}

// String names the parts of 100 kB and more, the largest first.
func (h heapParts) String() string {
	var list []string
	for _, room := range slices.SortedFunc(maps.Keys(h), func(a, b string) int { return int(h[b] - h[a]) }) {
		if h[room] >= 100_000 {
			list = append(list, fmt.Sprintf("%s %.1f MB", room, float64(h[room])/1e6))
		}
	}
	return strings.Join(list, ", ")
}

// Octets that the lab keeps are the lab's part, though a package of the gateway made them.
func TestHeapParts(t *testing.T) {
	profiled(t)
	before := heapNow()
	kept := make([][]byte, 100)
	for i := range kept {
		kept[i] = make([]byte, 10_000)
	}
	after := heapNow()
	grown := after["lab/test"] - before["lab/test"]
	check.True(t, "a million octets of a test are the lab's", grown > 800_000 && grown < 1_200_000, grown)
	check.True(t, "none are the gateway's", after.sum(false)-before.sum(false) < 50_000, after)
	runtime.KeepAlive(kept)
}
