package jxtabridge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// listens has a peer begin to listen to pipe1, or stop.
func (f *fake) listens(open bool) {
	f.n.Helper()
	f.pipe(jxta.NetGroup, pipe1, jxta.PipeTypePropagate, open)
}

// news lists the news of listeners since the last time: the owner, or "somebody" where there is none.
func (n *node) news() (list []string) {
	for _, it := range n.items {
		if it.Kind != site.Listener {
			continue
		}
		what := strings.Replace(it.Owner, "uuid-", "", 1)
		if what == "" {
			what = "somebody"
		}
		if it.Gone {
			what += " gone"
		}
		list = append(list, what)
	}
	return list
}

// While one peer listens to a propagate pipe, no other that begins or ends to listen is news to far sites, whichever was the first. The
// messages of far sites reach all who listen meanwhile.
func TestListenersBesideOthersAreNoNews(t *testing.T) {
	a, b := newNode(t, 1), patient(t, 2)
	fb, stays := b.peer("B", "uuid"), a.peer("stays", "cbid")
	first := a.peer("first", "uuid")
	first.listens(true)
	check.Same(t, "news of the first", a.news(), []string{"somebody"})
	join(a, b)
	said := uint64(0)
	cross := func() {
		for _, c := range b.takeCarry() { // join gives each message the same token, and some wait for peers that are away
			said++
			a.step(site.FarMessage{Site: 2, Token: said, Message: c.Message})
		}
		a.pass(time.Second)
	}
	say := func(hearers ...*fake) {
		t.Helper()
		text := fmt.Sprint("m-", said)
		fb.wire(jxta.NetGroup, pipe1, text, body(text))
		check.Equal(t, text+" goes to one site", len(b.carry), 1)
		check.Equal(t, "news before "+text, len(a.news()), 0)
		cross()
		for _, f := range hearers {
			check.Same(t, f.name+" hears", f.bodies(), []string{text})
		}
	}
	say(first)
	stays.listens(true)
	var crowd []*fake
	for i := range 20 {
		f := a.peer(fmt.Sprint("crowd ", i), []string{"uuid", "cbid"}[i%2])
		crowd = append(crowd, f)
		f.listens(true)
	}
	say(append(crowd, first, stays)...)
	first.listens(false)
	for i, f := range crowd {
		switch i % 3 {
		case 0:
			f.listens(false)
		case 1:
			f.disconnect(jxta.NetGroup)
		case 2:
			f.hangUp()
		}
	}
	say(stays)
	for range 3 { // the leases of those without a connection end
		stays.connect(jxta.NetGroup)
		a.pass(9 * time.Minute)
		stays.take()
	}
	check.Equal(t, "of the crowd, listeners left", len(a.b.outlets.listeners(pipeKey{jxta.NetGroup, pipe1})), 1)
	check.Equal(t, "news of a crowd", len(a.news()), 0)
	say(stays)

	stays.listens(false)
	check.Same(t, "news of the last", a.news(), []string{"somebody gone"})
	join(a, b)
	fb.wire(jxta.NetGroup, pipe1, "late", body("late"))
	check.Equal(t, "messages to a site where nobody listens", len(b.carry), 0)
	stays.listens(true)
	check.Same(t, "news of the next", a.news(), []string{"somebody"})
	check.Equal(t, "pipes that the far site knows", b.b.Status().Far[1].Pipes, 0)
	for _, it := range a.takeItems() {
		b.step(site.FarItem{Site: 1, Item: it})
	}
	cross()
	check.Same(t, "what it hears", stays.bodies(), []string{"late"})
}

// A peer that has gone is not taken to be at the site where it was the first to listen.
func TestFirstListenerMoves(t *testing.T) {
	a, b, c := newNode(t, 1), newNode(t, 2), newNode(t, 3)
	f, stays, fb := a.peer("moves", "uuid"), a.peer("stays", "uuid"), b.peer("B", "cbid")
	f.listens(true)
	stays.listens(true)
	join(a, b)
	f.disconnect(jxta.NetGroup)
	join(a, b)
	check.Equal(t, "site of the peer when it has gone", b.b.far.home(f.id), 0)
	f.n = c
	f.redial("")
	f.connect(jxta.NetGroup)
	join(c, b)
	check.Equal(t, "site of the peer", b.b.far.home(f.id), 3)
	fb.take()
	fb.ask(jxta.NetGroup, jxta.HandlerPipe, string(jxta.PipeResolver{Pipe: pipe1, Type: jxta.PipeTypePropagate}.Append(nil)))
	fb.silence("nobody is named")
	check.True(t, "no peer without a name is known", !b.b.far.knows(""))
}

// A restart while peers listen is no news, and later the last of them is.
func TestListenersAcrossARestart(t *testing.T) {
	a := patient(t, 1)
	var listeners []*fake
	for i := range 3 {
		f := a.peer(fmt.Sprint("A ", i), "uuid")
		f.listens(true)
		listeners = append(listeners, f)
	}
	check.Same(t, "news of three", a.news(), []string{"somebody"})
	want := fmt.Sprint(a.b.Items())
	for _, f := range listeners {
		a.takeItems()
		a.restart()
		check.Equal(t, "state after a restart", fmt.Sprint(a.b.Items()), want)
		a.step(nil)
		f.redial("")
		check.Equal(t, "news at a start", len(a.news()), 0)
		f.listens(false)
		if f == listeners[2] {
			check.Same(t, "news of the last", a.news(), []string{"somebody gone"})
			continue
		}
		check.Equal(t, "news of another", len(a.news()), 0)
	}
}

// An earlier version has named each listener to far sites. After a start by this one they know that somebody listens, and no name.
func TestListenersThatAnEarlierVersionNamed(t *testing.T) {
	a, b := patient(t, 1), newNode(t, 2)
	fb := b.peer("B", "uuid")
	join(a, b)
	var listeners []*fake
	for i := range 2 {
		f := a.peer(fmt.Sprint("A ", i), "uuid")
		f.listens(true)
		listeners = append(listeners, f)
		a.memory[memPeer+f.id] = []byte(strings.Replace(string(a.memory[memPeer+f.id]), `,"untold":true`, "", 1))
	}
	a.takeItems()
	for _, f := range listeners {
		b.step(site.FarItem{Site: 1, Item: pipeItem(f.id, pipeKey{jxta.NetGroup, pipe1}, PipePropagate)})
	}
	check.Equal(t, "listeners that the far site knows", len(b.b.far.sites[1].pipes[pipeKey{jxta.NetGroup, pipe1}]), 2)
	a.restart()
	a.step(nil)
	join(a, b)
	check.Same(t, "listeners that the far site knows after a start", b.b.far.sites[1].pipeOwners(pipeKey{jxta.NetGroup, pipe1}), []string{""})
	a.restart()
	a.step(nil)
	check.Equal(t, "news at the next start", len(a.takeItems()), 0)
	listeners[0].redial("")
	fb.wire(jxta.NetGroup, pipe1, "m-1", body("one"))
	join(a, b)
	a.pass(6 * time.Second) // until its pipes are trusted
	check.Same(t, "what a listener hears", listeners[0].bodies(), []string{"one"})
	for _, f := range listeners {
		f.redial("")
		f.disconnect(jxta.NetGroup)
	}
	join(a, b)
	check.Equal(t, "pipes that the far site knows", b.b.Status().Far[1].Pipes, 0)
}
