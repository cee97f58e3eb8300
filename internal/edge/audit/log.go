package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/atrest"
)

const (
	// File is the name of the newest file in the data directory.
	File = "audit.log"

	fileMost  = 4 << 20 // octets of one file
	filesKept = 8       // the newest ones
	lineMost  = 8192    // octets of one line

	// Anybody may cause refused orders, so at most this many are written in a period: 30 an hour fill the files in a hundred
	// days.
	periodMost = 30
	period     = time.Hour
)

// Log appends to the record of one gateway. The zero value is not usable: call Open.
type Log struct {
	mu      sync.Mutex
	dir     string
	now     func() time.Time
	file    *os.File
	size    int64
	number  uint64
	last    string
	refused account
	keys    keys
	key     *atrest.Key // seals new lines; nil: they are not sealed
}

// account counts the refused orders that were written since a time, and those that were not.
type account struct {
	since            time.Time
	written, leftOut int
}

// pass says whether one more refused order may be written, and how many were left out before it.
func (a *account) pass(now time.Time) (leftOut int, ok bool) {
	if d := now.Sub(a.since); d >= period || d < 0 {
		leftOut = a.leftOut
		*a = account{since: now}
	}
	if a.written == periodMost {
		a.leftOut++
		return 0, false
	}
	a.written++
	return leftOut, true
}

// Open opens the record in the data directory of a gateway, or begins one. If a crash has left half a line at the end, Open
// cuts it off and enters that. If the last line is damaged otherwise, all files get the suffix .damaged-TIME and a new record
// begins, whose first line says so: a gateway must start all the same.
func Open(dir string, now func() time.Time) (*Log, error) { return OpenSealed(dir, now, nil, nil) }

// OpenSealed is Open with a key that seals new lines, and the secret of that key, which also opens lines sealed with other keys
// of the same secret. It seals older lines that are not sealed yet, and overwrites their old octets.
func OpenSealed(dir string, now func() time.Time, secret atrest.Secret, key *atrest.Key) (*Log, error) {
	l := &Log{dir: dir, now: now, last: zero, keys: keys{secret: secret}, key: key}
	var torn int64
	var err error
	if key != nil {
		l.keys.add(key)
		err = l.seal()
	}
	if err == nil {
		torn, err = l.open()
	}
	about := Entry{Kind: Torn, What: fmt.Sprintf("%d octets", torn)}
	if errors.Is(err, errDamaged) {
		ending := fmt.Sprintf(".damaged-%d", now().Unix())
		about = Entry{Kind: Damaged, What: "the record before has the ending " + ending + ": " + err.Error()}
		if err = l.putAside(ending); err == nil {
			torn, err = l.open()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	if torn > 0 || about.Kind == Damaged {
		err = l.Add(about)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// errDamaged says that the last line of the record is not a line of an audit log.
var errDamaged = errors.New("the last line is damaged")

// putAside renames the files.
func (l *Log) putAside(ending string) error {
	for age := range filesKept {
		if err := os.Rename(l.path(age), l.path(age)+ending); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return atrest.SyncDir(l.dir)
}

func (l *Log) path(age int) string {
	if age == 0 {
		return filepath.Join(l.dir, File)
	}
	return filepath.Join(l.dir, fmt.Sprintf("%s.%d", File, age))
}

// open opens the newest file and finds the end of the chain. torn is the number of octets behind it that were cut off.
func (l *Log) open() (torn int64, err error) {
	file, err := os.OpenFile(l.path(0), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, err
	}
	if torn, err = l.end(file); err != nil {
		file.Close()
		return 0, err
	}
	l.file = file
	return torn, nil
}

func (l *Log) end(file *os.File) (torn int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	tail := make([]byte, min(info.Size(), 2*sealedMost))
	if _, err := file.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	whole := tail[:bytes.LastIndexByte(tail, '\n')+1]
	torn = int64(len(tail) - len(whole))
	l.size = info.Size() - torn
	var line Line
	switch {
	case len(whole) > 0:
		begin := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
		line, err = l.keys.parse(whole[begin : len(whole)-1])
	case l.size > 0:
		err = ErrLine
	default: // empty: a crash came between a rename and the first line, or this is the first start
		if line, err = l.keys.lastOf(l.path(1)); errors.Is(err, os.ErrNotExist) {
			line.Hash, err = zero, nil
		}
	}
	if errors.Is(err, ErrSealed) {
		return 0, err
	} else if err != nil {
		return 0, fmt.Errorf("%w: %w", errDamaged, err)
	}
	l.number, l.last = line.Number, line.Hash
	if torn > 0 {
		err = file.Truncate(l.size)
	}
	return torn, err
}

// lastOf is the last line of a file that is complete.
func (k *keys) lastOf(path string) (line Line, err error) {
	err = k.read(path, func(l Line) error { line = l; return nil })
	if err == nil && line.Number == 0 {
		err = ErrLine
	}
	return line, err
}

// Add appends an entry and returns when it is durable. Anybody may cause refused orders: at most periodMost of them are written
// in a period, and the next one counts those left out.
func (l *Log) Add(e Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return errors.New("audit: the log is closed")
	}
	now := l.now().UTC()
	if e.Kind == OrderRefused {
		leftOut, ok := l.refused.pass(now)
		if !ok {
			return nil
		}
		e.LeftOut = leftOut
	}
	line := Line{Number: l.number + 1, Time: now.Round(0), Entry: e.cut(), Before: l.last}
	line.Hash = line.sum()
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if l.key != nil {
		text = sealLine(l.key, text)
	}
	if err := l.turn(); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if _, err = l.file.WriteAt(append(text, '\n'), l.size); err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		l.file.Truncate(l.size) // if this fails, the next start cuts it off
		return fmt.Errorf("audit: %w", err)
	}
	l.size += int64(len(text)) + 1
	l.number, l.last = line.Number, line.Hash
	return nil
}

// turn begins a new file when the newest is full. It makes the new file before it renames any: if that fails, nothing has
// moved.
func (l *Log) turn() error {
	if l.size < fileMost {
		return nil
	}
	fresh := filepath.Join(l.dir, File+".new")
	file, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	for age := filesKept - 1; age > 0 && err == nil; age-- {
		if err = os.Rename(l.path(age-1), l.path(age)); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(fresh, l.path(0))
	}
	if err != nil {
		file.Close()
		return err
	}
	l.file.Close()
	l.file, l.size = file, 0
	return atrest.SyncDir(l.dir)
}

// Head is the number and the hash of the last line; 0 where there is none.
func (l *Log) Head() (number uint64, hash string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.number, l.last
}

// Close ends the log. Entries that were added are durable.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}
