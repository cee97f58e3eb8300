package packed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
	upstream "github.com/ulikunitz/xz"

	"aldis/internal/lab/check"
)

// zstOf and xzOf pack as the programs of these names do.
func zstOf(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out)
	check.NoError(check.Fatal(t), err)
	w.Write(b)
	check.NoError(check.Fatal(t), w.Close())
	return out.Bytes()
}

func xzOf(t *testing.T, b []byte, c upstream.WriterConfig) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := c.NewWriter(&out)
	check.NoError(check.Fatal(t), err)
	w.Write(b)
	check.NoError(check.Fatal(t), w.Close())
	return out.Bytes()
}

func unpackAll(b []byte) ([]byte, error) {
	in, err := Reader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(in)
}

// Every form of xz's output comes back: each sum, several blocks, several streams, zeros between them. A file cut or damaged anywhere
// ends in an error that says so, without a panic.
func TestUnpackXZ(t *testing.T) {
	text := bytes.Repeat([]byte("all is well; "), 3000)
	var whole []byte
	for i, sum := range []byte{upstream.None, upstream.CRC32, upstream.CRC64, upstream.SHA256} {
		c := upstream.WriterConfig{CheckSum: sum, NoCheckSum: sum == upstream.None, BlockSize: 10_000}
		whole = append(whole, xzOf(t, text, c)...)
		whole = append(whole, make([]byte, 4*i)...)
	}
	back, err := unpackAll(whole)
	check.NoError(t, err)
	check.True(t, "four times the text", bytes.Equal(back, bytes.Repeat(text, 4)), len(back))
	file := xzOf(t, text, upstream.WriterConfig{BlockSize: 10_000})
	for n := 6; n < len(file); n++ {
		if _, err := unpackAll(file[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut after %d of %d octets: %v", n, len(file), err)
		}
		damaged := bytes.Clone(file)
		damaged[n] ^= 0x10
		if back, err := unpackAll(damaged); err == nil && !bytes.Equal(back, text) {
			t.Fatalf("damaged at octet %d: %d octets", n, len(back))
		}
	}
	packed := zstOf(t, text)
	for n := 4; n < len(packed); n++ {
		if _, err := unpackAll(packed[:n]); err == nil {
			t.Fatalf("zstd, cut after %d of %d octets: no error", n, len(packed))
		}
	}
}

// However much is packed into few octets, reading it takes little memory; a file that asks for more memory is refused first.
func TestUnpackBombs(t *testing.T) {
	zeros := make([]byte, 64<<20)
	for name, file := range map[string][]byte{"zstd": zstOf(t, zeros), "xz": xzOf(t, zeros, upstream.WriterConfig{})} {
		in, err := Reader(bytes.NewReader(file))
		check.NoError(check.Fatal(t), err)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n, err := io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{in})
		runtime.ReadMemStats(&after)
		check.NoError(t, err)
		check.Equal(t, name+": octets", n, int64(len(zeros)))
		grown := after.TotalAlloc - before.TotalAlloc
		check.True(t, name+": allocated meanwhile, of 64 MiB", grown < 32<<20, grown)
	}
	asking := func(window byte) []byte { // an xz file whose block asks for a window; 40: 4 GiB
		file := xzOf(t, []byte("text"), upstream.WriterConfig{})
		head := file[12 : 12+4*(int(file[12])+1)]
		head[bytes.Index(head, []byte{xzFilter, 1})+2] = window
		binary.LittleEndian.PutUint32(head[len(head)-4:], crc32.ChecksumIEEE(head[:len(head)-4]))
		return file
	}
	greedy := asking(40)
	_, err := unpackAll(greedy)
	check.ErrorIs(t, err, errWindow)
	back, err := unpackAll(bytes.Repeat(asking(28), 100)) // 64 MiB each, for four octets
	check.ErrorIs(t, err, errWindow)
	check.Equal(t, "octets before", len(back), 4*mostWindows/(64<<20))
	// A frame of zstd with a window of 2 GiB: its descriptor, the window's exponent, and a block of one octet.
	_, err = unpackAll([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x09, 0x00, 0x00, 'x'})
	check.ErrorIs(t, err, errWindow)
}

// Whatever octets Reader gets, reading ends, without an error or with one that unpacked names.
func FuzzReader(f *testing.F) {
	for _, file := range []string{xzMagic + "\x00\x04\xe6\xd6\xb4\x46", "\x28\xb5\x2f\xfd\x00\x58\x09\x00\x00x", "\x1f\x8b\x08\x00\x00\x00\x00\x00", "plain"} {
		f.Add([]byte(file))
	}
	var packed bytes.Buffer
	w, err := upstream.WriterConfig{BlockSize: 8}.NewWriter(&packed)
	check.NoError(check.Fatal(f), err)
	w.Write([]byte("text of some blocks"))
	w.Close()
	f.Add(packed.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := Reader(bytes.NewReader(b))
		if err != nil {
			return
		}
		_, err = io.Copy(io.Discard, io.LimitReader(in, 1<<20))
		if _, is := in.(*xz); is && err != nil && !errors.Is(err, errPacked) && !errors.Is(err, errWindow) && !errors.Is(err, errFilters) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%v is no error of a packed file", err)
		}
	})
}
