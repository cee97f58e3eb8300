package corpusexchange

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// ErrMemory says that a memory is of another format.
var ErrMemory = errors.New("corpora: memory of another format")

// Keys of the memories. A received corpus is stored under ofSite and the site in decimal digits, behind the milliseconds since
// 1970 UTC; the accepted corpus is stored under accepted, behind the hash of the corpus that was configured when it was accepted.
const (
	ofSite   = "site "
	accepted = "accepted"
)

const timeOctets = 8

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// kept is a received or accepted corpus.
type kept struct {
	*compact.CorpusFile
	file []byte
	at   time.Time
}

func parseKept(value []byte) (k kept, err error) {
	if len(value) <= timeOctets {
		return k, ErrMemory
	}
	k.at = time.UnixMilli(int64(binary.BigEndian.Uint64(value))).UTC()
	k.file = slices.Clone(value[timeOctets:])
	k.CorpusFile, err = compact.ReadCorpus(k.file)
	return k, err
}

func (k kept) append(b []byte) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(k.at.UnixMilli())), k.file...)
}

// hashOf is the hash that tells corpora apart: zeros for none.
func hashOf(f *compact.CorpusFile) (h [sha256.Size]byte) {
	if f != nil {
		h = f.Hash
	}
	return h
}

// Chosen is the corpus that a start uses: the accepted one, as long as the configuration names the same corpus as when it was accepted,
// or else the configured one (nil: none). The error is ErrMemory, or compact.ErrCorpus; the configured corpus is returned with it.
func Chosen(configured *compact.CorpusFile, memories []site.Memory) (*compact.CorpusFile, error) {
	for _, m := range memories {
		if m.Key != accepted {
			continue
		}
		in, file, err := parseAccepted(m.Value)
		if err != nil {
			return configured, err
		}
		if in == hashOf(configured) {
			return file.CorpusFile, nil
		}
	}
	return configured, nil
}

func parseAccepted(value []byte) (in [sha256.Size]byte, k kept, err error) {
	if len(value) <= len(in) {
		return in, k, ErrMemory
	}
	copy(in[:], value)
	k.file = bytes.Clone(value[len(in):])
	k.CorpusFile, err = compact.ReadCorpus(k.file)
	return in, k, err
}

// siteOf reads the key of a corpus that was received.
func siteOf(key string) (uint16, bool) {
	digits, ok := strings.CutPrefix(key, ofSite)
	n := 0
	for _, c := range digits {
		n = 10*n + int(c-'0')
		if c < '0' || c > '9' || n > 1<<16-1 {
			return 0, false
		}
	}
	return uint16(n), ok && n > 0
}
