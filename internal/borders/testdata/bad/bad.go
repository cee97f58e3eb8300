package custody

import (
	"log"
	r "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"aldis/internal/edge/journal"
	"aldis/internal/link/seal"
)

var lock sync.Mutex // the import is the fault

func init() {}

func bad(j *journal.Journal, k seal.Key, addr netip.Addr, c net.Conn) time.Duration {
	go log.Print(os.Args)
	start := time.Now()
	ch := make(chan int)
	ch <- r.IntN(3)
	<-ch
	select {}
	println(r.New(r.NewPCG(1, 2)).IntN(3))
	now := time.Now
	return now().Sub(start) + time.Since(start) + time.Until(time.Unix(0, 0))
}
