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

// streamMemory is the memory of a stream for a restarted gateway, without its position.
type streamMemory struct {
	Kind   streamKind `json:"kind"`
	Group  string     `json:"group"`
	Local  string     `json:"local"`
	Remote string     `json:"remote"`
	Server string     `json:"server"`
	Name   string     `json:"name,omitempty"`
	From   string     `json:"from"`
	To     string     `json:"to,omitempty"`
	reliable.State
}

func (ss *streams) save(st *stream) {
	if st.Ended() {
		return
	}
	ss.remember(memStream+st.key.memory(),
		streamMemory{st.kind, st.group, st.local, st.remote, st.server, st.name, st.from, st.to, st.State()})
}

// savePosition costs a few octets in the transaction that in any case stores or deletes the block.
func (ss *streams) savePosition(st *stream) {
	taken, acked := st.Position()
	ss.record(memStreamAt+st.key.memory(), binary.AppendUvarint(binary.AppendUvarint(nil, uint64(taken)), uint64(acked)))
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
	st := &stream{conversation: conversation{group: sm.Group, local: sm.Local, remote: sm.Remote, to: sm.To}, kind: sm.Kind,
		key: key, server: sm.Server, name: sm.Name, from: sm.From}
	st.toID, _ = jxta.ParseURN(st.to)
	ss.add(st, sm.State)
	return true
}

// place sets the recalled streams to their positions.
func (ss *streams) place(positions map[streamKey][2]uint32) {
	for key, st := range ss.of {
		st.Begin(positions[key][0])
		st.Expect(positions[key][1])
		if st.toID != "" {
			ss.outlets.hush(st)
		}
		ss.talks.wakeBy(time.Unix(0, 0)) // as soon as the time is known
	}
}

// start starts the clocks of the streams that New has restored: only Step knows the time.
func (ss *streams) start() {
	for _, st := range ss.sorted() {
		st.Start(ss.now)
		ss.talks.wakeBy(st.Deadline())
		if st.to == "" {
			st.opening.until = ss.now.Add(streamAccept)
			ss.talks.wakeBy(st.opening.until)
		}
		if st.kind == streamSocket && st.Finished() {
			st.closing.again = ss.now.Add(closeAgain)
			ss.talks.wakeBy(st.closing.again)
		}
	}
}

func (ss *streams) status() (all []StreamStatus) {
	for _, st := range ss.sorted() {
		if st.Ended() {
			continue
		}
		s := StreamStatus{Peer: st.local, FarPeer: st.remote, Site: st.key.site, Kind: "socket", Pipe: st.server,
			OctetsOut: st.tally.OctetsOut, OctetsIn: st.tally.OctetsIn, Repeats: st.tally.Repeats}
		s.Sent, s.Taken = st.Position()
		s.ToLink, s.ToPeer, s.Closed = st.Waiting()
		if st.kind == streamBiDi {
			s.Kind = "bidi"
		}
		all = append(all, s)
	}
	return all
}
