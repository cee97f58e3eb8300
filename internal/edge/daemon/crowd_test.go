package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/jxta"
)

// resident is the resident memory of the process, in octets, without the pages of files.
func resident(tb testing.TB) (total, anonymous int) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kb, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "VmRSS":
			total = kb << 10
		case "RssAnon":
			anonymous = kb << 10
		}
	}
	return total, anonymous
}

func descriptors(tb testing.TB) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		tb.Fatal(err)
	}
	return len(list)
}

// gcPause is the longest stop of the world for the collector so far, in seconds: the upper bound of its histogram bucket.
func gcPause() float64 {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	h := s[0].Value.Float64Histogram()
	for i := len(h.Counts) - 1; i >= 0; i-- {
		if h.Counts[i] > 0 {
			return h.Buckets[i+1]
		}
	}
	return 0
}

// A thousand peers with leases and 100,000 advertisements of theirs. It measures the memory of the process (including the load
// peers of the test), and how long the loop is not available to a request, while queries, renewals and new advertisements come.
func BenchmarkCrowd(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // as gateway run has it
	r := newRig(b, "wire")
	r.buffer = 4 << 10
	publisher := r.peer()
	publisher.drain()
	r.fill(publisher, 100_000)
	var peers []*loader
	for range 999 {
		p := r.peer()
		p.drain()
		peers = append(peers, p)
	}
	runtime.GC()
	ctx, cancel := context.WithCancel(context.Background())
	var waits []time.Duration
	var probe sync.WaitGroup
	probe.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			began := time.Now()
			if err := r.Do(ctx, func(time.Time) {}); err == nil {
				waits = append(waits, time.Since(began))
			}
			<-tick.C
		}
	})
	began := time.Now()
	b.ResetTimer()
	for i := range b.N { // a thousand messages a second
		p := peers[i*7919%len(peers)]
		var body []byte
		switch {
		case i%200 == 199:
			body = p.publication(pipeAdv(100_000 + i))
		case i%50 == 9:
			body = p.renewal()
		default:
			body = p.question("Name", adName(i*31%100_000))
		}
		if err := p.send(number(body, uint64(i))); err != nil {
			b.Fatal(err)
		}
		if ahead := time.Duration(i)*time.Millisecond - time.Since(began); ahead > 0 {
			select { // the pace of the load
			case <-time.After(ahead):
			case <-ctx.Done():
				b.Fatal(ctx.Err())
			}
		}
	}
	b.StopTimer()
	cancel()
	probe.Wait()
	if len(waits) == 0 {
		return // the first run of a single message
	}
	slices.Sort(waits)
	total, anonymous := resident(b)
	b.ReportMetric(float64(total)/(1<<20), "MiB-rss")
	b.ReportMetric(float64(anonymous)/(1<<20), "MiB-anon")
	b.ReportMetric(waits[len(waits)*99/100].Seconds()*1e3, "ms-p99")
	b.ReportMetric(waits[len(waits)-1].Seconds()*1e3, "ms-longest")
	b.ReportMetric(gcPause()*1e3, "ms-gc")
}

// drain reads and drops incoming packages.
func (p *loader) drain() {
	r := p.r
	go func() {
		buf := make([]byte, 4<<10)
		for {
			if _, err := r.Read(buf); err != nil {
				return
			}
		}
	}()
}

func (p *loader) renewal() []byte {
	route := jxta.Route{Dest: p.id, Access: jxta.AccessPoint{Peer: p.id, Addresses: []string{"tcp://" + p.conn.LocalAddr().String()}}}
	adv := jxta.PeerAdvertisement{Peer: p.id, Group: jxta.NetGroup, Name: "load", Services: []jxta.Service{
		{Class: jxta.ClassEndpoint, Node: jxta.ServiceNode(jxta.ClassEndpoint, route.Node())}}}
	service, param := jxta.Mangle(jxta.NetGroup, jxta.URN(jxta.ClassRendezvous), jxta.NetGroup)
	return p.body(service, param, docElement("Connect", jxta.AppendDocument(nil, adv.Node())))
}

// Peers that connect, ask, disconnect in every way and connect again leave no descriptor and no goroutine behind.
func TestChurnLeavesNothingBehind(t *testing.T) {
	r := newRig(t, "wire")
	stay := r.peer()
	stay.drain()
	r.fill(stay, 100)
	churn := func(rounds int) {
		var all sync.WaitGroup
		var mu sync.Mutex
		var failed error
		for n := range 8 {
			all.Go(func() {
				for i := range rounds {
					p, err := r.dial()
					if err != nil {
						mu.Lock()
						failed = errors.Join(failed, err)
						mu.Unlock()
						return
					}
					body := number(p.question("Name", adName(i%100)), uint64(n)<<40|uint64(time.Now().UnixNano()&(1<<40-1)))
					switch i % 4 {
					case 0: // in the middle of a message
						p.put(body[:len(body)/2])
						p.w.Flush()
					case 1: // without reading the answer
						p.send(body)
					case 2: // with half a header
						p.w.Write([]byte("\x0econtent-le"))
						p.w.Flush()
					}
					p.conn.Close()
				}
			})
		}
		all.Wait()
		if failed != nil {
			t.Fatal(failed)
		}
		r.until("all but one have gone", func() bool {
			here := 0
			for _, p := range r.bridge.Status().Peers {
				here += p.Connections
			}
			return here == 1
		})
	}
	churn(20)
	files, routines := descriptors(t), runtime.NumGoroutine()
	churn(120)
	gone := func() bool { return descriptors(t) <= files+2 && runtime.NumGoroutine() <= routines+4 }
	r.until(fmt.Sprintf("the process is back at %d descriptors and %d goroutines", files, routines), gone)
}
