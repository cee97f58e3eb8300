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

// batches are lines that wait for others of the same sender to the same receivers, where each message costs a header of its own
// (Config.Gather). The journal has them with the Step in which they were said.
type batches map[string]*batch

type batch struct {
	site.Carry
	lines [][]byte
	first uint64   // token of the first: that of all
	of    []uint32 // counts of the lines in numbers; the first line's names the batch
	at    time.Time
}

// Bounds of a batch.
const (
	mostBatch       = 64
	mostBatchOctets = 4 << 10
	ofBatch         = math.MaxUint64 // token of a far line behind which others come
	keyBatch        = "b"            // its key: texts of the message, precedence, end, first token, sites, counts and lines
)

// gather takes the lines of a Step out of what goes to custody, if they are to wait for others.
func (f *Adapter) gather(now time.Time) {
	if f.cfg.Gather == 0 {
		return
	}
	f.out.Carry = slices.DeleteFunc(f.out.Carry, func(c site.Carry) bool {
		m := &c.Message
		if len(m.Parts) != 1 || !code.IsMessage(m.Parts[0].Data) || m.Published && !strings.HasPrefix(m.Topic, roomTopic) || m.Precedence.Rank() > site.Routine.Rank() {
			return false
		}
		data := m.Parts[0].Data
		key := fmt.Sprintf("%v %v %q %q %q %d %v", c.Sites, m.Token != 0, m.Topic, m.From, m.To, m.Precedence, m.Expires.Sub(now))
		b := f.batches[key]
		if b == nil || len(b.lines) >= mostBatch || len(b.lines)*len(data) > mostBatchOctets {
			if f.flush(key); len(data) > mostBatchOctets {
				return false
			}
			b = &batch{Carry: c, first: m.Token, at: now.Add(f.cfg.Gather)}
			f.batches[key] = b
		}
		b.lines, b.of = append(b.lines, data), append(b.of, uint32(m.Token))
		f.rememberBatch(key, b)
		return true
	})
}

// flush sends a batch.
func (f *Adapter) flush(key string) {
	b := f.batches[key]
	if b == nil {
		return
	}
	delete(f.batches, key)
	f.remember(keyBatch+key, nil)
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
	for _, key := range slices.Sorted(maps.Keys(f.batches)) {
		if due.Reached(now, f.batches[key].at) {
			f.flush(key)
		}
	}
}

// rememberBatch keeps a batch over a restart.
func (f *Adapter) rememberBatch(key string, b *batch) {
	m := &b.Message
	texts := []string{m.Topic, m.From, m.To, strconv.Itoa(int(m.Precedence)), strconv.FormatInt(m.Expires.UnixMilli(), 10), strconv.FormatUint(b.first, 10)}
	sites := ""
	for _, id := range b.Sites {
		sites += string(binary.BigEndian.AppendUint16(nil, id))
	}
	value := appendTexts(nil, append(texts, sites)...)
	for i, line := range b.lines {
		value = appendTexts(binary.BigEndian.AppendUint32(value, b.of[i]), string(line))
	}
	f.remember(keyBatch+key, value)
}

// restoreBatch has a batch of an earlier run sent in the first Step.
func (f *Adapter) restoreBatch(key string, value []byte) error {
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
	for len(value) >= 4 {
		b.of, value = append(b.of, binary.BigEndian.Uint32(value)), value[4:]
		b.lines = append(b.lines, []byte(text()))
	}
	if short != nil || len(b.lines) == 0 || len(b.Sites) == 0 {
		return errShort
	}
	f.batches[key] = b
	return nil
}

// each takes a far batch apart: the gateway hears that it was handed over with its last line.
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
