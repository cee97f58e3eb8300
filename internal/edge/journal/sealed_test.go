package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"aldis/internal/edge/atrest"
	"aldis/internal/lab/check"
)

const clearName = ".clear"

var secret = atrest.Secret("a passphrase of tests")

func spareAll(string) bool { return true }

func sealed(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := OpenSealed(dir, ship, secret, spareAll)
	check.NoError(check.Fatal(t), err)
	t.Cleanup(func() { j.Close() })
	return j
}

// telling are octets that a stolen disk must not show.
var telling = []string{"urn:jxta:uuid-PEER", "urn:jxta:uuid-PIPE", "the payload", "ship"}

func tell(t *testing.T, j *Journal, records int) map[string]string {
	t.Helper()
	want := map[string]string{}
	for i := range records {
		key, value := fmt.Sprintf("%03d %s", i, telling[0]), fmt.Sprintf("%s %s %d", telling[1], telling[2], i)
		want["to/"+key] = value
		check.NoError(t, j.Commit([]Op{{"to", []byte(key), []byte(value)}, {"gone", []byte(key), []byte(value)}}))
		check.NoError(t, j.Commit([]Op{{"gone", []byte(key), nil}}))
	}
	return want
}

// silent says that no file in dir has any octets of telling.
func silent(t *testing.T, what, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check.NoError(check.Fatal(t), err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		check.NoError(t, err)
		for _, word := range telling {
			check.True(t, what+": "+e.Name()+" does not show "+word, !bytes.Contains(text, []byte(word)))
		}
	}
}

// A thief of the disk without the secret reads none of a journal's records; the gateway reads all of them, in the same order.
func TestStolenDisk(t *testing.T) {
	dir := t.TempDir()
	j := sealed(t, dir)
	want := tell(t, j, 30)
	check.NoError(t, j.SetIncarnation(77))
	check.NoError(t, j.Commit([]Op{{"to", []byte("000 " + telling[0]), []byte("newer " + telling[2])}}))
	want["to/000 "+telling[0]] = "newer " + telling[2]
	check.NoError(t, j.Close())
	silent(t, "sealed from the first octet", dir)
	check.True(t, "the mark says that it is sealed", IsSealed(dir))

	j = sealed(t, dir)
	check.True(t, "all is there again", maps.Equal(contents(t, j), want))
	check.Equal(t, "the incarnation number", j.Incarnation(), 77)
	var keys []string
	check.NoError(t, j.Load(func(_ string, key, _ []byte) error { keys = append(keys, string(key)); return nil }))
	check.True(t, "keys are in order", slices.IsSorted(keys), keys)
	check.NoError(t, j.SetAside([]Op{{"to", []byte("001 " + telling[0]), []byte(want["to/001 "+telling[0]])}}))
	j.doubtful = true // the whole file is rewritten
	check.NoError(t, j.Commit([]Op{{"to", []byte("002 " + telling[0]), nil}}))
	delete(want, "to/001 "+telling[0])
	delete(want, "to/002 "+telling[0])
	check.True(t, "all but what was set aside and deleted is there", maps.Equal(contents(t, j), want))
	check.NoError(t, j.Close())
	silent(t, "written anew", dir)

	// Export and the like, without the secret and with it.
	rep, err := Export(dir, nil, nil, nil)
	check.NoError(t, err)
	check.True(t, "it is sound and sealed", rep.Sound() && rep.Sealed, rep.Problems())
	seen := map[string]string{}
	_, err = Export(dir, nil, nil, func(x Exported) error {
		check.True(t, "the record is marked as sealed", x.Sealed)
		seen[x.Bucket+"/"+string(x.Key)] = string(x.Value)
		return nil
	})
	check.NoError(t, err)
	for key, value := range seen {
		check.True(t, "an export without the secret shows nothing", !strings.Contains(key+value, "urn") && !strings.Contains(value, "payload"), key, value)
	}
	clear(seen)
	var setAside string
	rep, err = Export(dir, secret, nil, func(x Exported) error {
		if x.Aside {
			setAside = string(x.Key)
			return nil
		}
		seen[x.Bucket+"/"+string(x.Key)] = string(x.Value)
		return nil
	})
	check.NoError(t, err)
	check.True(t, "an export with the secret has all", maps.Equal(seen, want) && rep.Sound())
	check.Equal(t, "what was set aside", setAside, "001 "+telling[0])
}

// A wrong secret is refused with a sentence, and so is a missing one; the journal does not change.
func TestWrongSecret(t *testing.T) {
	dir := t.TempDir()
	j := sealed(t, dir)
	tell(t, j, 3)
	check.NoError(t, j.Close())
	before, err := os.ReadFile(filepath.Join(dir, fileName))
	check.NoError(t, err)
	for _, c := range []struct {
		secret atrest.Secret
		is     error
		says   string
	}{
		{nil, ErrSealed, "node.journal_key_file"},
		{atrest.Secret("a passphrase of teste"), ErrSecret, "nothing was changed"},
		{atrest.Secret("short"), atrest.ErrSecret, "at least 12"},
	} {
		_, err := OpenSealed(dir, ship, c.secret, spareAll)
		check.ErrorIs(t, err, c.is)
		check.Contains(t, "the error", fmt.Sprint(err), c.says)
		after, err := os.ReadFile(filepath.Join(dir, fileName))
		check.NoError(t, err)
		check.True(t, "the file is as it was", bytes.Equal(after, before))
	}
	_, err = Export(dir, atrest.Secret("a passphrase of teste"), nil, nil)
	check.ErrorIs(t, err, ErrSecret)
	_, err = Repair{Identity: ship, Force: true}.Do(dir)
	check.ErrorIs(t, err, ErrSealed)
	tell(t, sealed(t, dir), 3)
}

// A clear journal is sealed at the first start with a secret. Nothing is lost, and the octets of the old file are overwritten,
// as a second name of that file shows.
func TestSealing(t *testing.T) {
	for _, older := range []uint32{0, 2} {
		dir := t.TempDir()
		if older > 0 {
			former(t, dir, older, Op{"to", []byte(telling[0]), []byte(telling[2])})
		}
		j := open(t, dir)
		want := tell(t, j, 20)
		if older > 0 {
			want["to/"+telling[0]] = telling[2]
		}
		check.NoError(t, j.SetAside([]Op{{"to", []byte("003 " + telling[0]), []byte(telling[2])}}))
		delete(want, "to/003 "+telling[0])
		check.NoError(t, j.SetIncarnation(5))
		id := j.StoreID()
		check.NoError(t, j.Close())
		was := filepath.Join(t.TempDir(), "was")
		check.NoError(t, os.Link(filepath.Join(dir, fileName), was))
		before, err := os.Stat(was)
		check.NoError(t, err)

		j = sealed(t, dir)
		check.True(t, "all is there", maps.Equal(contents(t, j), want))
		check.Equal(t, "the store", j.StoreID(), id)
		check.Equal(t, "the incarnation number", j.Incarnation(), 5)
		check.NoError(t, j.Close())
		silent(t, "sealed later", dir)
		text, err := os.ReadFile(was)
		check.NoError(t, err)
		check.Equal(t, "octets of the old file", int64(len(text)), before.Size())
		check.True(t, "they are overwritten", bytes.Equal(text, make([]byte, len(text))))
		entries, err := os.ReadDir(dir)
		check.NoError(t, err)
		check.Equal(t, "files", len(entries), 2) // the journal and its mark
		_, err = Open(dir, ship)
		check.ErrorIs(t, err, ErrSealed)
	}
}

// A start that was killed while it sealed leaves the clear journal or the sealed one, and the next start goes on with it and
// overwrites the clear octets that are left.
func TestSealingWasKilled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	j := open(t, dir)
	want := tell(t, j, 5)
	check.NoError(t, j.Close())
	clearFile, err := os.ReadFile(path)
	check.NoError(t, err)

	// Before the sealed file has the journal's name: a second name of the journal, and half a new file.
	check.NoError(t, os.Link(path, path+clearName))
	check.NoError(t, os.WriteFile(path+unfinished, clearFile[:5000], 0o600))
	j = sealed(t, dir)
	check.True(t, "all is there", maps.Equal(contents(t, j), want))
	check.NoError(t, j.Close())
	silent(t, "killed before", dir)

	// After it: the old journal under its second name.
	check.NoError(t, os.WriteFile(path+clearName, clearFile, 0o600))
	j = sealed(t, dir)
	check.True(t, "all is there", maps.Equal(contents(t, j), want))
	check.NoError(t, j.Close())
	silent(t, "killed behind", dir)
}

// sealer is the environment of a process that seals the journal of a directory and is killed.
const sealer = "ALDIS_TEST_SEALER"

func init() {
	if dir := os.Getenv(sealer); dir != "" {
		_, err := OpenSealed(dir, ship, secret, spareAll)
		fmt.Println("sealed", err)
		os.Exit(0)
	}
}

// kill -9 at any point of the sealing, then a start with the secret: nothing is lost, and nothing stays readable.
func TestKilledWhileSealing(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	want := tell(t, j, 40)
	check.NoError(t, j.Close())
	text, err := os.ReadFile(filepath.Join(dir, fileName))
	check.NoError(t, err)
	mark, err := os.ReadFile(filepath.Join(dir, markName))
	check.NoError(t, err)
	for round := range 12 {
		at := t.TempDir()
		check.NoError(t, os.WriteFile(filepath.Join(at, fileName), text, 0o600))
		check.NoError(t, os.WriteFile(filepath.Join(at, markName), mark, 0o600))
		cmd := exec.Command("/proc/self/exe", "-test.run", "^$")
		cmd.Env = append(os.Environ(), sealer+"="+at)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		check.NoError(t, cmd.Start())
		killWhen(cmd, at, round)
		cmd.Wait()
		j := sealed(t, at)
		check.True(t, fmt.Sprintf("round %d: all is there", round), maps.Equal(contents(t, j), want))
		check.NoError(t, j.Close())
		silent(t, fmt.Sprintf("round %d", round), at)
	}
}

// killWhen kills a process at a state of its directory that depends on the round: the new file exists, has grown, or is gone;
// the second name exists or is gone.
func killWhen(cmd *exec.Cmd, dir string, round int) {
	path := filepath.Join(dir, fileName)
	is := func(name string) bool { _, err := os.Lstat(name); return err == nil }
	grown := func(least int64) bool {
		info, err := os.Stat(path + unfinished)
		return err == nil && info.Size() >= least
	}
	sights := []func() bool{
		func() bool { return is(path + unfinished) },
		func() bool { return grown(8192) },
		func() bool { return grown(1 << 15) },
		func() bool { return is(path + clearName) },
		func() bool { return is(path+clearName) && !is(path+unfinished) },
		func() bool { return IsSealed(dir) },
	}
	seen := sights[round%len(sights)]
	for !seen() && syscall.Kill(cmd.Process.Pid, 0) == nil && !ended(cmd.Process.Pid) {
	}
	cmd.Process.Kill()
}

// ended says that a process has exited and has not been waited for.
func ended(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return err != nil || strings.HasPrefix(rest, "Z")
}

// A flipped bit sets one record aside. If somebody writes into the file with matching checksums, that is noticed.
func TestSealedDamage(t *testing.T) {
	dir := t.TempDir()
	j := sealed(t, dir)
	want := tell(t, j, 3)
	check.NoError(t, j.Close())
	path := filepath.Join(dir, fileName)
	whole, err := os.ReadFile(path)
	check.NoError(t, err)

	// In the file a record's value follows its name: first its head, and then the sealed octets.
	key, err := keyOf(secret, mustSealed(t, dir))
	check.NoError(check.Fatal(t), err)
	name := key.Name("to", []byte("001 "+telling[0]))
	at := bytes.LastIndex(whole, name)
	check.True(check.Fatal(t), "the name is in the file", at > 0)
	broken := bytes.Clone(whole)
	for at := bytes.Index(broken, name); at >= 0; { // older pages may have it too
		broken[at+len(name)+headLen+40] ^= 1
		next := bytes.Index(broken[at+1:], name)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	check.NoError(t, os.WriteFile(path, broken, 0o600))
	j = sealed(t, dir)
	check.Equal(t, "records set aside", len(j.Aside()), 1)
	less := maps.Clone(want)
	delete(less, "to/001 "+telling[0])
	check.True(t, "all else is there", maps.Equal(contents(t, j), less))
	check.NoError(t, j.Close())
	silent(t, "with a record set aside", dir)

	done, err := Repair{Identity: ship, Buckets: []string{"to"}, Force: true, Secret: secret}.Do(dir)
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "written", done.Written, 2)
	j = sealed(t, dir)
	check.True(t, "a repair keeps it", maps.Equal(contents(t, j), less))

	// A record that was sealed under one name is put under another, with matching checksums.
	check.NoError(t, j.Close())
	check.NoError(t, os.WriteFile(path, whole, 0o600))
	swap(t, dir, key)
	rep, err := Export(dir, nil, nil, nil)
	check.NoError(t, err)
	check.True(t, "without the secret it is sound", rep.Sound(), rep.Problems())
	rep, err = Export(dir, secret, nil, nil)
	check.NoError(t, err)
	check.Equal(t, "records that it does not open", rep.Bad, 2)
	j, err = OpenSealed(dir, ship, secret, spareAll)
	if err == nil {
		err = j.Load(func(string, []byte, []byte) error { return nil })
		j.Close()
	}
	check.ErrorIs(t, err, ErrBroken)
	check.Contains(t, "the error", fmt.Sprint(err), "somebody has written to the file")
}

func mustSealed(t *testing.T, dir string) []byte {
	t.Helper()
	field := markedField(dir)
	check.True(check.Fatal(t), "the mark has the field", field != nil)
	return field
}

// swap exchanges the values of two records, as an attacker would who knows the format but not the secret.
func swap(t *testing.T, dir string, key *atrest.Key) {
	t.Helper()
	j, err := Open(dir, ship)
	if !errors.Is(err, ErrSealed) {
		t.Fatalf("%v, %v", j, err)
	}
	j = sealed(t, dir)
	a, b := key.Name("to", []byte("001 "+telling[0])), key.Name("to", []byte("002 "+telling[0]))
	values := map[string][]byte{}
	check.NoError(t, j.view(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{a, b} {
			value, good := unseal("to", name, tx.Bucket([]byte("to")).Get(name))
			check.True(t, "the record is good", good)
			values[string(name)] = bytes.Clone(value)
		}
		return nil
	}))
	j.key = nil // as in the file
	check.NoError(t, j.Commit([]Op{{"to", a, values[string(b)]}, {"to", b, values[string(a)]}}))
	check.NoError(t, j.Close())
}

// The mark repeats the field that checks a secret: without it nobody could open a file whose own page is broken.
func TestRepairOfTheOwnPage(t *testing.T) {
	dir := t.TempDir()
	j := sealed(t, dir)
	want := tell(t, j, 3)
	check.NoError(t, j.commit([]Op{{own, keySealed, nil}}))
	check.NoError(t, j.Close())
	_, err := OpenSealed(dir, ship, secret, spareAll)
	check.ErrorIs(t, err, ErrBroken)
	_, err = Repair{Identity: ship, Buckets: []string{"to"}, Secret: secret}.Do(dir)
	check.NoError(t, err)
	check.True(t, "all is there", maps.Equal(contents(t, sealed(t, dir)), want))
}

// A backup is sealed like its journal, is made and restored without the secret, and opens with it.
func TestSealedBackup(t *testing.T) {
	dir, there := t.TempDir(), t.TempDir()
	j := sealed(t, dir)
	want := tell(t, j, 5)
	backup, err := j.Backup()
	check.NoError(check.Fatal(t), err)
	defer backup.Close()
	text, err := io.ReadAll(backup)
	check.NoError(t, err)
	check.NoError(t, os.WriteFile(filepath.Join(dir, "backup"), text, 0o600))
	check.NoError(t, j.Close())
	silent(t, "a backup", dir)
	rep, err := CheckBackup(filepath.Join(dir, "backup"))
	check.NoError(t, err)
	check.True(t, "it is sound and sealed", rep.Sound() && rep.Sealed)
	_, err = Restore(filepath.Join(dir, "backup"), there, ship, time.Now())
	check.NoError(t, err)
	silent(t, "what was put back", there)
	check.True(t, "all is there", maps.Equal(contents(t, sealed(t, there)), want))
}

// BenchmarkCommitSealed is BenchmarkCommit with a secret.
func BenchmarkCommitSealed(b *testing.B) {
	j, err := OpenSealed(b.TempDir(), ship, secret, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	value := make([]byte, 300)
	for i := uint32(0); b.Loop(); i++ {
		if err := j.Commit([]Op{{"b", be32(i % 1000), value}}); err != nil {
			b.Fatal(err)
		}
	}
}
