//go:build !only || hashicorp

package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

func init() { engines["hashicorp"] = newHashicorp }

type hashiState struct{ n atomic.Int64 }

func (s *hashiState) Apply(*raft.Log) any                 { s.n.Add(1); return nil }
func (s *hashiState) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("none") }
func (s *hashiState) Restore(io.ReadCloser) error         { return nil }

type hashiEngine struct {
	nodes  []*raft.Raft
	states []*hashiState
}

func newHashicorp(dirs []string, which []int, fresh bool) (engine, error) {
	e := &hashiEngine{}
	address := func(i int) raft.ServerAddress { return raft.ServerAddress(fmt.Sprintf("127.0.0.1:%d", 19500+i)) }
	for _, i := range which {
		c := raft.DefaultConfig()
		c.LocalID, c.Logger = raft.ServerID(fmt.Sprint(i)), hclog.NewNullLogger()
		c.SnapshotThreshold = 1 << 40
		log, err := wal.Open(filepath.Join(dirs[i]), wal.WithSegmentSize(4<<20))
		if err != nil {
			return nil, err
		}
		net, err := raft.NewTCPTransport(string(address(i)), nil, 3, 5*time.Second, io.Discard)
		if err != nil {
			return nil, err
		}
		snaps := raft.NewInmemSnapshotStore()
		if fresh {
			var all raft.Configuration
			for j := range members {
				all.Servers = append(all.Servers, raft.Server{ID: raft.ServerID(fmt.Sprint(j)), Address: address(j)})
			}
			if err := raft.BootstrapCluster(c, log, log, snaps, net, all); err != nil {
				return nil, err
			}
		}
		s := &hashiState{}
		r, err := raft.NewRaft(c, s, log, log, snaps, net)
		if err != nil {
			return nil, err
		}
		e.nodes, e.states = append(e.nodes, r), append(e.states, s)
	}
	return e, nil
}

func (e *hashiEngine) put(message []byte) error {
	for _, r := range e.nodes {
		if r.State() == raft.Leader {
			return r.Apply(message, 5*time.Second).Error()
		}
	}
	return errors.New("nobody leads")
}

func (e *hashiEngine) count() (int, error) {
	for i, r := range e.nodes {
		if r.State() == raft.Leader {
			if err := r.Barrier(5 * time.Second).Error(); err != nil {
				return 0, err
			}
			return int(e.states[i].n.Load()) - 1, nil
		}
	}
	return 0, errors.New("nobody leads")
}
