package tak

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aldis/internal/adapters/files"
	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/track"
	"aldis/internal/site"
)

// Keys of memories. The comments name the rest of the key, then the value.
const (
	keyRun   = "run" // run and start of this site
	keyUnit  = "u"   // uid: number, version
	keyFar   = "f"   // site and number: run, version, flags, time, the whole event
	keyAt    = "m"   // site and number: time and position of a later report
	keyStart = "s"   // site: its starts (track.Far.Starts)
	keyKept  = "k"   // uid: site, time, event
	keyRest  = "n"   // token of an event with named recipients: its site, the recipients that lack it
	keyHeld  = "l"   // uid: nothing; far sites have an older version of the kept event
)

// Flags of a far unit.
const (
	flagLate = 1 << iota
	flagAway
)

// ErrMemory says that a memory is of another format.
var ErrMemory = errors.New("tak: memory of another format")

func appendMillis(dst []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(t.UnixMilli()))
}

func millis(b []byte) time.Time { return time.UnixMilli(int64(binary.BigEndian.Uint64(b))).UTC() }

// restore reads the memories of an earlier run.
func (f *Adapter) restore(memories []site.Memory) error {
	for _, m := range memories {
		kind, key := m.Key[:min(1, len(m.Key))], m.Key[min(1, len(m.Key)):]
		ok := true
		switch {
		case m.Key == keyRun:
			ok = len(m.Value) == 3
		case kind == keyUnit:
			if ok = len(m.Value) == 5 && f.known; ok {
				f.near.Known(strings.Clone(key), "", binary.BigEndian.Uint32(m.Value[1:]), m.Value[0]&1)
			}
		case kind == keyFar:
			ok = f.restoreFar(key, m.Value)
		case kind == keyAt: // after all of keyFar, because keys are sorted
			ok = f.restoreAt(key, m.Value)
		case kind == keyStart:
			if ok = len(key) == 2 && len(m.Value) == 2; ok && f.far[binary.BigEndian.Uint16([]byte(key))] != nil {
				f.far[binary.BigEndian.Uint16([]byte(key))].Starts = [2]uint8(m.Value)
			}
		case kind == keyRest:
			ok = f.devices.restoreRest(key, m.Value)
		case kind == keyOurs:
			ok = f.words.restoreOurs(m.Value)
		case kind == keyTheirs:
			ok = f.words.restoreTheirs(key, m.Value)
		case kind == keyOffer:
			ok = f.files.restoreOffer(key, m.Value)
		case kind == files.KeyPull: // after all of keyOffer
			ok = f.files.RestorePull(key, m.Value)
		case m.Key == keyWant:
			f.wants.stated = true
		case kind == keyKept:
			ok = f.kept.restore(m.Value)
		case kind == keyHeld: // after all of keyKept
			if x := f.kept.of[key]; x != nil {
				x.told, x.held = nil, true
			}
		default:
			ok = false
		}
		if !ok && mayLack(kind) {
			f.unread = append(f.unread, m.Key)
		} else if !ok {
			return fmt.Errorf("%w: %q", ErrMemory, m.Key)
		}
	}
	return nil
}

// mayLack says whether an adapter can do without memories of a kind: without what devices and other sites have sent.
func mayLack(kind string) bool {
	return slices.Contains([]string{keyFar, keyAt, keyOurs, keyOffer, files.KeyPull, keyKept, keyRest}, kind)
}

// forgetUnread forgets the memories that could not be read. The gateway does not stay down because of one event.
func forgetUnread(f *Adapter) {
	for _, key := range f.unread {
		f.trouble.Count("memory_unreadable")
		f.remember(key, nil)
		switch rest := key[1:]; key[:1] {
		case keyFar:
			f.remember(keyAt+rest, nil)
		case keyKept:
			f.remember(keyHeld+rest, nil)
		}
	}
	if len(f.unread) > 0 {
		f.note("warn", "TAK events in the journal cannot be read or exceed a bound; they are forgotten", "events", len(f.unread), "key", f.unread[0])
	}
	f.unread = nil
}

func (f *Adapter) restoreFar(key string, value []byte) bool {
	if len(key) != 6 || len(value) < 12 {
		return false
	}
	far := f.far[binary.BigEndian.Uint16([]byte(key))]
	if far == nil { // a site that is no longer configured
		return true
	}
	u := &track.FarUnit{Number: binary.BigEndian.Uint32([]byte(key[2:])), Version: value[2], Late: value[3]&flagLate != 0, Away: value[3]&flagAway != 0, At: millis(value[4:])}
	var err error
	if u.Event, err = code.Parse(value[12:], u.At, nil); err != nil {
		return false
	}
	u.Fix, far.Run = code.FixOf(u.Event), binary.BigEndian.Uint16(value)
	far.Put(u)
	return true
}

func (f *Adapter) restoreAt(key string, value []byte) bool {
	if len(key) != 6 || len(value) < 8 {
		return false
	}
	far := f.far[binary.BigEndian.Uint16([]byte(key))]
	if far == nil {
		return true
	}
	at, number := millis(value), binary.BigEndian.Uint32([]byte(key[2:]))
	var v [6]int64
	value = value[8:]
	for i := range v {
		n := 0
		v[i], n = binary.Varint(value)
		if n <= 0 {
			return false
		}
		value = value[n:]
	}
	for _, u := range far.Units() {
		if u.Number == number && at.After(u.At) { // otherwise the whole event was written later
			u.At = at
			u.Fix = code.Fix{Lat: int32(v[0]), Lon: int32(v[1]), HAE: int32(v[2]), Course: uint16(v[3]), Speed: uint16(v[4]), Moves: u.Fix.Moves, Battery: uint8(v[5])}
			far.Put(u)
		}
	}
	return true
}
