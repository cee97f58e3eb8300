//go:build !only || jetstream

package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

func init() {
	for name, always := range map[string]bool{"jetstream": true, "jetstream-default": false} {
		engines[name] = func(dirs []string, which []int, fresh bool) (engine, error) {
			return newJetStream(dirs, which, fresh, always)
		}
	}
}

type jetEngine struct {
	js   nats.JetStreamContext
	made bool
}

func newJetStream(dirs []string, which []int, _, always bool) (engine, error) {
	var urls string
	for _, i := range which {
		o := &server.Options{ServerName: fmt.Sprintf("m%d", i), Host: "127.0.0.1", Port: 19700 + i, JetStream: true, StoreDir: filepath.Clean(dirs[i]), NoSigs: true, NoLog: true,
			SyncAlways: always, JetStreamMaxStore: 40 << 20, JetStreamMaxMemory: 64 << 20, Cluster: server.ClusterOpts{Name: "three", Host: "127.0.0.1", Port: 19750 + i}}
		if always {
			o.SyncInterval = time.Minute
		}
		for j := range members {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", 19750+j)})
		}
		s, err := server.NewServer(o)
		if err != nil {
			return nil, err
		}
		s.Start()
		urls = fmt.Sprintf("nats://127.0.0.1:%d", 19700+i)
	}
	time.Sleep(2 * time.Second)
	c, err := nats.Connect(urls)
	if err != nil {
		return nil, err
	}
	js, err := c.JetStream(nats.MaxWait(5 * time.Second))
	return &jetEngine{js: js}, err
}

func (e *jetEngine) put(message []byte) error {
	if !e.made {
		if _, err := e.js.StreamInfo("s"); err != nil {
			if _, err := e.js.AddStream(&nats.StreamConfig{Name: "s", Subjects: []string{"s"}, Replicas: members, Storage: nats.FileStorage}); err != nil {
				return err
			}
		}
		e.made = true
	}
	_, err := e.js.Publish("s", message)
	return err
}

func (e *jetEngine) count() (int, error) {
	info, err := e.js.StreamInfo("s")
	if err != nil {
		return 0, err
	}
	if info.Cluster == nil || info.Cluster.Leader == "" {
		return 0, fmt.Errorf("no leader")
	}
	return int(info.State.Msgs) - 1, nil
}
