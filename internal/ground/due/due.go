// Package due helps state machines to say when something is due, how often it may happen, and whether it has happened before. A
// zero time means never. It is pure.
//
// Files: due.go the earlier and the later of two times, and a heap of deadlines; rate.go token buckets; seldom.go events that
// may happen once in a while; tally.go counts, each reported at most once a minute; recent.go the last of many keys.
package due

import "time"

// Earliest is the earlier of two times; never is later than any.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Latest is the later of two times; any is later than never.
func Latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Reached says whether now is at or past a time; never is not reached.
func Reached(now, at time.Time) bool { return !at.IsZero() && !now.Before(at) }

// Item is an element of a Heap.
type Item[T any] interface {
	Before(T) bool
	Placed(int) // gets its place in the heap, from 1; 0: no longer there. An item that needs neither Set nor Remove ignores it
}

// Heap is a binary heap: its element 0 is before all others, which are in no order. The zero value is empty. It works like
// container/heap, step by step, without boxing its elements.
type Heap[T Item[T]] []T

// Push adds an item.
func (h *Heap[T]) Push(x T) {
	*h = append(*h, x)
	h.up(len(*h) - 1)
}

// Pop removes the first item, and returns it.
func (h *Heap[T]) Pop() T {
	x := (*h)[0]
	h.Remove(1)
	return x
}

// Set adds an item (place 0), or moves it after its order has changed.
func (h *Heap[T]) Set(x T, place int) {
	if place == 0 {
		h.Push(x)
	} else if i := place - 1; !h.down(i) {
		h.up(i)
	}
}

// Remove removes the item at a place; with 0 it does nothing.
func (h *Heap[T]) Remove(place int) {
	if place == 0 {
		return
	}
	i, n := place-1, len(*h)-1
	x := (*h)[i]
	(*h)[i] = (*h)[n]
	clear((*h)[n:])
	*h = (*h)[:n]
	if i < n && !h.down(i) {
		h.up(i)
	}
	x.Placed(0)
}

// up moves element i towards the front while it is before its parent.
func (h *Heap[T]) up(i int) {
	list, x := *h, (*h)[i]
	for i > 0 && x.Before(list[(i-1)/2]) {
		list[i] = list[(i-1)/2]
		list[i].Placed(i + 1)
		i = (i - 1) / 2
	}
	list[i] = x
	x.Placed(i + 1)
}

// down moves element i towards the back while a child is before it, and returns whether it moved.
func (h *Heap[T]) down(i int) bool {
	list, x, from := *h, (*h)[i], i
	for {
		next := 2*i + 1
		if next+1 < len(list) && list[next+1].Before(list[next]) {
			next++
		}
		if next >= len(list) || !list[next].Before(x) {
			break
		}
		list[i] = list[next]
		list[i].Placed(i + 1)
		i = next
	}
	list[i] = x
	x.Placed(i + 1)
	return i > from
}
