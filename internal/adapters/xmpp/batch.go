package xmpp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// batches are lines that wait for others of the same sender to the same receivers, if each message costs a header of its own
// (Config.Gather). The Step in which a line was sent writes it to the journal.
type batches struct {
	all map[string]*batch
	at  time.Time // when the first of them goes, or earlier; zero: there is none
}

type batch struct {
	site.Carry
	lines  [][]byte
	octets int      // of the lines
	first  uint64   // token of the first line, which is the token of the message
	of     []uint32 // counts of the lines in numbers; the count of the first names the batch
	kept   []string // keys of the lines in the journal
	at     time.Time
}

// Bounds of a batch.
const (
	mostBatch       = 64
	mostBatchOctets = 4 << 10
	ofBatch         = math.MaxUint64 // token of a far line that is not the last of its batch
	keyBatch        = "b"            // its key, 0, number of the line: texts of the message, precedence, end, first token, sites, count and line
)

// gather takes those lines that are to wait for others out of the messages of a Step.
func (f *Adapter) gather(now time.Time) {
	if f.cfg.Gather == 0 {
		return
	}
	said := f.out.Carry
	f.out.Carry = nil
	for _, c := range said {
		if !f.waits(now, c) {
			f.out.Carry = append(f.out.Carry, c)
		}
	}
}

// waits puts a line into a batch; false: it does not wait for others.
func (f *Adapter) waits(now time.Time, c site.Carry) bool {
	m := &c.Message
	if len(m.Parts) != 1 || !code.IsMessage(m.Parts[0].Data) || m.Published && !strings.HasPrefix(m.Topic, roomTopic) || m.Precedence.Rank() > site.Routine.Rank() {
		return false
	}
	data := m.Parts[0].Data
	key := fmt.Sprintf("%v %v %q %q %q %d %v", c.Sites, m.Token != 0, m.Topic, m.From, m.To, m.Precedence, m.Expires.Sub(now))
	b := f.batches.all[key]
	if b == nil || len(b.lines) >= mostBatch || b.octets+len(data) > mostBatchOctets {
		if f.flush(key); len(data) > mostBatchOctets {
			return false
		}
		b = &batch{Carry: c, first: m.Token, at: now.Add(f.cfg.Gather)}
		f.batches.add(key, b)
	}
	b.add(uint32(m.Token), data)
	f.rememberLast(key, b)
	return true
}

func (b *batch) add(count uint32, line []byte) {
	b.lines, b.of = append(b.lines, line), append(b.of, count)
	b.octets += len(line)
}

func (a *batches) add(key string, b *batch) {
	a.all[key], a.at = b, due.Earliest(a.at, b.at)
}

// flush sends a batch.
func (f *Adapter) flush(key string) {
	b := f.batches.all[key]
	if b == nil {
		return
	}
	delete(f.batches.all, key)
	for _, kept := range b.kept {
		f.remember(kept, nil)
	}
	b.Message.Parts = []site.Part{{Data: code.AppendBatch(nil, b.lines)}}
	b.Message.Token = b.first
	if n := f.numbers[uint16(b.first>>32)]; n != nil && b.first != 0 && len(b.of) > 1 {
		for _, count := range b.of {
			n.join(count, b.of[0])
		}
	}
	f.out.Carry = append(f.out.Carry, b.Carry)
}

func (f *Adapter) turnBatches(now time.Time) {
	if !due.Reached(now, f.batches.at) {
		return
	}
	f.batches.at = time.Time{}
	for _, key := range slices.Sorted(maps.Keys(f.batches.all)) {
		if at := f.batches.all[key].at; due.Reached(now, at) {
			f.flush(key)
		} else {
			f.batches.at = due.Earliest(f.batches.at, at)
		}
	}
}

// rememberLast saves the last line of a batch with the properties of the batch, so that it survives a restart.
func (f *Adapter) rememberLast(key string, b *batch) {
	m, last := &b.Message, len(b.lines)-1
	texts := []string{m.Topic, m.From, m.To, strconv.Itoa(int(m.Precedence)), strconv.FormatInt(m.Expires.UnixMilli(), 10), strconv.FormatUint(b.first, 10)}
	sites := ""
	for _, id := range b.Sites {
		sites += string(binary.BigEndian.AppendUint16(nil, id))
	}
	value := appendTexts(nil, append(texts, sites)...)
	value = appendTexts(binary.BigEndian.AppendUint32(value, b.of[last]), string(b.lines[last]))
	kept := keyBatch + key + "\x00" + string(binary.BigEndian.AppendUint16(nil, uint16(last)))
	b.kept = append(b.kept, kept)
	f.remember(kept, value)
}

// restoreBatch restores one or more lines of an earlier run, which go with their batch in the first Step.
func (f *Adapter) restoreBatch(key string, value []byte) error {
	kept := keyBatch + key
	key, _, _ = strings.Cut(key, "\x00")
	var short error
	text := func() (t string) {
		if short == nil {
			t, value, short = cutText(value)
		}
		return t
	}
	b := &batch{}
	m := &b.Message
	m.Topic, m.From, m.To = text(), text(), text()
	m.Published = m.Topic != ""
	precedence, err := strconv.Atoi(text())
	ends, err2 := strconv.ParseInt(text(), 10, 64)
	first, err3 := strconv.ParseUint(text(), 10, 64)
	sites := text()
	if err != nil || err2 != nil || err3 != nil || len(sites)%2 != 0 {
		return errShort
	}
	m.Precedence, m.Expires, b.first, m.Lasting, b.at = site.Precedence(precedence), time.UnixMilli(ends), first, first != 0, time.Unix(1, 0)
	for i := 0; i < len(sites); i += 2 {
		b.Sites = append(b.Sites, binary.BigEndian.Uint16([]byte(sites[i:])))
	}
	if begun := f.batches.all[key]; begun != nil {
		b = begun
	}
	for len(value) >= 4 {
		count := binary.BigEndian.Uint32(value)
		value = value[4:]
		b.add(count, []byte(text()))
	}
	if short != nil || len(b.lines) == 0 || len(b.Sites) == 0 {
		return errShort
	}
	b.kept = append(b.kept, kept)
	f.batches.add(key, b)
	return nil
}

// each takes a far batch apart. The last line has the token of the message, so the batch counts as delivered with it.
func each(m site.FarMessage) (list []site.FarMessage) {
	lines, err := code.ParseBatch(m.Message.Parts[0].Data)
	if err != nil || len(lines) == 0 {
		return []site.FarMessage{m} // nobody can read it
	}
	for i, line := range lines {
		one := m
		one.Message.Parts = []site.Part{{Data: line}}
		one.Message.ID += "-" + strconv.Itoa(i)
		if i < len(lines)-1 {
			one.Token = ofBatch
		}
		list = append(list, one)
	}
	return list
}
