package daemon_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aldis/internal/jxta"
)

// dear are messages of a peer that take the loop long: each is some kilobytes on the LAN.
func dear(p *loader) map[string][]byte {
	pack := func(doc string) jxta.Element {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(doc))
		z.Close()
		return jxta.Element{Namespace: "jxta", Name: jxta.NetGroup + "IRes", Type: "application/gzip", Data: b.Bytes()}
	}
	send := func(e jxta.Element) []byte {
		return p.propagated(jxta.URN(jxta.ClassResolver), jxta.NetGroup+"IRes", e)
	}
	response := func(inner string) string {
		return string(jxta.ResolverResponse{Handler: jxta.HandlerDiscovery, Response: inner}.Append(nil))
	}
	slow := func(size int) string {
		return "<jxta:MSA><!-- no peer writes that -->" + strings.Repeat("<a b='c'>d</a>", size/14) + "</jxta:MSA>"
	}
	plain := "<jxta:MSA>" + strings.Repeat("<a>b</a>", 9000) + "</jxta:MSA>"
	d := jxta.DiscoveryResponse{Type: jxta.TypeAdv}
	for i := range 200 {
		d.Found = append(d.Found, jxta.Found{Life: time.Hour, Doc: slow(1000 + i)})
	}
	return map[string][]byte{
		"a slow document of 0.8 MB":      send(pack(slow(800_000))),
		"a slow one as long as may be":   send(pack(slow(60_000))),
		"a slow one in a response":       send(pack(response(slow(60_000)))),
		"a plain one of many elements":   send(pack(response(plain))),
		"a response of 200 slow adverts": send(pack(response(string(d.Append(nil))))),
		"padding":                        send(pack("<jxta:ResolverResponse>" + strings.Repeat(" ", 1<<20-100) + "</jxta:ResolverResponse>")),
	}
}

const hostileFrom = 500_000_000_000 // numbers of its messages

// Case D10 of the notes on reliability: one peer sends messages that take the loop long, 75 kB of them a second or as fast as
// it can, and another peer asks every ten milliseconds for an advertisement that the gateway knows.
func BenchmarkBesideAHostilePeer(b *testing.B) {
	for _, pace := range []int{0, 75_000, 1 << 40} { // octets a second
		for _, from := range []string{"127.0.0.2", "127.0.0.1"} {
			for what := range dear(&loader{rig: &rig{}}) {
				if pace == 0 && what != "padding" {
					continue
				}
				b.Run(fmt.Sprintf("%s, %d a second, from %s", what, pace, from), func(b *testing.B) {
					r := newRig(b, "wire")
					publisher, hostile, honest := r.peer(), r.peerAt(net.ParseIP(from)), r.peer()
					r.fill(publisher, 100)
					hostile.drain()
					publisher.drain()
					body := dear(hostile)[what]
					ctx, cancel := context.WithCancel(context.Background())
					stopped := make(chan bool)
					var sent atomic.Int64
					go func() {
						defer close(stopped)
						for n, began := uint64(hostileFrom), time.Now(); pace > 0; n++ {
							if hostile.send(number(body, n)) != nil {
								return
							}
							sent.Add(1)
							ahead := time.Duration(n-hostileFrom)*time.Second*time.Duration(len(body))/time.Duration(pace) - time.Since(began)
							if ahead > 0 {
								select { // the pace of the load
								case <-time.After(ahead):
								case <-ctx.Done():
								}
							}
						}
					}()
					var times []time.Duration
					var buf []byte
					question := honest.question("Name", adName(7))
					b.ResetTimer()
					for n := range b.N {
						began := time.Now()
						err := honest.send(number(question, uint64(n)))
						for err == nil {
							if buf, err = honest.get(buf); bytes.Contains(buf, []byte("IRes")) {
								break
							}
						}
						if err != nil {
							b.Fatal(err)
						}
						times = append(times, time.Since(began))
						select { // the pace of the questions
						case <-time.After(10 * time.Millisecond):
						case <-ctx.Done():
							b.Fatal(ctx.Err())
						}
					}
					b.StopTimer()
					cancel()
					hostile.conn.Close()
					<-stopped
					report(b, times)
					b.ReportMetric(float64(sent.Load())/b.Elapsed().Seconds(), "hostile/s")
				})
			}
		}
	}
}
