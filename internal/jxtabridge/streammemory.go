package jxtabridge

import (
	"encoding/binary"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge/reliable"
	"aldis/internal/site"
)

// streamState is the bridge's part for streams.
type streamState struct {
	streams         map[streamKey]*stream
	streamAt        map[streamAddr]*stream
	streamsOver     *recent        // streams that ended or were refused, so that nothing late makes them anew
	siteEpochs      map[uint16]int // how often a site has lost its store
	streamNumber    uint64         // of the newest that a local peer opened
	strays          map[streamKey]*strays
	strayOctets     int
	credentials     map[credentialKey][]byte // documents of far peers
	credentialsTold map[credentialKey][]byte // digests of what far sites have of ours
	untold          map[untoldPipe]time.Time // when far sites are told of a pipe; zero: never, it ends a stream
	recalled        bool
}

// strays came before their stream's opening.
type strays struct {
	until    time.Time
	octets   int
	payloads []site.FarMessage
}

func newStreamState() streamState {
	return streamState{streams: map[streamKey]*stream{}, streamAt: map[streamAddr]*stream{}, streamsOver: newRecent(8192),
		siteEpochs: map[uint16]int{}, strays: map[streamKey]*strays{},
		untold: map[untoldPipe]time.Time{}, credentials: map[credentialKey][]byte{}, credentialsTold: map[credentialKey][]byte{}}
}

const (
	memStream     = "stream/"
	memStreamAt   = "streamat/"
	memStreamNext = "streamnext"
	memCredential = "credential/"
)

// credentialKey is a peer of a far site or, in credentialsTold, a peer of ours and a site.
type credentialKey struct {
	site uint16
	peer string
}

func (k credentialKey) memory() string {
	return memCredential + strconv.Itoa(int(k.site)) + "/" + k.peer
}

func (k streamKey) memory() string {
	side := "far"
	if k.mine {
		side = "mine"
	}
	return strconv.Itoa(int(k.site)) + "/" + side + "/" + strconv.FormatUint(k.number, 10)
}

func parseStreamKey(s string) (k streamKey, ok bool) {
	f := strings.Split(s, "/")
	if len(f) != 3 || f[1] != "mine" && f[1] != "far" {
		return k, false
	}
	siteID, err := strconv.ParseUint(f[0], 10, 16)
	number, err2 := strconv.ParseUint(f[2], 10, 64)
	return streamKey{uint16(siteID), f[1] == "mine", number}, err == nil && err2 == nil
}

// streamMemory is what a restarted gateway knows of a stream, besides its position.
type streamMemory struct {
	Kind    streamKind `json:"kind"`
	Group   string     `json:"group"`
	Local   string     `json:"local"`
	Remote  string     `json:"remote"`
	Server  string     `json:"server"`
	Name    string     `json:"name,omitempty"`
	From    string     `json:"from"`
	To      string     `json:"to,omitempty"`
	Held    bool       `json:"held,omitempty"`
	Holding bool       `json:"holding,omitempty"`
	Ending  bool       `json:"ending,omitempty"`
	Final   uint32     `json:"final,omitempty"`
}

func (b *Bridge) rememberStream(st *stream) {
	if st.ended {
		return
	}
	b.remember(memStream+st.key.memory(), streamMemory{st.kind, st.group, st.local, st.remote, st.server, st.name, st.from, st.to,
		st.held, st.holding, st.closing.begun, st.closing.final})
}

// rememberStreamPosition costs a few octets in the transaction that keeps the block, or lets it go, anyway.
func (b *Bridge) rememberStreamPosition(st *stream) {
	value := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(st.up.Taken)), uint64(st.down.Acked))
	b.record(memStreamAt+st.key.memory(), value)
}

func (b *Bridge) forgetStream(st *stream) {
	b.forget(memStream + st.key.memory())
	b.forget(memStreamAt + st.key.memory())
}

// recallStream restores one memory of a stream; it reports whether m is one. A stream's position may come before it.
func (b *Bridge) recallStream(m site.Memory, positions map[streamKey][2]uint32) bool {
	if m.Key == memStreamNext {
		b.streamNumber, _ = strconv.ParseUint(string(m.Value), 10, 64)
		return true
	}
	if s, ok := strings.CutPrefix(m.Key, memCredential); ok {
		siteID, peer, _ := strings.Cut(s, "/")
		if n, err := strconv.ParseUint(siteID, 10, 16); err == nil {
			b.credentials[credentialKey{uint16(n), peer}] = m.Value
		}
		return true
	}
	if s, ok := strings.CutPrefix(m.Key, memStreamAt); ok {
		key, ok := parseStreamKey(s)
		recv, w := binary.Uvarint(m.Value)
		if ok && w > 0 && recv < 1<<31 {
			if acked, w2 := binary.Uvarint(m.Value[w:]); w2 > 0 && acked < 1<<31 {
				positions[key] = [2]uint32{uint32(recv), uint32(acked)}
			}
		}
		return true
	}
	s, ok := strings.CutPrefix(m.Key, memStream)
	if !ok {
		return false
	}
	key, ok := parseStreamKey(s)
	var sm streamMemory
	if !ok || json.Unmarshal(m.Value, &sm) != nil || sm.Kind > streamBiDi {
		return true
	}
	st := &stream{key: key, kind: sm.Kind, held: sm.Held, holding: sm.Holding, edge: edgeWindow{shut: true},
		closing: closing{begun: sm.Ending, final: sm.Final},
		ends:    ends{group: sm.Group, local: sm.Local, remote: sm.Remote, server: sm.Server, name: sm.Name, from: sm.From, to: sm.To}}
	st.toID, _ = jxta.ParseURN(st.to)
	b.addStream(st)
	return true
}

// placeStreams sets the recalled streams to where they were.
func (b *Bridge) placeStreams(positions map[streamKey][2]uint32) {
	for key, st := range b.streams {
		at := positions[key]
		st.up.Restart(at[0])
		st.down = reliable.New(at[1])
		if st.toID != "" {
			b.untold[untoldPipe{st.local, pipeKey{st.group, st.toID}}] = time.Time{}
		}
	}
	b.recalled = len(b.streams) > 0
}

// wakeStreams starts the clocks of what New restored: only Step knows the time. Edges may wait for a window that was
// closed before the restart.
func (b *Bridge) wakeStreams() {
	b.recalled = false
	for _, st := range b.sortedStreams() {
		st.down.Stuck = b.now
		if st.to == "" {
			st.accept = b.now.Add(streamAccept)
			b.until(st.accept)
		}
		if !st.held {
			st.edge = edgeWindow{false, b.now.Add(streamReopen), streamReopen}
			b.until(st.edge.reopen)
		}
		if st.closing.begun && st.kind == streamSocket && st.down.Acked >= st.closing.final && st.to != "" {
			st.closing.again = b.now.Add(closeAgain)
			b.until(st.closing.again)
		}
	}
}

func (b *Bridge) streamStatus() (all []StreamStatus) {
	for _, st := range b.sortedStreams() {
		if st.ended {
			continue
		}
		s := StreamStatus{Peer: st.local, FarPeer: st.remote, Site: st.key.site, Kind: "socket", Pipe: st.server, Sent: st.up.Taken,
			ToLink: st.up.Waiting, Closed: st.edge.shut, Taken: st.down.Acked, ToPeer: st.down.Octets,
			OctetsOut: st.out, OctetsIn: st.in, Repeats: st.repeats}
		if st.kind == streamBiDi {
			s.Kind = "bidi"
		}
		all = append(all, s)
	}
	return all
}
