package pairlink

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	kdeflate "github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"aldis/internal/edge/journal"
	"aldis/internal/gateway/pair"
	"aldis/internal/gateway/quorum"
	"aldis/internal/lab/check"
)

// counted counts the octets of the connections that it accepts, both ways.
type counted struct {
	net.Listener
	octets *atomic.Int64
}

func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.octets}, err
}

type countedConn struct {
	net.Conn
	octets *atomic.Int64
}

func (c countedConn) Read(b []byte) (n int, err error) {
	n, err = c.Conn.Read(b)
	c.octets.Add(int64(n))
	return n, err
}

func (c countedConn) Write(b []byte) (n int, err error) {
	n, err = c.Conn.Write(b)
	c.octets.Add(int64(n))
	return n, err
}

// ofTwoMessages are the commits of a gateway that sends a message of 200 octets and receives one, as long as those of internal/gateway: the
// message, its number, and its receipt with the message of the other site.
func ofTwoMessages(from *rand.ChaCha8, i int) (list [][]journal.Op) {
	random := func(n int) []byte {
		b := make([]byte, n)
		from.Read(b)
		return b
	}
	n := binary.BigEndian.AppendUint64(nil, uint64(1<<32+i))
	to := append([]byte{0, 2}, n...)
	numbered := func(length int) []byte { return append(slices.Clone(n), make([]byte, length-8)...) }
	content := random(200)
	return [][]journal.Op{
		{{Bucket: "mail", Key: n, Value: append(random(200), numbered(70)...)}, {Bucket: "to", Key: to, Value: numbered(18)}},
		{{Bucket: "to", Key: to, Value: numbered(18)}, {Bucket: "peer", Key: to[:2], Value: numbered(58)}},
		{{Bucket: "seal", Key: to[:2], Value: numbered(149)}, {Bucket: "to", Key: to}, {Bucket: "mail", Key: n}, {Bucket: "stored", Key: to, Value: numbered(102)},
			{Bucket: "before", Key: to, Value: content}, {Bucket: "deliver", Key: n, Value: append(numbered(84), content...)}, {Bucket: "deliver", Key: n}, {Bucket: "peer", Key: to[:2], Value: numbered(58)}},
	}
}

// What the machines of a site say for a message of 200 octets is little more than its content, which does not repeat itself, whether the
// message is alone in its commits or others are with it. Beats come on top.
func TestMachinesSayLittleForAMessage(t *testing.T) {
	const rounds = 30
	from := rand.NewChaCha8([32]byte{1})
	n := 0
	// few returns the octets for two messages, of many that are each alone, and of as many that share their commits.
	few := func(octets *atomic.Int64, others int64, commit func([]journal.Op)) {
		play := func(turns, together int) int64 {
			before, began := octets.Load(), time.Now()
			for range turns {
				var commits [3][]journal.Op
				for range together {
					for i, ops := range ofTwoMessages(from, n) {
						commits[i] = append(commits[i], ops...)
					}
					n++
				}
				for _, ops := range commits {
					commit(ops)
				}
			}
			beats := int64(time.Since(began)/pair.Beat) + 2
			return (octets.Load() - before - beats*others*400) / int64(turns*together)
		}
		play(3, 1)
		alone, together := play(rounds, 1), play(3, rounds)
		t.Logf("%d octets for two messages that are alone, %d for two of %d", alone, together, 2*rounds)
		if alone > others*800 || together > others*520 {
			t.Errorf("with %d other machines", others)
		}
	}

	list := newMembers(t, 3)
	var octets atomic.Int64
	for _, m := range list {
		m.count = &octets
		m.start()
	}
	m, run := led(t, list)
	committed(t, list, put(0))
	allSame(t, list, 1)
	few(&octets, 2, func(ops []journal.Op) { check.NoError(check.Fatal(t), m.cluster.Commit(run, ops, nil)) })

	boxes := newPair(t, nil)
	octets.Store(0)
	for _, b := range boxes {
		b.count = &octets
		b.start()
	}
	leader, _, run := leads(t, boxes)
	whole(t, leader)
	few(&octets, 1, func(ops []journal.Op) { check.NoError(check.Fatal(t), leader.link.Commit(run, ops, nil)) })
}

// A machine of an earlier version packs nothing, and understands what it is told; one of this version packs.
func TestMachineThatPacksNothing(t *testing.T) {
	list, leader, m, is := oneAway(t)
	for _, able := range []bool{false, true} {
		c := m.speak(leader.cfg.Listen, greeting{Protocol: protocol, Member: &is, Listen: m.cfg.Listen, Clock: time.Now().Unix(), Facts: leader.cfg.Facts[:0:0], Packs: able}, nil)
		c.SetDeadline(time.Now().Add(10 * time.Second))
		in := bufio.NewReader(c)
		k, _, err := readFrame(in, mostGreeting)
		check.NoError(t, err)
		check.Equal(t, "the first frame", k, kindHello)
		if able {
			in = unpacks(in)
		}
		k, why, err := readFrame(in, mostGreeting)
		check.NoError(t, err)
		check.Equal(t, fmt.Sprintf("the frame behind the hello of one that packs, %v: %s", able, why), k, kindRefuse)

		c = m.speak(leader.cfg.Listen, greeting{Protocol: protocol, Member: &is, Listen: m.cfg.Listen, Clock: time.Now().Unix(), Facts: leader.cluster.cfg.Facts, Packs: able}, nil)
		c.SetDeadline(time.Now().Add(10 * time.Second))
		in = bufio.NewReader(c)
		_, _, err = readFrame(in, mostGreeting)
		check.NoError(t, err)
		var out writer = bufio.NewWriter(c)
		if able {
			in, out = unpacks(in), packs(c)
		}
		for beat := false; !beat; {
			k, content, err := readFrame(in, mostFrame)
			check.NoError(check.Fatal(t), err)
			x, err := parseQuorum(content)
			beat = k == kindQuorum && err == nil && x.Kind == quorum.KindBeat
		}
		said := len(leader.log.all())
		out.Write(appendFrame(nil, kind(77)))
		check.NoError(t, out.Flush())
		check.Until(t, 10*time.Second, "what it says is understood", func() bool { return bytes.Contains([]byte(leader.log.all()[said:]), []byte("kind 77")) })
	}
	m.start()
	committed(t, list, put(1))
	allSame(t, list, 2)
}

// Frames come out as they went in, and none is kept back once it is flushed.
func TestPackedFrames(t *testing.T) {
	there, here := io.Pipe()
	in, out := unpacks(bufio.NewReader(there)), packs(here)
	from := rand.NewChaCha8([32]byte{2})
	for i, n := range []int{0, 1, 5, 200, 200, 70_000, 3, 1 << 20, 0} {
		content := make([]byte, n)
		if i%2 == 0 {
			from.Read(content)
		}
		flushed := make(chan error)
		go func() {
			out.Write(appendFrame(nil, kindPart, content))
			out.Write(appendFrame(nil, kindPing))
			flushed <- out.Flush()
		}()
		for _, want := range []struct {
			k    kind
			text []byte
		}{{kindPart, content}, {kindPing, nil}} {
			k, text, err := readFrame(in, mostFrame)
			check.NoError(check.Fatal(t), err)
			if k != want.k || !bytes.Equal(text, want.text) {
				t.Fatalf("a frame of %d octets of kind %d came as %d of kind %d", len(want.text), want.k, len(text), k)
			}
		}
		check.NoError(t, <-flushed)
	}
}

// Damaged octets end the connection or are frames within the bounds. A short text that stands for a long one costs no more memory than the
// frame that it says it is.
func TestPackedDamage(t *testing.T) {
	var b bytes.Buffer
	p := packs(&b)
	from := rand.NewChaCha8([32]byte{3})
	for i := range 20 {
		for _, ops := range ofTwoMessages(from, i) {
			p.Write(appendFrame(nil, kindRecords, appendOps(nil, ops)))
			check.NoError(t, p.Flush())
		}
	}
	whole := b.Bytes()
	chance := rand.New(rand.NewPCG(1, 2))
	ended := 0
	for range 500 {
		text := bytes.Clone(whole)
		text[chance.IntN(len(text))] ^= byte(1 + chance.IntN(255))
		in := unpacks(bufio.NewReader(bytes.NewReader(text)))
		for {
			_, content, err := readFrame(in, mostGreeting)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					ended++
				}
				break
			}
			if len(content) > mostGreeting {
				t.Fatalf("a frame of %d octets", len(content))
			}
		}
	}
	if ended == 0 {
		t.Error("no damage was noticed")
	}

	b.Reset()
	p = packs(&b)
	p.Write(binary.BigEndian.AppendUint32(nil, mostGreeting+2))
	p.Write(make([]byte, 16<<20))
	check.NoError(t, p.Flush())
	t.Logf("16 MiB of nothing are %d octets", b.Len())
	if _, _, err := readFrame(unpacks(bufio.NewReader(&b)), mostGreeting); !errors.Is(err, errFrame) || b.Len() == 0 {
		t.Errorf("%v, and %d octets are left unread", err, b.Len())
	}
}

// BenchmarkPackers compares ways to pack the commits of messages of 200 octets, each of which is flushed.
func BenchmarkPackers(b *testing.B) {
	deflate := func(level int) func(io.Writer) (writer, error) {
		return func(w io.Writer) (writer, error) { return flate.NewWriter(w, level) }
	}
	for _, row := range []struct {
		name string
		make func(io.Writer) (writer, error)
	}{
		{"nothing", func(w io.Writer) (writer, error) { return bufio.NewWriter(w), nil }},
		{"deflate 1", deflate(1)}, {"deflate 2", deflate(packLevel)}, {"deflate 6", deflate(6)},
		{"deflate 1 of klauspost", func(w io.Writer) (writer, error) { return kdeflate.NewWriter(w, 1) }},
		{"zstandard", func(w io.Writer) (writer, error) {
			return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(64<<10), zstd.WithLowerEncoderMem(true))
		}},
	} {
		b.Run(row.name, func(b *testing.B) {
			from := rand.NewChaCha8([32]byte{5})
			var frames [][]byte
			for i := range 100 {
				for _, ops := range ofTwoMessages(from, i) {
					frames = append(frames, appendFrame(nil, kindRecords, at{1, 1 << 60, uint64(len(frames))}.append(), appendOps(nil, ops)))
				}
			}
			var n sink
			before := heap()
			p, err := row.make(&n)
			check.NoError(check.Fatal(b), err)
			p.Write(frames[0])
			p.Flush()
			held := heap() - before
			n = 0
			i := 0
			for b.Loop() {
				p.Write(frames[i%len(frames)])
				p.Flush()
				i++
			}
			b.ReportMetric(float64(n)/float64(i), "octets/commit")
			b.ReportMetric(float64(held)/1000, "kB")
		})
	}
}

// sink counts octets.
type sink int

func (s *sink) Write(b []byte) (int, error) {
	*s += sink(len(b))
	return len(b), nil
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
