package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"aldis/internal/lab/field"
)

// jxtaC runs the program behind the figures of JXTA-C in 2005 (jxta_bench_comm of JXTA-C, field-tests/jxtac): two of its peers with one
// unicast pipe each way.
func (s *session) jxtaC(ctx context.Context) error {
	program := filepath.Join(s.Jars, "..", "jxtac", "target", "jxta_bench_comm")
	if _, err := os.Stat(program); err != nil {
		return errors.New("JXTA-C is not built: make -C field-tests/jxtac") // this text is on the page, so it has no path of the machine
	}
	return s.served(ctx, func(ctx context.Context, srv *server) error {
		latency, rate := map[int][]float64{}, map[int][]float64{}
		var err error
		for i := 0; i < s.quick(s.series(), 1) && err == nil; i++ {
			err = s.jxtaCOnce(ctx, srv, program, i, latency, rate)
		}
		for size := 1; size <= 4<<20; size *= 4 {
			if len(latency[size]) > 0 {
				row := Row{What: "JXTA-C unicast pipe: message and acknowledgement, one way", Size: size, Unit: "us", Less: true, N: jxtaCPairs * len(latency[size])}
				s.put(row.of(latency[size]...))
				row.What, row.Unit, row.Less = "JXTA-C unicast pipe: data", "MB/s", false
				s.put(row.of(rate[size]...))
			}
		}
		return err
	})
}

const jxtaCPairs = 100 // of each size

// jxtaCLine is the program's line on a size; its rate is in MiB a second.
var jxtaCLine = regexp.MustCompile(`^Message size = (\d+), latency in usec=([\d.]+)\s+thoughput in Mo/s=([\d.]+)`)

// jxtaCOnce runs both peers until the first has measured every size. Each series has pipes of its own, because the server may still know
// the peers of the series before as listeners.
func (s *session) jxtaCOnce(ctx context.Context, srv *server, program string, series int, latency, rate map[int][]float64) error {
	dir := fmt.Sprintf("%s/jxta-c-%s-%d", s.dir, s.where, series)
	largest := s.quick(4<<20, 1<<10)
	sizes := int(math.Log2(float64(largest)))
	var last string
	for i, role := range []string{"-s", "-m"} {
		at := filepath.Join(dir, role)
		ports, err := freePorts("tcp", 1)
		if err == nil {
			err = jxtaCFiles(at, srv.address, ports[0], series)
		}
		if err != nil {
			return err
		}
		said, err := os.Create(filepath.Join(at, "said"))
		if err != nil {
			return err
		}
		defer said.Close()
		cmd := exec.Command("stdbuf", "-oL", program, "1", strconv.Itoa(jxtaCPairs), strconv.Itoa(sizes), "-pipe", role)
		cmd.Dir, cmd.Stdout, cmd.Stderr = at, said, said
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(program))
		done, _, err := field.StartBound(cmd)
		if err != nil {
			return err
		}
		defer func() {
			_ = cmd.Process.Kill() // it waits five minutes before it ends
			<-done
		}()
		if i == 0 {
			continue
		}
		s.progressf("JXTA-C, sizes up to %s", octetsText(largest))
		for moved, seen := time.Now(), 0; seen <= sizes; {
			text, err := os.ReadFile(said.Name())
			if err != nil {
				return err
			}
			if n := strings.Count(string(text), "Message size"); n > seen {
				moved, seen = time.Now(), n
			}
			last = string(text)
			select {
			case <-done:
				return fmt.Errorf("a peer of JXTA-C ended after %d of %d sizes: %s", seen, sizes+1, lastLine(said.Name()))
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
			if time.Since(moved) > time.Minute {
				s.failed(ctx, Row{What: "JXTA-C unicast pipe: message and acknowledgement, one way", Size: 1 << seen, Unit: "us"}, fmt.Errorf("no more after %d of %d sizes within a minute", seen, sizes+1))
				break
			}
		}
	}
	for line := range strings.Lines(last) {
		if m := jxtaCLine.FindStringSubmatch(line); m != nil {
			size, _ := strconv.Atoi(m[1])
			us, _ := strconv.ParseFloat(m[2], 64)
			mib, _ := strconv.ParseFloat(m[3], 64)
			latency[size], rate[size] = append(latency[size], us), append(rate[size], mib*(1<<20)/1e6)
		}
	}
	return nil
}

// jxtaCFiles are the configuration and the pipes of a peer in a series.
func jxtaCFiles(dir, seed string, port, series int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(seed)
	if err != nil {
		return err
	}
	service := func(class, text string) string {
		return "<Svc><MCID>urn:jxta:uuid-DEADBEEFDEAFBABAFEEDBABE0000000" + class + "05</MCID><Parm>" + text + "</Parm></Svc>\n"
	}
	files := map[string]string{"PlatformConfig": fmt.Sprintf("<?xml version=\"1.0\"?>\n<!DOCTYPE jxta:PA>\n<jxta:PA xmlns:jxta=\"http://jxta.org\">\n"+
		"<PID>urn:jxta:uuid-59616261646162614E50472050325033%032X03</PID>\n<GID>urn:jxta:jxta-NetGroup</GID>\n<Name>JXTA-C</Name>\n", port) +
		service("6", "<jxta:RdvConfig xmlns:jxta=\"http://jxta.org\" type=\"jxta:RdvConfig\" config=\"client\"><seeds><addr>tcp://"+seed+"</addr></seeds></jxta:RdvConfig>") +
		service("9", fmt.Sprintf("<jxta:TransportAdvertisement xmlns:jxta=\"http://jxta.org\" type=\"jxta:TCPTransportAdvertisement\"><Protocol>tcp</Protocol><Port>%d</Port>"+
			"<MulticastOff/><InterfaceAddress>%s</InterfaceAddress><Server></Server><ConfigMode>manual</ConfigMode></jxta:TransportAdvertisement>", port, host)) +
		"</jxta:PA>\n"}
	for i, name := range []string{"producer_pipe.adv", "reflector_pipe.adv"} {
		files[name] = fmt.Sprintf("<?xml version=\"1.0\"?>\n<!DOCTYPE jxta:PipeAdvertisement>\n<jxta:PipeAdvertisement xmlns:jxta=\"http://jxta.org\">\n"+
			"<Id>urn:jxta:uuid-59616261646162614E50472050325033%032X04</Id>\n<Type>JxtaUnicast</Type>\n<Name>bench</Name>\n</jxta:PipeAdvertisement>\n", 0xbe0c+2*series+i)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
