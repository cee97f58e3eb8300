package jxtabridge

import (
	"container/list"
	"time"

	"aldis/internal/advcache"
)

// question is a query that nothing was known for when it came.
type question struct {
	until time.Time
	wish
	queryID   int
	threshold int    // discovery
	kind      string // pipe resolver: pipe type as asked

	all, mine *list.Element // its places in questions.all and in those of its peer
}

// wish is what makes two questions the same but for the listener in the asking peer.
type wish struct {
	peer    string // asker
	group   string
	handler string            // of the resolver
	ask     advcache.Question // discovery
	pipe    string            // pipe resolver
}

const repeats = 4 // query ids remembered of one wish: each has its own listener in the asking peer

// questions are those that wait for an answer, oldest first.
type questions struct {
	all    list.List             // of *question
	byPeer map[string]*list.List // of the same
	same   map[wish][]*question
}

func newQuestions() questions {
	return questions{byPeer: map[string]*list.List{}, same: map[wish][]*question{}}
}

func (q *questions) count() int { return q.all.Len() }

func (q *questions) add(x *question) {
	x.all = q.all.PushBack(x)
	mine := q.byPeer[x.peer]
	if mine == nil {
		mine = list.New()
		q.byPeer[x.peer] = mine
	}
	x.mine = mine.PushBack(x)
	q.same[x.wish] = append(q.same[x.wish], x)
}

func (q *questions) drop(x *question) {
	q.all.Remove(x.all)
	mine := q.byPeer[x.peer]
	if mine.Remove(x.mine); mine.Len() == 0 {
		delete(q.byPeer, x.peer)
	}
	same := q.same[x.wish]
	for i, o := range same {
		if o == x {
			same = append(same[:i:i], same[i+1:]...)
			break
		}
	}
	if q.same[x.wish] = same; len(same) == 0 {
		delete(q.same, x.wish)
	}
}

// answer drops the questions for which f answers true, oldest first.
func (q *questions) answer(f func(*question) bool) {
	for e := q.all.Front(); e != nil; {
		x := e.Value.(*question)
		e = e.Next()
		if f(x) {
			q.drop(x)
		}
	}
}

// forget drops a peer's questions in a group.
func (q *questions) forget(peer, group string) {
	mine := q.byPeer[peer]
	if mine == nil {
		return
	}
	for e := mine.Front(); e != nil; {
		x := e.Value.(*question)
		e = e.Next()
		if x.group == group {
			q.drop(x)
		}
	}
}

// oldest is when the next question ends; zero: there is none. All live equally long.
func (q *questions) oldest() time.Time {
	if e := q.all.Front(); e != nil {
		return e.Value.(*question).until
	}
	return time.Time{}
}

// expire drops what has waited long enough.
func (q *questions) expire(now time.Time) {
	for t := q.oldest(); !t.IsZero() && !now.Before(t); t = q.oldest() {
		q.drop(q.all.Front().Value.(*question))
	}
}

// rememberQuestion keeps a question until somebody can answer it.
func (b *Bridge) rememberQuestion(x question) {
	if b.peers[x.peer] == nil {
		return // a stranger's: it asks again, or takes a lease
	}
	q := &b.questions
	x.until = b.now.Add(b.cfg.Question)
	for _, o := range q.same[x.wish] {
		if o.queryID == x.queryID {
			q.drop(o)
			break
		}
	}
	if same := q.same[x.wish]; len(same) >= repeats {
		q.drop(same[0])
	}
	if mine := q.byPeer[x.peer]; mine != nil && mine.Len() >= max(1, b.cfg.MaxQuestions/8) {
		q.drop(mine.Front().Value.(*question))
	} else if q.count() >= b.cfg.MaxQuestions {
		q.drop(q.all.Front().Value.(*question))
	}
	q.add(&x)
	b.until(x.until)
}
