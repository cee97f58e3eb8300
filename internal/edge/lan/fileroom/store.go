package fileroom

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"aldis/internal/edge/atrest"
)

// meta describes a file.
type meta struct {
	Hash    string
	Name    string
	Creator string // uid of the device
	MIME    string
	Octets  int64
	Public  bool // devices find it in the list
	At      time.Time
	IDs     []string `json:",omitempty"` // under which a client has given it (XEP-0363)
}

// store is the files of a directory. Each stored file is two: its octets, and its meta. With a key both are sealed.
type store struct {
	dir  string
	key  *atrest.Key // nil: nothing is sealed
	most int64       // octets of all files
	life time.Duration

	mu    sync.Mutex
	files map[string]meta
}

// Suffixes of the files that belong to a stored file, behind its hash.
const (
	metaEnd  = ".meta"
	partsEnd = ".parts"
	freshEnd = ".new" // is being written
)

// errFull says that a file is larger than all files together may be.
var errFull = errors.New("larger than all that is kept (max_files)")

// isHash says whether a text names a file: only such a text becomes a path.
func isHash(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}

// openStore reads the stored files. A file that cannot be read is removed: it can be fetched or uploaded again.
func openStore(dir string, key *atrest.Key, most int64, life time.Duration) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	s := &store{dir: dir, key: key, most: most, life: life, files: map[string]meta{}}
	for _, d := range list {
		hash, isMeta := strings.CutSuffix(d.Name(), metaEnd)
		switch {
		case strings.HasSuffix(d.Name(), freshEnd):
			os.Remove(filepath.Join(dir, d.Name()))
		case isMeta && isHash(hash):
			var m meta
			b, err := s.read(d.Name())
			if err == nil {
				err = json.Unmarshal(b, &m)
			}
			if info, statErr := os.Stat(filepath.Join(dir, hash)); err != nil || statErr != nil || m.Hash != hash || info.Size() < m.Octets {
				s.remove(hash)
				continue
			}
			s.files[hash] = m
		}
	}
	for _, d := range list { // octets without a meta
		if _, known := s.files[d.Name()]; isHash(d.Name()) && !known {
			s.remove(d.Name())
		}
	}
	return s, nil
}

func (s *store) path(name string) string { return filepath.Join(s.dir, name) }

// read reads a file that write wrote, and opens it if it is sealed.
func (s *store) read(name string) ([]byte, error) {
	b, err := os.ReadFile(s.path(name))
	if err != nil || s.key == nil {
		return b, err
	}
	plain, ok := s.key.Open(b, []byte("tak file "+filepath.Base(name)))
	if !ok {
		return nil, fmt.Errorf("%s does not open with the key of this journal", name)
	}
	return plain, nil
}

// write writes a file: it is then whole and durable, or absent.
func (s *store) write(name string, b []byte) error {
	if s.key != nil {
		b = s.key.Seal(b, []byte("tak file "+filepath.Base(name)))
	}
	path := s.path(name)
	f, err := os.OpenFile(path+freshEnd, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+freshEnd, path)
	}
	if err != nil {
		os.Remove(path + freshEnd)
		return err
	}
	return atrest.SyncDir(filepath.Dir(path))
}

func (s *store) remove(hash string) {
	os.Remove(s.path(hash + metaEnd))
	os.Remove(s.path(hash))
}

// find is the meta of a file; false: it is not here.
func (s *store) find(hash string) (meta, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.files[hash]
	return m, ok
}

// get reads a file.
func (s *store) get(hash string) ([]byte, meta, error) {
	m, ok := s.find(hash)
	if !ok {
		return nil, m, fs.ErrNotExist
	}
	b, err := s.read(hash)
	if err == nil && int64(len(b)) != m.Octets {
		err = fmt.Errorf("%s has %d octets, not %d", hash, len(b), m.Octets)
	}
	return b, m, err
}

// put stores a file, which has m.Hash, and removes older ones if there is no room.
func (s *store) put(b []byte, m meta) error {
	if int64(len(b)) > s.most {
		return errFull
	}
	m.Octets = int64(len(b))
	known, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom(m.At, m.Octets, m.Hash)
	if err := s.write(m.Hash, b); err != nil {
		return err
	}
	if err := s.write(m.Hash+metaEnd, known); err != nil {
		os.Remove(s.path(m.Hash))
		return err
	}
	s.files[m.Hash] = m
	return nil
}

// called is the file that a client has uploaded under an id.
func (s *store) called(id string) (meta, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.files {
		if slices.Contains(m.IDs, id) {
			return m, true
		}
	}
	return meta{}, false
}

// change changes the meta of a file.
func (s *store) change(hash string, how func(*meta)) (meta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.files[hash]
	if !ok {
		return m, fs.ErrNotExist
	}
	how(&m)
	b, err := json.Marshal(m)
	if err == nil {
		err = s.write(hash+metaEnd, b)
	}
	if err == nil {
		s.files[hash] = m
	}
	return m, err
}

// makeRoom removes files that are too old, and then the oldest until so many more octets have room; never the file but.
func (s *store) makeRoom(now time.Time, octets int64, but string) {
	list, all := []meta{}, octets
	for _, m := range s.files {
		if m.Hash != but {
			list = append(list, m)
			all += m.Octets
		}
	}
	slices.SortFunc(list, func(a, b meta) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Hash, b.Hash)) })
	for _, m := range list {
		if all <= s.most && now.Sub(m.At) <= s.life {
			break
		}
		s.remove(m.Hash)
		delete(s.files, m.Hash)
		all -= m.Octets
	}
}

// tidy removes files and parts that are too old.
func (s *store) tidy(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoom(now, 0, "")
	s.tidyParts(now)
}

// list are all files, the newest first, and the sum of their octets.
func (s *store) list() (list []meta, octets int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.files {
		list = append(list, m)
		octets += m.Octets
	}
	slices.SortFunc(list, func(a, b meta) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Hash, b.Hash)) })
	return list, octets
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
