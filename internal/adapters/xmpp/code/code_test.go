package code_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/lab/check"
)

// Records in their form on the link.
func TestRecords(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    code.Message
		hex  string
	}{
		{"a line", code.Message{Number: 5, Body: "hi"}, "00056869"},
		{"with a receipt asked for", code.Message{Number: 300, Ask: true, Markable: true, Body: "hi"}, "03ac026869"},
		{"a headline", code.Message{Number: 1, Kind: code.Headline}, "040102"},
		{"a correction", code.Message{Number: 6, About: code.Corrects, Ref: code.Ref{Number: 5}, Body: "ho"}, "08060205686f"},
		{"a reply", code.Message{Number: 7, About: code.Replies, Ref: code.Ref{Number: 130, Yours: true}, Body: "ho"}, "080705" + "8201686f"},
		{"fields", code.Message{Number: 0, Fields: []code.Field{{code.Subject, "S"}, {code.Lang, "en"}}, Body: "b"}, "10000201015304" + "02656e62"},
		{"a file", code.Message{Number: 1, File: &code.File{Hash: [32]byte{0xab}, Size: 300, Name: "a.jpg", MIME: "image/jpeg"}}, "2001ab" + strings.Repeat("00", 31) + "ac02" + "05612e6a7067" + "4a"},
	} {
		b := tt.m.Append(nil)
		check.Equal(t, tt.name, hex.EncodeToString(b), tt.hex)
		back, err := code.ParseMessage(b)
		check.NoError(t, err)
		if !reflect.DeepEqual(back, tt.m) {
			t.Errorf("%s comes back as %+v, want %+v", tt.name, back, tt.m)
		}
	}
	for _, tt := range []struct {
		o   code.Outcome
		hex string
	}{
		{code.Outcome{Number: 5}, "14"},
		{code.Outcome{Number: 4095, Became: code.Displayed}, "fd7f"},
		{code.Outcome{Number: 5, Became: code.Failed, Reason: code.ReasonOf("service-unavailable")}, "1612"},
	} {
		check.Equal(t, fmt.Sprintf("%+v", tt.o), hex.EncodeToString(tt.o.Append(nil)), tt.hex)
		back, err := code.ParseOutcomes(tt.o.Append(tt.o.Append(nil)))
		check.NoError(t, err)
		check.Equal(t, "back", fmt.Sprint(back), fmt.Sprint([]code.Outcome{tt.o, tt.o}))
	}
	for _, tt := range []struct {
		p   code.Presence
		hex string
	}{
		{code.Presence{Show: code.Available}, "01"},
		{code.Presence{Show: code.Away, Status: "tea"}, "02746561"},
		{code.Presence{Show: code.Available, Priority: -1}, "81ff"},
		{code.Presence{Show: code.Away, Priority: 2, Wants: 5, Status: "tea"}, "a20205746561"},
	} {
		check.Equal(t, fmt.Sprintf("%+v", tt.p), hex.EncodeToString(tt.p.Append(nil)), tt.hex)
		back, err := code.ParsePresence(tt.p.Append(nil))
		check.NoError(t, err)
		check.Equal(t, "back", back, tt.p)
	}
	for _, tt := range []struct {
		o   code.Occupant
		hex string
	}{
		{code.Occupant{Presence: code.Presence{Show: code.Available}}, ""},
		{code.Occupant{Nick: "Al", Presence: code.Presence{Show: code.Away, Status: "tea"}}, "4202416c746561"},
		{code.Occupant{Nick: "Al", Presence: code.Presence{Show: code.Available, Priority: 3}}, "c10302416c"},
	} {
		check.Equal(t, fmt.Sprintf("%+v", tt.o), hex.EncodeToString(tt.o.Append(nil)), tt.hex)
		back, err := code.ParseOccupant(tt.o.Append(nil))
		check.NoError(t, err)
		check.Equal(t, "back", back, tt.o)
	}
	kicked := code.Removal{Reason: code.ReasonOf("gone"), Status: 307, User: "anna"}
	check.Equal(t, "a removal", hex.EncodeToString(kicked.Append(nil)), "c004b302616e6e61")
	check.Equal(t, "a subscription", hex.EncodeToString(code.Unsubscribed.Append(nil)), "83")
	for _, bad := range []string{"", "20", "0080", "0080ff", "00ffff03", "0400", "040009", "080100", "08010009", "1000", "100000", "10000101ff", "00018080", "2001ab", "2001" + strings.Repeat("00", 32) + "8080808010" + "0161" + "4a", "2001" + strings.Repeat("00", 32) + "01" + "0161" + "030a"} {
		b, _ := hex.DecodeString(bad)
		if _, err := code.ParseMessage(b); !errors.Is(err, code.ErrMalformed) {
			t.Errorf("the record %s is read: %v", bad, err)
		}
	}
	for _, bad := range []string{"", "02", "0216", "80808001", "1402"} {
		b, _ := hex.DecodeString(bad)
		if _, err := code.ParseOutcomes(b); !errors.Is(err, code.ErrMalformed) {
			t.Errorf("the outcome %s is read: %v", bad, err)
		}
	}
}

// A place takes two octets for each of its parts besides the texts. Forged payloads are refused, or are XML that a server
// takes.
func TestPayloads(t *testing.T) {
	place := stanza.New(code.Nodes[0], "geoloc", "xml:lang", "en").With(stanza.New(code.Nodes[0], "lat").Says("59.4"), stanza.New(code.Nodes[0], "lon").Says("24.7"),
		stanza.New("urn:x", "more", "a", "1").With(stanza.Element{Text: "one "}, stanza.New("urn:x", "b")))
	b, ok := code.AppendPayload(nil, &place)
	check.Equal(t, "on the link", hex.EncodeToString(b), "3c065a"+"11786d6c3a6c616e67"+"02656e"+"03"+"180104"+"35392e34"+"1c0104"+"32342e37"+"096d6f7265"+"06"+"0b75726e3a78"+"0361"+"0131"+"02"+"0104"+"6f6e6520"+"0362"+"0000")
	back, err := code.ParsePayload(b)
	check.NoError(t, err)
	if !ok || !reflect.DeepEqual(back, place) {
		t.Errorf("it comes back as %+v", back)
	}
	deep := stanza.New("urn:x", "a")
	for range 10 {
		deep = stanza.New("urn:x", "a").With(deep)
	}
	if _, ok := code.AppendPayload(nil, &deep); ok {
		t.Error("ten levels cross")
	}
	for _, bad := range []string{"", "3c", "0101" + "00", "033c" + "00" + "00", "3c0100" + "00", "3c0000" + "00", "3c0001" + "033c0000", "3c010100", "ff7f0000", "3c08" + "0361" + "00" + "0361" + "00" + "00"} {
		b, _ := hex.DecodeString(bad)
		if e, err := code.ParsePayload(b); !errors.Is(err, code.ErrMalformed) {
			t.Errorf("the payload %s is read as %+v: %v", bad, e, err)
		}
	}
	for name, is := range map[string]bool{"\x01": true, "\x07": false, "alerts": true, "": false, "a\x00b": false, "a\xff": false} {
		if _, ok := code.NodeOf(name); ok != is {
			t.Errorf("the node %q: %v", name, ok)
		}
	}
}

// FuzzRecords: a record that is read is written again unchanged.
func FuzzRecords(f *testing.F) {
	for _, seed := range []string{"00056869", "03ac026869", "10000201015304 02656e62", "1612", "81ff", "83"} {
		b, _ := hex.DecodeString(seed)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := code.ParseMessage(b); err == nil && !bytes.Equal(m.Append(nil), b) {
			t.Errorf("%x is written again as %x", b, m.Append(nil))
		}
		if list, err := code.ParseOutcomes(b); err == nil {
			var again []byte
			for _, o := range list {
				again = o.Append(again)
			}
			if !bytes.Equal(again, b) {
				t.Errorf("the outcomes %x are written again as %x", b, again)
			}
		}
		if p, err := code.ParsePresence(b); err == nil && !bytes.Equal(p.Append(nil), b) {
			t.Errorf("the presence %x is written again as %x", b, p.Append(nil))
		}
		if e, err := code.ParsePayload(b); err == nil {
			again, _ := code.AppendPayload(nil, &e)
			if same, err := code.ParsePayload(again); err != nil || !reflect.DeepEqual(same, e) {
				t.Errorf("the payload %x is written again as %x", b, again)
			}
		}
		if o, err := code.ParseOccupant(b); err == nil && !bytes.Equal(o.Append(nil), b) {
			t.Errorf("the occupant %x is written again as %x", b, o.Append(nil))
		}
		if r, err := code.ParseRemoval(b); err == nil && !bytes.Equal(r.Append(nil), b) {
			t.Errorf("the removal %x is written again as %x", b, r.Append(nil))
		}
		if s, err := code.ParseSubscription(b); err == nil && !bytes.Equal(s.Append(nil), b) {
			t.Errorf("the subscription %x is written again as %x", b, s.Append(nil))
		}
	})
}
