package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// settledAll waits until one of the three leads, and both others follow it with its whole journal.
func (w *siteOfTwo) settledAll(t *testing.T) (leader int) {
	t.Helper()
	within(t, patience, "one leads, and the others could", func() bool {
		leader = w.leader()
		if leader < 0 {
			return false
		}
		for i := range w.machines {
			if s, ok := w.of(i); i != leader && (!ok || s.Role != "following" || !s.Whole) {
				return false
			}
		}
		return true
	})
	return leader
}

// The leader of a site of three, another member, or two of them at once are killed at random, while peers of all machines and of a far
// site send messages. Another machine takes over within the bound, and the far site hears it. Two machines never transmit at the same
// time, no accepted message is lost, and none comes twice except at the last metre.
func TestSiteOfThreeTakesOver(t *testing.T) {
	t.Parallel()
	w := newSiteOf(t, 3, false)
	for i := range w.machines {
		w.start(t, i)
	}
	w.settledAll(t)
	g := startGossip(t, []string{w.hq.lan, w.sites[0].lan, w.sites[1].lan, w.sites[2].lan}, 283)
	g.mu.Lock()
	g.local = map[int]int{1: 1, 2: 1, 3: 1}
	g.mu.Unlock()
	g.meet(t, patience)
	rng := rand.New(rand.NewPCG(283, 1))
	var served, heard []time.Duration
	for kill := range siteKills {
		first := w.settledAll(t)
		more := g.arrivals() + rng.IntN(30)
		g.until(t, patience, "some messages more", func() bool { return g.arrivals() >= more })
		victims := []int{first}
		switch rng.IntN(5) * min(kill, 1) {
		case 3:
			victims = []int{(first + 1) % 3}
		case 4:
			victims = []int{first, (first + 1) % 3}
		}
		for _, v := range victims {
			w.stop(t, v, syscall.SIGKILL)
		}
		for i := range w.machines {
			g.died(1 + i)
		}
		if slices.Equal(victims, []int{first}) {
			since := time.Now()
			next := -1
			served = append(served, within(t, 10*time.Second, "another one leads", func() bool { next = w.leader(); return next >= 0 }))
			within(t, 15*time.Second, "the far site hears it", func() bool { return w.wires[next].last().After(since) })
			heard = append(heard, time.Since(since))
		}
		for _, v := range victims {
			w.start(t, v)
		}
	}
	last := w.settledAll(t)
	g.settle(t, 2*time.Minute)
	_, _, _, _, faults := g.tally()
	check.Equal(t, "faults", fmt.Sprint(faults), "[]")
	is, _ := w.of(last)
	changes, pieces := w.changes()
	check.True(t, "each leadership's datagrams are one piece", changes < int(is.Epoch), changes, is.Epoch, pieces)
	slices.Sort(served)
	slices.Sort(heard)
	t.Logf("%d kills: another one leads after %v, at most %v; the far site hears it after %v, at most %v; %s", siteKills,
		served[len(served)/2], served[len(served)-1], heard[len(heard)/2], heard[len(heard)-1], g.summary())
}

// A leader that is stopped, and resumed after another one led, transmits nothing; gateway site names the members, and hands over by
// order.
func TestSiteOfThreeByOrder(t *testing.T) {
	t.Parallel()
	w := newSiteOf(t, 3, false)
	for i := range w.machines {
		w.start(t, i)
	}
	first := w.settledAll(t)
	check.NoError(t, w.machines[first].cmd.Process.Signal(syscall.SIGSTOP))
	next := -1
	within(t, patience, "another one leads", func() bool { next = w.leader(); return next >= 0 && next != first })
	last := w.wires[first].last()
	within(t, patience, "it transmits", func() bool { return w.wires[next].last().After(last) })
	check.NoError(t, w.machines[first].cmd.Process.Signal(syscall.SIGCONT))
	check.Equal(t, "leader", w.settledAll(t), next)
	check.Equal(t, "datagrams of the one that was stopped, after it", w.wires[first].last().Sub(last), 0)
	site := func(i int, args ...string) string {
		code, out, errs := run(t, append([]string{"site", "-c", w.sites[i].file}, args...)...)
		check.Equal(t, "exit of "+strings.Join(args, " "), code, 0)
		return out + errs
	}
	metrics := ""
	within(t, patience, "the leader is connected with all, with the one that was stopped again", func() bool {
		_, metrics = w.machines[next].get("/metrics")
		return len(regexp.MustCompile(`(?m)^aldis_site_member_connected.* 1$`).FindAllString(metrics, -1)) == 3
	})
	text := site(next, "status")
	check.Contains(t, "status", text, "on 2 disks of 3")
	check.Equal(t, "members of the status", strings.Count(text, "\nmember "), 3)
	check.Contains(t, "status", text, "nothing of it would be lost")
	others := 0
	for i, at := range w.listens {
		check.Contains(t, "metrics", metrics, fmt.Sprintf("\naldis_site_member_connected{member=%q} 1\n", at))
		leads := 0
		if i == next {
			leads = 1
		}
		check.Contains(t, "metrics", metrics, fmt.Sprintf("\naldis_site_member_leads{member=%q} %d\n", at, leads))
		for _, of := range []string{"commits", "octets", "seconds"} {
			others += strings.Count(metrics, fmt.Sprintf("\naldis_site_member_behind_%s{member=%q} ", of, at))
		}
	}
	check.Equal(t, "how far the others are behind: metrics", others, 6)
	s, _ := w.of(first)
	check.True(t, "a follower says who leads since when", s.Other == w.listens[next] && !s.LedSince.IsZero(), s)
	code, out, errs := run(t, "status", "-c", w.sites[next].file)
	check.True(t, "gateway status names the members", code == 0 && strings.Count(out, "\nmember ") == 3 && strings.Contains(out, "leads (this machine), since "), out, errs)
	code, out, errs = run(t, "status", "-c", w.sites[first].file)
	check.True(t, "gateway status of a follower names the leader", code == 1 && strings.Contains(out+errs, "Ask the leader, "+w.listens[next]), out, errs)
	w.stop(t, first, syscall.SIGKILL)
	within(t, 10*time.Second, "it is said that one is away", func() bool {
		text := site(next, "status")
		return strings.Contains(text, "NOBODY WOULD LEAD") && strings.Contains(text, "member "+w.listens[first]+": NOT CONNECTED, since ")
	})
	w.start(t, first)
	w.settledAll(t)
	check.Contains(t, "lead", site(first, "lead"), "this machine is leading")
	check.Equal(t, "leader", w.settledAll(t), first)
	site(first, "retire")
	w.stop(t, w.settledAll(t), syscall.SIGTERM)
	within(t, patience, "another one leads", func() bool { return w.leader() >= 0 })
}

// A backup of the leader is restored on another member while peers send messages: the others report what it lacks, and nothing is lost.
// Then all lose their journals: the backup is restored on one, and the site goes on from it.
func TestSiteOfThreePutBack(t *testing.T) {
	t.Parallel()
	w := newSiteOf(t, 3, false)
	for i := range w.machines {
		w.start(t, i)
	}
	first := w.settledAll(t)
	g := startGossip(t, []string{w.hq.lan, w.sites[first].lan}, 285)
	g.meet(t, patience)
	file := filepath.Join(w.hq.dir, "site.db")
	command := func(i int, args ...string) {
		code, out, errs := run(t, append(args, "-c", w.sites[i].file)...)
		check.Equal(t, strings.Join(args, " ")+": "+out+errs, code, 0)
	}
	other := (first + 1) % 3
	code, out, errs := run(t, "backup", file, "-c", w.sites[other].file)
	check.True(t, "a backup of a member that does not lead", code != 0 && strings.Contains(out+errs, "Ask the leader, "+w.listens[first]), out, errs)
	command(first, "backup", file)
	more := 0
	g.until(t, patience, "some messages more", func() bool {
		if more == 0 {
			more = g.arrivals() + 40
		}
		return g.arrivals() >= more
	})
	w.stop(t, other, syscall.SIGTERM)
	command(other, "restore", file)
	w.start(t, other)
	check.Equal(t, "leader", w.settledAll(t), first)
	check.True(t, "it is told what it lacks", regexp.MustCompile(`"lacked_commits":[1-9]|lacked_commits=[1-9]`).MatchString(w.machines[other].logged()), w.machines[other].logged())
	g.settle(t, time.Minute)
	_, _, _, _, faults := g.tally()
	check.Equal(t, "faults", fmt.Sprint(faults), "[]")
	command(first, "backup", file+".2")
	for i := range w.machines {
		w.stop(t, i, syscall.SIGTERM)
		check.NoError(t, os.RemoveAll(filepath.Join(w.sites[i].dir, "data")))
	}
	command(other, "restore", file+".2")
	for i := range w.machines {
		w.start(t, i)
	}
	w.settledAll(t)
	g.mu.Lock()
	g.quiet = false
	more = g.arrivals() + 20
	g.mu.Unlock()
	g.until(t, time.Minute, "the far site and this one talk again", func() bool { return g.arrivals() >= more })
}
