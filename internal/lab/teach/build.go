package teach

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"aldis/internal/link/compact"
)

// ErrNothing is returned if there is nothing to learn.
var ErrNothing = errors.New("teach: these samples are of no use: no kind of message shrinks by more than 2 %")

// Bounds of a build.
const (
	FirstRoom  = 24 << 10 // octets of one kind in a corpus, unless more of them gain something
	MostHeld   = 400      // messages that are held back for measurement, of all kinds
	heldOfKind = 20
	holdEach   = 5   // one sample in so many is held back
	leastGain  = 50  // a kind is worth its room if it gains one of so many octets,
	roomGain   = 100 // and twice the room if that gains one of so many
)

// Sample is a message for a corpus, and its origin.
type Sample struct {
	Text []byte
	From string
}

// Report is the results of a build.
type Report struct {
	Name     string         `json:"corpus"` // the first octets of its hash, as gateways name it
	Octets   int            `json:"octets"` // of the file
	Messages int            `json:"messages"`
	Kinds    []compact.Kind `json:"kinds"`
	Repeated int            `json:"repeated"` // samples that were duplicates
	Long     int            `json:"too_long"` // samples longer than compact.MaxCorpusMessage: their beginning was taken
	Private  []Private      `json:"private,omitempty"`
	Masked   bool           `json:"masked"`
}

// Options of a build.
type Options struct {
	Mask     bool                 // secrets and personal names are replaced
	Progress func(done, most int) // nil: no calls
}

// kindOf is the samples of a kind while a corpus is built.
type kindOf struct {
	compact.Kind
	own, held [][]byte
	room      int     // octets that the kind may have, if the corpus has them
	cut       bool    // this limit, not the size of a corpus, cuts its samples
	before    float64 // After with half the room; 0: this is the first round
	sated     bool    // more room gained nothing
}

// Build makes a corpus file.
func Build(samples []Sample, o Options) (file []byte, r Report, err error) {
	texts := r.take(samples, o.Mask)
	kinds := sorted(texts)
	for again := true; again; {
		_, f, err := corpusOf(kinds)
		if err != nil {
			return nil, r, err
		}
		again = measure(kinds, f, o.Progress) || enlarge(kinds)
	}
	for _, k := range kinds {
		k.giveBack()
	}
	file, f, err := corpusOf(kinds)
	if err != nil {
		return nil, r, err
	}
	r.Name, r.Octets, r.Messages = fmt.Sprintf("%x", f.Hash[:4]), len(file), len(f.Messages)
	for _, k := range kinds {
		for _, figure := range []*float64{&k.Octets, &k.Before, &k.After} {
			*figure = math.Round(*figure*10) / 10
		}
		r.Kinds = append(r.Kinds, k.Kind)
	}
	return file, r, nil
}

// corpusOf is the corpus of the samples chosen now, as a file and read.
func corpusOf(kinds []*kindOf) (file []byte, f *compact.CorpusFile, err error) {
	if file, err = compact.AppendCorpus(nil, chosen(kinds)); err != nil {
		return nil, nil, ErrNothing
	}
	f, err = compact.ReadCorpus(file)
	return file, f, err
}

// giveBack adds the held-back samples to the corpus after all measurements: with extra room if more room gained something.
func (k *kindOf) giveBack() {
	if k.room > FirstRoom {
		for _, t := range k.held {
			k.room += len(t)
		}
	}
	k.own = append(k.own, k.held...)
	byHash(k.own)
}

// enlarge gives twice the room to kinds that the limit has cut, and takes it back from those that gained nothing by it. It says whether
// the corpus has to be built once more.
func enlarge(kinds []*kindOf) (again bool) {
	for _, k := range kinds {
		switch {
		case k.sated || k.LeftOut || len(k.held) == 0:
		case k.before > 0 && k.After > k.before*(1-1./roomGain):
			k.room, k.sated, again = k.room/2, true, true
		case k.cut:
			k.room, k.before, again = 2*k.room, k.After, true
		}
	}
	return again
}

// take returns each text once, by its hash, and notes the private things in them.
func (r *Report) take(samples []Sample, mask bool) (texts [][]byte) {
	r.Masked = mask
	from := map[string]string{}
	for _, s := range samples {
		switch text := string(s.Text); {
		case len(text) == 0:
		default:
			if len(text) > compact.MaxCorpusMessage {
				text = text[:compact.MaxCorpusMessage]
				r.Long++
			}
			if first, known := from[text]; !known || s.From < first {
				from[text] = s.From
			}
		}
	}
	private := map[string]*Private{}
	unique := map[string]bool{}
	for _, text := range slices.Sorted(maps.Keys(from)) {
		masked := look([]byte(text), from[text], private)
		if mask {
			text = string(masked)
		}
		if len(text) > 0 {
			unique[text[:min(len(text), compact.MaxCorpusMessage)]] = true
		}
	}
	for _, what := range slices.Sorted(maps.Keys(private)) {
		r.Private = append(r.Private, *private[what])
	}
	r.Repeated = len(samples) - len(unique)
	for text := range unique {
		texts = append(texts, []byte(text))
	}
	byHash(texts)
	return texts
}

// byHash puts texts in an order that does not depend on their origin, kinds mixed, because a model knows best the texts that it read
// last.
func byHash(texts [][]byte) {
	sums := make(map[string][sha256.Size]byte, len(texts))
	for _, t := range texts {
		sums[string(t)] = sha256.Sum256(t)
	}
	slices.SortFunc(texts, func(a, b []byte) int {
		x, y := sums[string(a)], sums[string(b)]
		return bytes.Compare(x[:], y[:])
	})
}

// few is how many samples make a kind; fewer are of the kind "other".
const few = 3

// sorted returns the texts by kind: those held back, and those that may be taught.
func sorted(texts [][]byte) (kinds []*kindOf) {
	of := map[string][][]byte{}
	for _, t := range texts {
		of[compact.KindOf(t)] = append(of[compact.KindOf(t)], t)
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if len(of[name]) < few && name != compact.OtherKind {
			of[compact.OtherKind] = append(of[compact.OtherKind], of[name]...)
			delete(of, name)
		}
	}
	most := max(few, min(heldOfKind, MostHeld/max(1, len(of))))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		k := &kindOf{Kind: compact.Kind{Kind: name, Samples: len(of[name])}, room: FirstRoom}
		byHash(of[name])
		for i, t := range of[name] {
			if i%holdEach == holdEach-1 && len(k.held) < most {
				k.held = append(k.held, t)
			} else {
				k.own = append(k.own, t)
			}
		}
		k.Held = len(k.held)
		kinds = append(kinds, k)
	}
	return kinds
}

// chosen is the corpus's part of each kind that is not left out: equal shares, and the unused rest of a share goes to the other kinds.
func chosen(kinds []*kindOf) (list [][]byte) {
	var takers []*kindOf
	need := map[*kindOf]int{}
	for _, k := range kinds {
		k.Taught, k.TaughtOctets, k.NotTaken, k.Room = 0, 0, 0, 0
		if k.LeftOut {
			continue
		}
		for _, t := range k.own {
			need[k] += len(t)
		}
		k.cut = need[k] > k.room
		need[k] = min(need[k], k.room)
		takers = append(takers, k)
	}
	slices.SortStableFunc(takers, func(a, b *kindOf) int {
		if d := need[a] - need[b]; d != 0 {
			return d
		}
		return strings.Compare(a.Kind.Kind, b.Kind.Kind)
	})
	left := compact.MaxCorpus
	for i, k := range takers {
		share := min(need[k], left/(len(takers)-i))
		k.cut = k.cut && share == k.room
		for _, t := range k.own {
			if k.TaughtOctets+len(t) <= share && len(list) < compact.MaxCorpusMessages {
				list = append(list, t)
				k.Taught++
				k.TaughtOctets += len(t)
			}
		}
		k.NotTaken = len(k.own) - k.Taught
		if k.NotTaken > 0 {
			k.Room = share
		}
		left -= k.TaughtOctets
	}
	byHash(list)
	return list
}

// measure fills in the gains of the kinds, and leaves out those that gain nothing; it says whether it left one out.
func measure(kinds []*kindOf, f *compact.CorpusFile, progress func(done, most int)) (left bool) {
	most, done := 0, 0
	for _, t := range f.Messages {
		most += len(t)
	}
	learned := most
	for _, k := range kinds {
		for _, t := range k.held {
			most += 2 * len(t)
		}
	}
	told := func(octets int) {
		done += octets
		if progress != nil {
			progress(done, most)
		}
	}
	told(0)
	plain, taught := compact.Coder{}, compact.Coder{Network: f.Learn()}
	told(learned)
	for _, k := range kinds {
		k.Octets, k.Before, k.After = 0, 0, 0
		for _, t := range k.held {
			before, _ := plain.Append(nil, t)
			after, _ := taught.Append(nil, t)
			n := float64(len(k.held))
			k.Octets += float64(len(t)) / n
			k.Before += float64(1+len(before)) / n
			k.After += float64(1+len(after)) / n
			told(2 * len(t))
		}
		if !k.LeftOut && len(k.held) > 0 && k.After > k.Before*(1-1./leastGain) {
			k.LeftOut, left = true, true
		}
	}
	return left
}
