//go:build !only || raft

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
)

func init() {
	engines["raft"] = func(dirs []string, which []int, _ bool) (engine, error) {
		var e raftEngine
		for _, i := range which {
			m, err := newRaft(i, dirs[i])
			if err != nil {
				return nil, err
			}
			e = append(e, m)
		}
		return e, nil
	}
}

// raftMember is the library with a file for its log: each Ready is one write and one sync.
type raftMember struct {
	mu      sync.Mutex
	node    *raft.RawNode
	memory  *raft.MemoryStorage
	log     *os.File
	wake    chan struct{}
	out     [members]chan *pb.Message
	waiting map[uint64]chan struct{}
	next    uint64
	applied int
}

type raftEngine []*raftMember

func raftAddress(i int) string { return fmt.Sprintf("127.0.0.1:%d", 19400+i) }

func newRaft(i int, dir string) (*raftMember, error) {
	m := &raftMember{memory: raft.NewMemoryStorage(), wake: make(chan struct{}, 1), waiting: map[uint64]chan struct{}{}}
	var err error
	if m.log, err = os.OpenFile(filepath.Join(dir, "log"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
	_ = m.memory.ApplySnapshot(pb.EnsureSnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}}}}))
	end := int64(0)
	for in := bufio.NewReader(m.log); ; { // the entries of the log; it ends at the first broken one
		var head [5]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			break
		}
		b := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(in, b); err != nil {
			break
		}
		end += int64(5 + len(b))
		if head[0] == 'h' {
			var h pb.HardState
			if err := proto.Unmarshal(b, &h); err == nil {
				_ = m.memory.SetHardState(&h)
			}
			continue
		}
		var e pb.Entry
		if err := proto.Unmarshal(b, &e); err == nil {
			_ = m.memory.Append([]*pb.Entry{&e})
		}
	}
	if _, err := m.log.Seek(end, 0); err != nil {
		return nil, err
	}
	m.node, err = raft.NewRawNode(&raft.Config{ID: uint64(i + 1), ElectionTick: 10, HeartbeatTick: 1, Storage: m.memory, MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256,
		CheckQuorum: true, PreVote: true, Applied: 1, Logger: &raft.DefaultLogger{Logger: quiet}})
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", raftAddress(i))
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go m.hear(c)
		}
	}()
	for to := range members {
		m.out[to] = make(chan *pb.Message, 4096)
		go m.say(to)
	}
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			m.mu.Lock()
			m.node.Tick()
			m.mu.Unlock()
			m.nudge()
		}
	}()
	go m.run()
	return m, nil
}

func (m *raftMember) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *raftMember) hear(c net.Conn) {
	defer c.Close()
	for in := bufio.NewReader(c); ; {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(in, b); err != nil {
			return
		}
		x := &pb.Message{}
		if proto.Unmarshal(b, x) == nil {
			m.mu.Lock()
			_ = m.node.Step(x)
			m.mu.Unlock()
			m.nudge()
		}
	}
}

func (m *raftMember) say(to int) {
	for {
		c, err := net.Dial("tcp", raftAddress(to))
		for err == nil {
			var b []byte
			if b, err = proto.Marshal(<-m.out[to]); err == nil {
				_, err = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (m *raftMember) send(list []*pb.Message) {
	for _, x := range list {
		select {
		case m.out[x.GetTo()-1] <- x:
		default:
		}
	}
}

func (m *raftMember) run() {
	for range m.wake {
		m.mu.Lock()
		for m.node.HasReady() {
			rd := m.node.Ready()
			leads := m.node.BasicStatus().RaftState == raft.StateLeader
			m.mu.Unlock()
			if leads && rd.HardState == nil { // the others write while the leader does
				m.send(rd.Messages)
			}
			var b []byte
			add := func(kind byte, x proto.Message) {
				text, _ := proto.Marshal(x)
				b = append(binary.BigEndian.AppendUint32(append(b, kind), uint32(len(text))), text...)
			}
			if rd.HardState != nil {
				add('h', rd.HardState)
			}
			for _, e := range rd.Entries {
				add('e', e)
			}
			if len(b) > 0 {
				_, err := m.log.Write(b)
				if err == nil && rd.MustSync {
					err = unix.Fdatasync(int(m.log.Fd()))
				}
				if err != nil {
					panic(err)
				}
			}
			m.mu.Lock()
			if rd.HardState != nil {
				_ = m.memory.SetHardState(rd.HardState)
			}
			_ = m.memory.Append(rd.Entries)
			if !leads || rd.HardState != nil {
				m.send(rd.Messages)
			}
			for _, e := range rd.CommittedEntries {
				if len(e.GetData()) == 0 {
					continue
				}
				m.applied++
				id := binary.BigEndian.Uint64(e.GetData())
				if ch := m.waiting[id]; ch != nil {
					close(ch)
					delete(m.waiting, id)
				}
			}
			m.node.Advance(rd)
		}
		m.mu.Unlock()
	}
}

func (e raftEngine) leader() *raftMember {
	for _, m := range e {
		m.mu.Lock()
		leads := m.node.BasicStatus().RaftState == raft.StateLeader
		m.mu.Unlock()
		if leads {
			return m
		}
	}
	return nil
}

func (e raftEngine) put(message []byte) error {
	m := e.leader()
	if m == nil {
		return errors.New("nobody leads")
	}
	done := make(chan struct{})
	m.mu.Lock()
	m.next++
	id := m.next
	m.waiting[id] = done
	err := m.node.Propose(append(binary.BigEndian.AppendUint64(nil, id), message[8:]...))
	m.mu.Unlock()
	if err != nil {
		return err
	}
	m.nudge()
	select {
	case <-done:
		return nil
	case <-time.After(5 * time.Second):
		return errors.New("no answer")
	}
}

func (e raftEngine) count() (int, error) {
	if err := e.put(make([]byte, octets)); err != nil {
		return 0, err
	}
	m := e.leader()
	if m == nil {
		return 0, errors.New("nobody leads")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.applied - 2, nil // without the message above, and that of the settle run
}

var quiet = log.New(io.Discard, "", 0)
