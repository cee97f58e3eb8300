package pairlink

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/baddisk"
	"aldis/internal/lab/check"
)

// All members lose their power at once, again and again, on disks that forget what was not synced: what was acknowledged is there.
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

// A member whose disk fails says so and holds nobody up: a leader hands over, a follower acknowledges nothing. When the disk is well again the
// member has what it lacks.
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
