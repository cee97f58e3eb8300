package air

import (
	"math/rand/v2"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// load makes posts for a link, without their data.
type load func(rng *rand.Rand, p profile.Profile) []Post

// steady lets sites send in turn, together at a share of the rate, for the time lasting.
func steady(froms []int, octets int, share float64, lasting time.Duration) load {
	return func(_ *rand.Rand, p profile.Profile) (posts []Post) {
		every := time.Duration(float64(profile.Airtime(octets, p.Sending(froms[0] == 0 && !p.Shared).RateBps)) / share)
		for i := range int(lasting / every) {
			posts = append(posts, Post{At: time.Duration(i) * every, From: froms[i%len(froms)], Data: make([]byte, octets)})
		}
		return posts
	}
}

// poisson lets sites send at random times, together at a share of the rate, for the time lasting.
func poisson(froms []int, octets int, share float64, lasting time.Duration) load {
	return func(rng *rand.Rand, p profile.Profile) (posts []Post) {
		mean := float64(profile.Airtime(octets, p.Up.RateBps)) / share
		for at := time.Duration(0); ; {
			at += time.Duration(rng.ExpFloat64() * mean)
			if at >= lasting {
				return posts
			}
			posts = append(posts, Post{At: at, From: froms[rng.IntN(len(froms))], Data: make([]byte, octets)})
		}
	}
}

// apart lets a site send n messages, one every interval; zero: all at once.
func apart(from, n, octets int, every time.Duration) load {
	return func(*rand.Rand, profile.Profile) (posts []Post) {
		for i := range n {
			posts = append(posts, Post{At: time.Duration(i) * every, From: from, Data: make([]byte, octets)})
		}
		return posts
	}
}

// as gives posts a class and a precedence, and lets one of the local peers of their sites send them.
func (l load) as(class string, peer int, precedence site.Precedence) load {
	return func(rng *rand.Rand, p profile.Profile) []Post {
		posts := l(rng, p)
		for i := range posts {
			posts[i].Class, posts[i].Precedence, posts[i].Peer = class, precedence, peer
		}
		return posts
	}
}

// both plays two loads at the same time.
func both(a, b load) load {
	return func(rng *rand.Rand, p profile.Profile) []Post { return append(a(rng, p), b(rng, p)...) }
}

// upTo is the first n sites.
func upTo(n int) (sites []int) {
	for k := range n {
		sites = append(sites, k)
	}
	return sites
}
