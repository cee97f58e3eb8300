//go:build long

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// 200 devices on one LAN report every two seconds for a minute, over sockets of their own. Each receives every report of every
// other device once, and none is lost.
func TestTwoHundredTAKDevices(t *testing.T) {
	const devices, rounds, every = 200, 30, 2 * time.Second
	s := newTAKSite(t, 2, "")
	s.write(t, "", "1")
	r := s.start(t)
	end := []byte("</event>")
	var got [devices]atomic.Int64
	var conns [devices]net.Conn
	for i := range devices {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i+1))}}
		c, err := d.Dial("tcp", s.tak)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		conns[i] = c
		go func() {
			buf, kept := make([]byte, 64<<10), 0
			for {
				n, err := c.Read(buf[kept:])
				if err != nil {
					return
				}
				got[i].Add(int64(bytes.Count(buf[:kept+n], end)))
				last := bytes.LastIndex(buf[:kept+n], end)
				from := max(kept+n-len(end)+1, 0)
				if last >= 0 {
					from = max(from, last+len(end))
				}
				kept = copy(buf, buf[from:kept+n])
			}
		}()
	}
	check.Until(t, time.Minute, "all have the offer of version 1", func() bool {
		for i := range got {
			if got[i].Load() < 1 {
				return false
			}
		}
		return true
	})
	used, began := processorOf(t, r.cmd.Process.Pid), time.Now()
	var crew sync.WaitGroup
	for i, c := range conns {
		crew.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for range rounds {
				<-tick.C
				io.WriteString(c, deviceReport(fmt.Sprintf("ANDROID-%016x", i), fmt.Sprint("FALCON ", i)))
			}
		})
	}
	crew.Wait()
	want := int64(1 + (devices-1)*rounds)
	check.Until(t, time.Minute, "all have all reports", func() bool {
		for i := range got {
			if got[i].Load() < want {
				return false
			}
		}
		return true
	})
	took := time.Since(began)
	used = processorOf(t, r.cmd.Process.Pid) - used
	for i := range got {
		if n := got[i].Load(); n != want {
			t.Errorf("device %d was given %d events, want %d", i, n, want)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	peak, _, _ = strings.Cut(peak, "\n")
	reports := float64(devices * rounds)
	t.Logf("%.0f reports in %v, %.0f events given: %.2f %% of a core at %.0f reports/s; memory %s at most", reports, took.Round(time.Second),
		reports*(devices-1), 100*used.Seconds()/took.Seconds(), reports/took.Seconds(), strings.TrimSpace(peak))
}

// processorOf is the processor time that a process has used.
func processorOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	ticks := 0
	for _, text := range f[11:13] {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100)
}
