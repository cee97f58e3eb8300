package audit

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/atrest"
)

// A sealed line is sealedMark and then, in base64, the salt of its key and the line sealed with atrest.Key.Seal. The chain
// connects the lines inside.

const sealedMark = "sealed "

// sealedMost is the length of the longest sealed line.
const sealedMost = int64(len(sealedMark) + (lineMost+atrest.SaltLen+atrest.Overhead+2)/3*4 + 1)

// Only sealed lines of an audit log open with sealedAbout: a sealed record of the journal cannot pass for one.
var sealedAbout = []byte("audit")

// ErrSealed says that a line is sealed and there is no secret to open it.
var ErrSealed = errors.New("it is sealed, and its secret was not given")

func sealLine(key *atrest.Key, text []byte) []byte {
	b := append(bytes.Clone(key.Salt()), key.Seal(text, sealedAbout)...)
	return base64.StdEncoding.AppendEncode([]byte(sealedMark), b)
}

// keys open lines. The keys of one journal share a salt; each journal has its own.
type keys struct {
	secret atrest.Secret
	known  map[string]*atrest.Key // by salt
	torn   int                    // octets behind the last line of the file that was read last
}

func (k *keys) add(key *atrest.Key) {
	if k.known == nil {
		k.known = map[string]*atrest.Key{}
	}
	k.known[string(key.Salt())] = key
}

// mostKeys bounds the salts of one record: a key takes a while to make, and a file might name thousands.
const mostKeys = 64

// parse reads a line as it is in a file, sealed or not.
func (k *keys) parse(text []byte) (l Line, err error) {
	sealed, is := bytes.CutPrefix(text, []byte(sealedMark))
	if !is {
		if len(text) > lineMost {
			return l, ErrLine
		}
		return parseLine(text)
	}
	b, err := base64.StdEncoding.AppendDecode(nil, sealed)
	if err != nil || len(b) < atrest.SaltLen {
		return l, ErrLine
	}
	key := k.known[string(b[:atrest.SaltLen])]
	if key == nil {
		if len(k.secret) == 0 {
			return l, ErrSealed
		}
		if len(k.known) == mostKeys {
			return l, errors.New("the record has too many keys")
		}
		key, _ = k.secret.Key(b[:atrest.SaltLen])
		k.add(key)
	}
	plain, ok := key.Open(b[atrest.SaltLen:], sealedAbout)
	if !ok {
		return l, errors.New("a line was not sealed with this secret, or it was changed")
	}
	return parseLine(plain)
}

// seal seals the lines of the files that are not sealed yet.
func (l *Log) seal() error {
	for age := range filesKept {
		path := l.path(age)
		if err := atrest.WipeLeft(path); err != nil {
			return err
		}
		if err := l.sealFile(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (l *Log) sealFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, int(sealedMost))
	if begin, err := r.Peek(len(sealedMark)); errors.Is(err, io.EOF) && len(begin) == 0 || string(begin) == sealedMark {
		return nil // empty, or sealed from its first line on: nobody adds others to such a file
	}
	fresh, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(fresh)
	for err == nil {
		var text []byte
		if text, err = r.ReadSlice('\n'); err == nil { // a line without its line feed is torn, and cut off
			text = text[:len(text)-1]
			if !bytes.HasPrefix(text, []byte(sealedMark)) {
				text = sealLine(l.key, text)
			}
			w.Write(text)
			w.WriteByte('\n')
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		err = nil
	case errors.Is(err, bufio.ErrBufferFull):
		err = errDamaged
	}
	if err = errors.Join(err, w.Flush(), fresh.Sync(), fresh.Close()); err != nil {
		os.Remove(path + ".new")
		return err
	}
	return atrest.Replace(path, path+".new")
}

// Unsealed are files in dir that were put aside as damaged and are not sealed, where key seals the record; nil: there is none.
func Unsealed(dir string, key *atrest.Key) (paths []string) {
	list, _ := filepath.Glob(filepath.Join(dir, File+"*.damaged-*"))
	for _, path := range list {
		if text, err := os.ReadFile(path); key != nil && err == nil && !bytes.HasPrefix(text, []byte(sealedMark)) {
			paths = append(paths, path)
		}
	}
	return paths
}
