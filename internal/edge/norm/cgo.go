package norm

/*
#cgo pkg-config: norm
// normApi.h of libnorm 1.5.9 is not valid C in two prototypes that are not used here; as function-like macros they
// become harmless (libraries 2).
#define NormGetRxBindAddress(a, b, c, d) normGetRxBindAddressUnused(void)
#define NormStreamGetVacancy(a, b) normStreamGetVacancyUnused(void)
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <normApi.h>

static int waitReadable(int fd) {
	struct pollfd p = {fd, POLLIN, 0};
	int n;
	do n = poll(&p, 1, -1); while (n < 0 && errno == EINTR);
	return n;
}
*/
import "C"

import (
	"fmt"
	"sync"
	"time"
	"unsafe"

	"aldis/internal/link/elide"
)

// legConfig is one star leg as libnorm sees it.
type legConfig struct {
	Session, Bind string // addresses: where to send, what to bind
	Port, TxPort  int
	Node          uint16
	Generation    uint8
	Segment       int
	GRTT          time.Duration
	TxRateBps     float64 // NORM octets x 8, without IP, UDP and frame
}

// Settings that no profile changes (norm-seal 3).
const (
	bufferOctets = 256 << 10
	groupSize    = 10
	robustFactor = 20 // flushes cost nothing behind the gate; it applies also when a receiver asks again
	cacheObjects = 256
	cacheOctets  = 32 << 20
)

// library is one libnorm instance. Its methods may be called from several goroutines, next from one only.
type library struct {
	instance C.NormInstanceHandle
	mu       sync.Mutex // guards legs; held while libnorm looks at an object handle
	legs     []*leg
	byHandle map[C.NormSessionHandle]int
}

type leg struct {
	session C.NormSessionHandle
	nextID  uint32
	objects map[uint16]txObject // in libnorm's transmit cache
	ids     map[C.NormObjectHandle]uint16
}

type txObject struct {
	handle C.NormObjectHandle
	data   unsafe.Pointer // ours: libnorm only reads it
}

func openLibrary() (*library, error) {
	h := C.NormCreateInstance(false)
	if h == nil {
		return nil, fmt.Errorf("norm: no libnorm instance")
	}
	return &library{instance: h, byHandle: map[C.NormSessionHandle]int{}}, nil
}

// addLeg opens a session; its index is the number of sessions before it.
func (l *library) addLeg(c legConfig) error {
	session, bind := C.CString(c.Session), C.CString(c.Bind)
	defer C.free(unsafe.Pointer(session))
	defer C.free(unsafe.Pointer(bind))
	s := C.NormCreateSession(l.instance, session, C.UINT16(c.Port), C.NormNodeId(c.Node))
	if s == nil {
		return fmt.Errorf("norm: no session to %s", c.Session)
	}
	// Transmit and receive sockets differ in port: on one port they would collide.
	if !C.NormSetTxPort(s, C.UINT16(c.TxPort), false, bind) {
		return fmt.Errorf("norm: transmit port %s:%d", c.Bind, c.TxPort)
	}
	C.NormSetRxPortReuse(s, false, bind, nil, 0)
	C.NormSetDefaultUnicastNack(s, true)
	C.NormSetCongestionControl(s, false, false)
	grtt := C.double(c.GRTT.Seconds())
	C.NormSetGrttMax(s, max(2*grtt, 1))
	C.NormSetGrttEstimate(s, grtt)
	C.NormSetGrttProbingMode(s, C.NORM_PROBE_NONE)
	C.NormSetBackoffFactor(s, 0)
	C.NormSetGroupSize(s, groupSize)
	C.NormSetTxRobustFactor(s, robustFactor)
	C.NormSetTxRate(s, C.double(c.TxRateBps))
	C.NormSetTxCacheBounds(s, cacheOctets, 8, cacheObjects)
	if !C.NormStartReceiver(s, bufferOctets) {
		return fmt.Errorf("norm: receiver on %s:%d does not start", c.Bind, c.Port)
	}
	if !C.NormStartSender(s, C.NormSessionId(c.Generation), bufferOctets, C.UINT16(c.Segment),
		elide.BlockLen, elide.ParityLen, 0) {
		return fmt.Errorf("norm: sender on %s:%d does not start", c.Bind, c.TxPort)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byHandle[s] = len(l.legs)
	l.legs = append(l.legs, &leg{session: s, objects: map[uint16]txObject{},
		ids: map[C.NormObjectHandle]uint16{}})
	return nil
}

// enqueue passes an object to libnorm; full means that its cache holds only objects in transmission. libnorm numbers objects
// from 0 in this order and does not report the number.
func (l *library) enqueue(index int, object []byte) (full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.legs[index]
	data := C.CBytes(object) // libnorm keeps the pointer until NORM_TX_OBJECT_PURGED
	h := C.NormDataEnqueue(g.session, (*C.char)(data), C.UINT32(len(object)), nil, 0)
	if h == nil {
		C.free(data)
		return true
	}
	id := uint16(g.nextID)
	g.nextID++
	g.objects[id], g.ids[h] = txObject{h, data}, id
	return false
}

// nextID is the number of the leg's next object.
func (l *library) nextID(index int) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.legs[index].nextID
}

func (l *library) requeue(index int, id uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o, ok := l.legs[index].objects[id]; ok {
		C.NormRequeueObject(l.legs[index].session, o.handle)
	}
}

// cancel makes libnorm forget an object. libnorm drops the events of a canceled object, so it is freed here.
func (l *library) cancel(index int, id uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.legs[index]
	if o, ok := g.objects[id]; ok {
		C.NormObjectCancel(o.handle)
		g.release(id, o)
	}
}

func (g *leg) release(id uint16, o txObject) {
	delete(g.objects, id)
	delete(g.ids, o.handle)
	C.free(o.data)
}

// touch makes a call that needs libnorm's lock: it returns only while libnorm's thread is alive.
func (l *library) touch() {
	l.mu.Lock()
	s := l.legs[0].session
	l.mu.Unlock()
	C.NormSetGroupSize(s, groupSize)
}

type eventKind int

const (
	eventNone   eventKind = iota
	eventSent             // object
	eventRoom             // the transmit cache may take more
	eventObject           // data
)

type event struct {
	kind   eventKind
	leg    int
	object uint16
	data   []byte
}

// maxEmpty is how often in a row libnorm may signal an event that is not there: a cancellation takes events back.
const maxEmpty = 1000

// next waits for libnorm's next event; ok is false if there will be no more.
func (l *library) next() (e event, ok bool) {
	fd := C.int(C.NormGetDescriptor(l.instance))
	for range maxEmpty {
		if C.waitReadable(fd) < 0 {
			return event{}, false
		}
		if e, ok := l.nextEvent(); ok {
			return e, true
		}
	}
	return event{}, false
}

// nextEvent fetches an event and reads it under one lock: between the two steps a cancellation could free the object, and a new
// one could get its handle.
func (l *library) nextEvent() (e event, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var c C.NormEvent
	if !C.NormGetNextEvent(l.instance, &c, false) {
		return event{}, false
	}
	index, known := l.byHandle[c.session]
	if !known {
		return event{}, true
	}
	e.leg = index
	g := l.legs[index]
	switch c._type {
	case C.NORM_TX_OBJECT_SENT:
		if id, held := g.ids[c.object]; held {
			e.kind, e.object = eventSent, id
		}
	case C.NORM_TX_OBJECT_PURGED:
		if id, held := g.ids[c.object]; held {
			g.release(id, g.objects[id])
			e.kind = eventRoom
		}
	case C.NORM_TX_QUEUE_VACANCY, C.NORM_TX_QUEUE_EMPTY:
		e.kind = eventRoom
	case C.NORM_RX_OBJECT_COMPLETED:
		// The handle and its memory live until the next call, so the object is copied first.
		e.kind = eventObject
		e.data = C.GoBytes(unsafe.Pointer(C.NormDataAccessData(c.object)), C.int(C.NormObjectGetSize(c.object)))
	}
	return e, true
}
