package jxtabridge

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// View says what other sites are told of the peers with a lease here. In every view, a site that knows a peer is told of its
// changes, and an open pipe names its peer.
type View string

// Views, from all to nothing. Each but the first also tells of a peer whose id somebody at the site looks for. Several views with + between
// them tell what each of them tells.
const (
	Complete View = "complete" // each peer
	Tree     View = "tree"     // tree(v): to at most v sites, chosen by a tree of all sites in which each knows v others
	Random   View = "random"   // random(k): to k sites
	Ring     View = "ring"     // to the two sites next to the peer on a ring of all
	Ask      View = "ask"      // each peer whose name, or a part of it, somebody there looks for
	Count    View = "count"    // how many peers there are in each group
	Site     View = "site"     // whether there are any peers in each group
	Blind    View = "blind"    // nothing
	ByBearer View = "bearer"   // Ask over a thin bearer, Complete over others; never with another view
)

// Bounds of random(k) and tree(v).
const (
	LeastSize = 1
	MostSize  = 64
)

// Parts are the parts of a view, with their sizes; the error says why the text is not a view.
func (v View) Parts() (parts map[View]int, err error) {
	parts = map[View]int{}
	if v == ByBearer {
		return map[View]int{ByBearer: 0}, nil
	}
	for _, each := range strings.Split(string(v), "+") {
		name, size := each, 0
		if head, rest, sized := strings.Cut(each, "("); sized {
			digits, closed := strings.CutSuffix(rest, ")")
			n, err := strconv.Atoi(digits)
			if err != nil || !closed || n < LeastSize || n > MostSize {
				return nil, fmt.Errorf("%q: a view has a size of %d to %d in parentheses: random(3)", each, LeastSize, MostSize)
			}
			name, size = head, n
		}
		view := View(name)
		if !slices.Contains([]View{Complete, Tree, Random, Ring, Ask, Count, Site, Blind}, view) || (view == Tree || view == Random) != (size > 0) {
			return nil, fmt.Errorf("%q is no view: complete, ask, count, site, blind, ring, random(k), tree(v), some of them with + between them, or bearer", each)
		}
		if _, twice := parts[view]; twice {
			return nil, fmt.Errorf("%q is in the view twice", name)
		}
		parts[view] = size
	}
	return parts, nil
}

// viewParts are the parts of a view, with their sizes. A text that is not a view is Blind.
type viewParts map[View]int

func partsOf(v View) viewParts {
	parts, err := v.Parts()
	if err != nil {
		return viewParts{Blind: 0}
	}
	return parts
}

func (p viewParts) has(v View) bool { _, has := p[v]; return has }

// marks is the view whose item of the kind site.Endpoint says that a site does not tell of all its peers; "": none, or its
// numbers say so.
func (p viewParts) marks() View {
	switch {
	case p.has(Complete), !p.has(Ask) && p.numbers() != "":
		return ""
	case p.has(Ask):
		return Ask
	}
	return Blind
}

// numbers is the number that is told: Count, Site, or "".
func (p viewParts) numbers() View {
	switch {
	case p.has(Count):
		return Count
	case p.has(Site):
		return Site
	}
	return ""
}

// answers says whether a site is told of a peer whose name it looks for.
func (p viewParts) answers() bool { return p.has(Ask) || p.has(Complete) }

// near says whether some sites are told of a peer from its lease on.
func (p viewParts) near() bool { return p.has(Ring) || p.has(Random) || p.has(Tree) }

// spot is the place of texts on a circle of hashes, the same at all gateways.
func spot(of ...string) uint64 {
	h := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return binary.BigEndian.Uint64(h[:])
}

// neighbours are those among sites that are told of a peer in a group from its lease on.
func (p viewParts) neighbours(sites []uint16, peer, group string) (told []uint16) {
	if !p.near() || len(sites) == 0 {
		return nil
	}
	ringed := slices.Clone(sites)
	slices.SortFunc(ringed, func(a, b uint16) int {
		return cmp.Compare(spot("site", strconv.Itoa(int(a)), group), spot("site", strconv.Itoa(int(b)), group))
	})
	n, at := len(ringed), spot("peer", peer, group)
	if p.has(Ring) {
		next := sort.Search(n, func(i int) bool { return spot("site", strconv.Itoa(int(ringed[i])), group) >= at })
		told = append(told, ringed[next%n], ringed[(next+n-1)%n])
	}
	if v := p[Tree]; p.has(Tree) { // a heap, in which each site has one above it and v-1 below: the neighbours of the site where the peer hangs
		i, below := int(at%uint64(n)), max(v-1, 1)
		near := []int{i, (i - 1) / below}
		for k := range below {
			near = append(near, below*i+1+k)
		}
		for _, k := range near[:min(v, len(near))] {
			if k >= 0 && k < n {
				told = append(told, ringed[k])
			}
		}
	}
	if k := p[Random]; p.has(Random) {
		slices.SortFunc(ringed, func(a, b uint16) int {
			return cmp.Compare(spot(strconv.Itoa(int(a)), peer, group), spot(strconv.Itoa(int(b)), peer, group))
		})
		told = append(told, ringed[:min(k, n)]...)
	}
	slices.Sort(told)
	return slices.Compact(told)
}
