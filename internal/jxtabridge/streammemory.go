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

const (
	memStream     = "stream/"
	memStreamAt   = "streamat/"
	memStreamNext = "streamnext"
)

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

func (ss *streams) save(st *stream) {
	if st.ended {
		return
	}
	ss.remember(memStream+st.key.memory(), streamMemory{st.kind, st.group, st.local, st.remote, st.server, st.name, st.from, st.to,
		st.paused, st.pausing, st.closing.begun, st.closing.final})
}

// savePosition costs a few octets in the transaction that keeps the block, or lets it go, anyway.
func (ss *streams) savePosition(st *stream) {
	value := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(st.up.Taken)), uint64(st.down.Acked))
	ss.record(memStreamAt+st.key.memory(), value)
}

func (ss *streams) erase(st *stream) {
	ss.forget(memStream + st.key.memory())
	ss.forget(memStreamAt + st.key.memory())
}

// recall restores one memory of a stream; it reports whether m is one. A stream's position may come before it.
func (ss *streams) recall(m site.Memory, positions map[streamKey][2]uint32) bool {
	if m.Key == memStreamNext {
		ss.number, _ = strconv.ParseUint(string(m.Value), 10, 64)
		return true
	}
	if ss.credentials.recall(m) {
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
	st := &stream{key: key, kind: sm.Kind, paused: sm.Held, pausing: sm.Holding, edge: edgeWindow{shut: true},
		closing: closing{begun: sm.Ending, final: sm.Final},
		group:   sm.Group, local: sm.Local, remote: sm.Remote, server: sm.Server, name: sm.Name, from: sm.From, to: sm.To}
	st.toID, _ = jxta.ParseURN(st.to)
	ss.add(st)
	return true
}

// place sets the recalled streams to where they were.
func (ss *streams) place(positions map[streamKey][2]uint32) {
	for key, st := range ss.all {
		at := positions[key]
		st.up.Restart(at[0])
		st.down = reliable.New(at[1])
		if st.toID != "" {
			ss.outlets.untold[untoldPipe{st.local, pipeKey{st.group, st.toID}}] = time.Time{}
		}
	}
	ss.recalled = len(ss.all) > 0
}

// start starts the clocks of what New restored: only Step knows the time. Edges may wait for a window that was
// closed before the restart.
func (ss *streams) start() {
	ss.recalled = false
	for _, st := range ss.sorted() {
		st.down.Stuck = ss.now
		if st.to == "" {
			st.opening.until = ss.now.Add(streamAccept)
			ss.until(st.opening.until)
		}
		if !st.paused {
			st.edge = edgeWindow{false, ss.now.Add(streamReopen), streamReopen}
			ss.until(st.edge.reopen)
		}
		if st.closing.begun && st.kind == streamSocket && st.down.Acked >= st.closing.final && st.to != "" {
			st.closing.again = ss.now.Add(closeAgain)
			ss.until(st.closing.again)
		}
	}
}

func (ss *streams) status() (all []StreamStatus) {
	for _, st := range ss.sorted() {
		if st.ended {
			continue
		}
		s := StreamStatus{Peer: st.local, FarPeer: st.remote, Site: st.key.site, Kind: "socket", Pipe: st.server, Sent: st.up.Taken,
			ToLink: st.up.Waiting, Closed: st.edge.shut, Taken: st.down.Acked, ToPeer: st.down.Octets,
			OctetsOut: st.tally.out, OctetsIn: st.tally.in, Repeats: st.tally.repeats}
		if st.kind == streamBiDi {
			s.Kind = "bidi"
		}
		all = append(all, s)
	}
	return all
}
