//go:build !only || etcd

package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

func init() { engines["etcd"] = newEtcd }

type etcdEngine struct {
	client *clientv3.Client
	n      atomic.Int64
	salt   int64
}

func newEtcd(dirs []string, which []int, fresh bool) (engine, error) {
	wal.SegmentSizeBytes = 4 << 20
	at := func(port int) url.URL { return url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)} }
	var all, clients []string
	for i := range members {
		u := at(19600 + i)
		all = append(all, fmt.Sprintf("m%d=%s", i, u.String()))
	}
	for _, i := range which {
		c := embed.NewConfig()
		c.Name, c.Dir, c.LogLevel = fmt.Sprintf("m%d", i), dirs[i], "fatal"
		c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{at(19600 + i)}, []url.URL{at(19600 + i)}
		c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{at(19650 + i)}, []url.URL{at(19650 + i)}
		c.InitialCluster = strings.Join(all, ",")
		c.QuotaBackendBytes = 1 << 30
		if !fresh {
			c.ClusterState = embed.ClusterStateFlagExisting
		}
		if _, err := embed.StartEtcd(c); err != nil {
			return nil, err
		}
		clients = append(clients, fmt.Sprintf("127.0.0.1:%d", 19650+i))
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: clients, DialTimeout: 5 * time.Second})
	return &etcdEngine{client: client, salt: time.Now().UnixNano()}, err
}

func (e *etcdEngine) put(message []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err := e.client.Put(ctx, fmt.Sprintf("m/%d/%d", e.salt, e.n.Add(1)), string(message))
	return err
}

func (e *etcdEngine) count() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	got, err := e.client.Get(ctx, "m/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return int(got.Count) - 1, nil
}
