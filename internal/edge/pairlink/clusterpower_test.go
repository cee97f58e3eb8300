package pairlink

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/baddisk"
	"aldis/internal/lab/check"
)

// All members lose power at once, again and again, on disks that forget unsynced octets: each acknowledged commit is there.
func TestMembersWithoutPower(t *testing.T) {
	disk, at := must(baddisk.New(t.TempDir())), t.TempDir()
	t.Cleanup(func() { check.NoError(t, disk.Close()) })
	check.NoError(check.Fatal(t), disk.Mount(at))
	list := newMembers(t, 3)
	for i, m := range list {
		m.dir = filepath.Join(at, fmt.Sprint(i))
	}
	n := 0
	for range powerLosses {
		for _, m := range list {
			m.start()
		}
		leader, run := led(t, list)
		have := strings.Join(leader.records(), "\n")
		for i := range n {
			check.Contains(check.Fatal(t), "journal of the leader", have, fmt.Sprintf(`a "%05d"`, i))
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for leader.cluster.Commit(run, put(n), nil) == nil {
				n++
			}
		}()
		before := time.Now()
		check.Until(t, time.Minute, "some are acknowledged", func() bool { return time.Since(before) > 300*time.Millisecond })
		check.NoError(t, disk.Fail(baddisk.Failure{Writes: true}))
		for _, m := range list {
			m.die()
		}
		<-ended
		check.NoError(check.Fatal(t), disk.LosePower())
	}
	check.True(t, "messages were acknowledged", n > 5*powerLosses, n)
	t.Logf("%d losses of power, %d acknowledged, 0 lost", powerLosses, n)
}

const powerLosses = 5

func must(d *baddisk.Disk, err error) *baddisk.Disk {
	if err != nil {
		panic(err)
	}
	return d
}

// A member whose disk fails reports it and holds nobody up: a leader hands over, a follower acknowledges nothing. Once the disk works
// again, the member gets the entries that it lacks.
func TestMemberWhoseDiskFails(t *testing.T) {
	for _, leads := range []bool{true, false} {
		disk, at := must(baddisk.New(t.TempDir())), t.TempDir()
		t.Cleanup(func() { check.NoError(t, disk.Close()) })
		check.NoError(check.Fatal(t), disk.Mount(at))
		list := newMembers(t, 3)
		bad := list[0]
		bad.dir = filepath.Join(at, "data")
		for _, m := range list {
			m.start()
		}
		leader, run := led(t, list)
		if leads != (leader == bad) {
			order := bad
			if !leads {
				order = list[1]
			}
			check.Until(t, time.Minute, "the one that is meant leads", func() bool {
				order.cluster.Lead()
				r, _, _ := order.cluster.Leadership()
				leader, run = order, r
				return r != 0
			})
			check.NoError(t, leader.cluster.Begin(run))
		}
		check.NoError(t, disk.Fail(baddisk.Failure{From: baddisk.DataFrom, Writes: true}))
		n := 0
		for range 5 {
			if leader.cluster.Commit(run, put(n), nil) == nil {
				n++
			}
		}
		check.Until(t, 30*time.Second, "it says so", func() bool { return bad.log.has("cannot write its journal") })
		if leads {
			check.Until(t, 30*time.Second, "another one leads", func() bool {
				leader, run = led(t, list)
				return leader != bad
			})
		}
		for range 5 {
			check.NoError(t, leader.cluster.Commit(run, put(n), nil))
			n++
		}
		check.NoError(t, disk.Heal())
		allSame(t, list, len(leader.records()))
		check.Equal(t, "trouble afterwards", bad.cluster.Status().Refused, "")
		for _, m := range list {
			m.stop()
		}
	}
}

// At the same time, of three members one has a full disk, one with a slow disk leads, and one comes back with an old disk. Each
// acknowledged commit is there afterwards, and each of the three logs in one line what is wrong with it.
func TestMembersFullSlowAndOld(t *testing.T) {
	list := newMembers(t, 3)
	full, slow, old := list[0], list[1], list[2]
	var disks []*baddisk.Disk
	for _, m := range []*member{full, slow} {
		disk, at := must(baddisk.New(t.TempDir())), t.TempDir()
		t.Cleanup(func() { check.NoError(t, disk.Close()) })
		check.NoError(check.Fatal(t), disk.Mount(at))
		m.dir = filepath.Join(at, "data")
		disks = append(disks, disk)
	}
	t.Cleanup(func() {
		for _, m := range list {
			m.stop()
		}
	})
	for _, m := range list {
		m.start()
	}
	n := 0
	commit := func() {
		ops := put(n)
		ops[0].Value = bytes.Repeat([]byte{byte(n)}, 64<<10)
		check.Until(t, 30*time.Second, "the slow one leads, and it is acknowledged", func() bool {
			run, _, _ := slow.cluster.Leadership()
			if run == 0 {
				slow.cluster.Lead()
			}
			return run != 0 && slow.cluster.Begin(run) == nil && slow.cluster.Commit(run, ops, nil) == nil
		})
		n++
	}
	led(t, list)
	commit()
	allSame(t, list, n)
	old.stop()
	kept := filepath.Join(t.TempDir(), "kept")
	copyDir(t, old.dir, kept)
	old.start()
	for range 10 {
		commit()
	}
	allSame(t, list, n)

	filler := filepath.Join(filepath.Dir(full.dir), "filler")
	fill(t, filler)
	check.NoError(t, disks[1].Fail(baddisk.Failure{Slow: 200 * time.Millisecond}))
	old.die()
	old.dir = kept
	old.start()
	began := time.Now()
	for range 10 {
		commit()
	}
	took := time.Since(began)
	for m, says := range map[*member]string{full: "cannot write its journal", slow: "the disk of this member of the site is slow", old: "its disk is an old one"} {
		check.Until(t, 30*time.Second, "it says so: "+says, func() bool { return m.log.has(says) })
		check.True(t, "in one line a minute", strings.Count(m.log.all(), says) <= 1+int(time.Since(began).Minutes()), m.log.all())
	}
	check.Contains(t, "the full one's status", full.cluster.Status().Refused, "no space")
	check.NoError(t, os.Remove(filler))
	check.NoError(t, disks[1].Heal())
	allSame(t, list, n)
	check.Equal(t, "trouble afterwards", full.cluster.Status().Refused, "")
	t.Logf("10 commits took %v, after the old disk was there; of %d acknowledged 0 are lost", took.Round(time.Millisecond), n)
}

// fill fills a file system, to the last octet, with a file.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	check.NoError(check.Fatal(t), err)
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	_ = f.Sync()
}
