package corpusexchange

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
	"aldis/internal/site"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func corpusFile(t *testing.T, texts ...string) (file []byte, c *compact.CorpusFile) {
	t.Helper()
	var messages [][]byte
	for _, s := range texts {
		messages = append(messages, []byte(s))
	}
	file, err := compact.AppendCorpus(nil, messages)
	check.NoError(check.Fatal(t), err)
	c, err = compact.ReadCorpus(file)
	check.NoError(check.Fatal(t), err)
	return file, c
}

// journal keeps the memories of an adapter.
type journal map[string][]byte

func (j journal) keep(o site.Output) site.Output {
	for _, m := range o.Remember {
		if len(m.Value) == 0 {
			delete(j, m.Key)
		} else {
			j[m.Key] = m.Value
		}
	}
	return o
}

func (j journal) memories() (list []site.Memory) {
	for k, v := range j {
		list = append(list, site.Memory{Key: k, Value: v})
	}
	return list
}

// far turns a message that one adapter carries into the event that another gets.
func far(from uint16, token uint64, m site.Message) site.FarMessage {
	m.Token = 0
	return site.FarMessage{Site: from, Token: token, Message: m}
}

func sent(t *testing.T, file []byte) site.Message {
	t.Helper()
	o := New(Config{Name: "hq"}, nil).Step(start, Send{Sites: []uint16{2}, File: file})
	check.Equal(check.Fatal(t), "messages", len(o.Carry), 1)
	check.Equal(t, "precedence", o.Carry[0].Message.Precedence, site.Deferred)
	return o.Carry[0].Message
}

// A corpus that a site sends is kept through restarts, is not used before it is accepted, and then is used until another corpus
// is configured.
func TestAccepted(t *testing.T) {
	file, c := corpusFile(t, "!!FATHOM;7", "!!FATHOM;8")
	_, own := corpusFile(t, "own")
	_, other := corpusFile(t, "other")
	j := journal{}
	f := New(Config{Name: "ship", Configured: own}, nil)
	o := j.keep(f.Step(start, far(1, 77, sent(t, file))))
	check.True(t, "the core may forget it", slices.Equal(o.Done, []uint64{77}), o)
	chosen := func() *compact.CorpusFile {
		got, err := Chosen(own, j.memories())
		check.NoError(t, err)
		return got
	}
	check.Equal(t, "what a start uses before it is accepted", Name(chosen()), Name(own))

	f = New(Config{Name: "ship", Configured: own}, j.memories())
	got, ok := f.File(Name(c))
	check.True(t, "the file after a restart", ok && bytes.Equal(got, file))
	check.Equal(t, "rows", fmt.Sprint(f.Status().Received), fmt.Sprint([]Row{{Name(c), 1, start, 2, 20}}))
	j.keep(f.Step(start, Accept{"00000000"}))
	check.Equal(t, "no such corpus is accepted", f.Status().Accepted, "")
	j.keep(f.Step(start, Accept{Name(c)}))
	check.Equal(t, "accepted", f.Status().Accepted, Name(c))
	check.Equal(t, "what a start uses", Name(chosen()), Name(c))

	newer, _ := corpusFile(t, "newer")
	j.keep(f.Step(start, far(1, 78, sent(t, newer)))) // it replaces the first
	check.Equal(t, "what was accepted stays", Name(chosen()), Name(c))
	check.Equal(t, "one of each site", len(f.Status().Received), 1)

	got2, err := Chosen(other, j.memories())
	check.NoError(t, err)
	check.Equal(t, "another configuration counts more", Name(got2), Name(other))
	f = New(Config{Name: "ship", Configured: other}, j.memories())
	o = j.keep(f.Step(start, nil))
	check.True(t, "and that is said", len(o.Notes) == 1 && f.Status().Accepted == "", o.Notes)
	check.Equal(t, "and ends it", Name(chosen()), Name(own))

	f = New(Config{Name: "ship", Configured: own}, j.memories())
	name := f.Status().Received[0].Name
	j.keep(f.Step(start, Accept{name}))
	j.keep(f.Step(start, Forget{name}))
	check.True(t, "forgotten", len(j) == 0 && len(f.Status().Received) == 0 && f.Status().Accepted == "", j)
}

// The corpus of a site that the configuration names is accepted at once, those of others are not.
func TestFrom(t *testing.T) {
	file, c := corpusFile(t, "a")
	for from, want := range map[uint16]string{1: Name(c), 2: ""} {
		f := New(Config{From: []uint16{1}}, nil)
		f.Step(start, far(from, 1, sent(t, file)))
		check.Equal(t, fmt.Sprint("accepted from ", from), f.Status().Accepted, want)
	}
}

// All other messages are refused with a reason, and nothing of them is kept.
func TestHostile(t *testing.T) {
	file, _ := corpusFile(t, "a message", "another")
	good := sent(t, file)
	with := func(change func(m *site.Message)) site.Message {
		m := good
		m.Parts = slices.Clone(m.Parts)
		change(&m)
		return m
	}
	damaged := slices.Clone(file)
	damaged[20] ^= 1
	cases := map[string]site.Message{
		"no part":         with(func(m *site.Message) { m.Parts = nil }),
		"two parts":       with(func(m *site.Message) { m.Parts = append(m.Parts, m.Parts[0]) }),
		"another part":    with(func(m *site.Message) { m.Parts[0].Name = "x" }),
		"another service": with(func(m *site.Message) { m.Service = "x" }),
		"published":       with(func(m *site.Message) { m.Published = true }),
		"damaged":         with(func(m *site.Message) { m.Parts[0].Data = damaged }),
		"cut":             with(func(m *site.Message) { m.Parts[0].Data = file[:len(file)-1] }),
		"empty":           with(func(m *site.Message) { m.Parts[0].Data = nil }),
		"too long":        with(func(m *site.Message) { m.Parts[0].Data = append(slices.Clone(file), make([]byte, 1<<20)...) }),
	}
	for i := range file {
		cases[fmt.Sprint("changed at ", i)] = with(func(m *site.Message) {
			m.Parts[0].Data = slices.Clone(file)
			m.Parts[0].Data[i] ^= 0x55
		})
	}
	f := New(Config{From: []uint16{1}}, nil)
	for name, m := range cases {
		o := f.Step(start, far(1, 5, m))
		ended := len(o.Undelivered) == 1 && o.Undelivered[0].Token == 5 && o.Undelivered[0].Why == site.Unfit && len(o.Done) == 0
		check.True(t, name+" is refused", ended && len(o.Remember) == 0 && len(o.Notes) == 1, o)
	}
	check.Equal(t, "counted", f.Status().Refused, len(cases))
	check.Equal(t, "kept", len(f.Status().Received), 0)

	f = New(Config{Refuse: true}, nil)
	o := f.Step(start, far(1, 5, good))
	check.True(t, "one that nobody wants", len(o.Undelivered) == 1 && len(f.Status().Received) == 0, o)

	o = New(Config{}, []site.Memory{{Key: "site 1", Value: []byte("x")}, {Key: "site 70000", Value: file}, {Key: "accepted", Value: []byte("y")}, {Key: "?", Value: file}}).Step(start, nil)
	check.True(t, "memories that cannot be read are said and forgotten", len(o.Notes) == 4 && len(o.Remember) == 4, o)
	_, err := Chosen(nil, []site.Memory{{Key: "accepted", Value: make([]byte, 40)}})
	check.True(t, "a start says so", err != nil)
}

// However many sites send, at most MostKept corpora are kept, the newest.
func TestBounded(t *testing.T) {
	f, j := New(Config{}, nil), journal{}
	for i := range 3 * MostKept {
		file, _ := corpusFile(t, strings.Repeat("x", i+1))
		j.keep(f.Step(start.Add(time.Duration(i)*time.Second), far(uint16(100-i), 1, sent(t, file))))
		check.True(t, "bounded", len(f.received) <= MostKept && len(j) == len(f.received), len(j))
	}
	for _, r := range f.Status().Received {
		check.True(t, "the newest", r.Octets > 2*MostKept, r)
	}
}

// On a shared channel a corpus for several sites goes once, elsewhere once to each; its sender is told the outcome.
func TestSent(t *testing.T) {
	file, _ := corpusFile(t, "a")
	f := New(Config{Shared: true}, nil)
	o := f.Step(start, Send{Sites: []uint16{2, 3}, File: file})
	check.True(t, "once for all", len(o.Carry) == 1 && slices.Equal(o.Carry[0].Sites, []uint16{2, 3}) && o.Carry[0].Message.Token == 0, o.Carry)
	f = New(Config{}, nil)
	o = f.Step(start, Send{Sites: []uint16{2, 3}, File: file})
	check.Equal(check.Fatal(t), "to each", len(o.Carry), 2)
	for i, level := range []string{"info", "warn"} {
		o := f.Step(start, site.Fate{Token: o.Carry[i].Message.Token, Ending: []site.Ending{site.Stored, site.Refused}[i]})
		check.True(t, "the end is said", len(o.Notes) == 1 && o.Notes[0].Level == level, o.Notes)
	}
	o = f.Step(start, site.Fate{Token: 99})
	check.Equal(t, "of others nothing", len(o.Notes), 0)
	o = f.Step(start, Send{Sites: []uint16{2}, File: file[1:]})
	check.True(t, "what is no corpus is not sent", len(o.Carry) == 0 && len(o.Notes) == 1, o)
}
