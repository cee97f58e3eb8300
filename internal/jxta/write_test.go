package jxta

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"
)

// A document written without a tree is octet for octet the same as one written from a tree.
func TestWrittenAsTrees(t *testing.T) {
	const peerB = "uuid-59616261646162614A78746150325033AAAABBBBCCCCDDDDEEEEFFFF0011223303"
	texts := []string{"", "plain", " a < b & c > \"d\" ]]> \r\n\té ", "<?xml version=\"1.0\"?>\n<a b=\"c\">&amp;</a>\n", "  "}
	route := &Route{Dest: peerA, Access: AccessPoint{Peer: peerA, Addresses: []string{"tcp://10.0.0.1:9701", "http://a&b"}}, Hops: []AccessPoint{{Peer: peerB}}}
	var docs [][]byte
	for i, s := range texts {
		dest := Address{Scheme: "jxta", Host: peerB, Service: "EndpointService:jxta-NetGroup", Param: s}
		docs = append(docs, RouterMessage{Src: peerA, Dest: dest, Last: peerB}.Append(nil),
			RouterMessage{Src: peerA, Dest: dest, Last: peerB, Rvs: []AccessPoint{{Peer: peerA}}, Fwd: []AccessPoint{{}, {Peer: peerB, Addresses: []string{s}}}, Route: route}.Append(nil),
			Propagate{MessageID: s, Service: s, Param: s, TTL: i - 1, Path: []string{peerA, peerB}}.Append(nil),
			ResolverResponse{Handler: s, QueryID: -i, Response: s}.Append(nil),
			DiscoveryResponse{Type: i, PeerAdv: s, Attr: s, Value: s, Found: []Found{{time.Hour, s}, {0, "x"}}}.Append([]byte{}))
	}
	for _, doc := range docs {
		n, err := ParseXML(doc, DefaultXML)
		if err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		if want := AppendDocument(nil, n); string(doc) != string(want) {
			t.Errorf("written\n%q, as a tree\n%q", doc, want)
		}
	}
	m := RouterMessage{Src: peerA, Dest: Address{Scheme: "jxta", Host: peerB, Service: "s"}, Last: peerB, Route: route}
	if back, err := ParseRouterMessage(m.Append(nil)); err != nil || !reflect.DeepEqual(back, m) {
		t.Errorf("came back as %+v, %v", back, err)
	}
}

// Names beyond fewNames come back, too.
func TestManyNamespaces(t *testing.T) {
	for _, version := range []uint8{0, 1} {
		m := Message{Version: version}
		for i := range 60 {
			m.Elements = append(m.Elements, Element{Namespace: fmt.Sprint("ns", i%25), Name: fmt.Sprint(i), Type: fmt.Sprint("t", i%30), Data: []byte{byte(i)}})
		}
		b, err := AppendMessage(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		if back, _, err := ParseMessage(b, DefaultLimits); err != nil || !reflect.DeepEqual(back, m) {
			t.Errorf("version %d came back as %+v, %v", version, back, err)
		}
	}
}

// Parts of a message together are the output of AppendMessage, and long elements are not copied.
func TestMessageParts(t *testing.T) {
	long := bytes.Repeat([]byte("x"), longData)
	for version := range uint8(2) {
		m := Message{Version: version, Elements: []Element{{Namespace: "a", Name: "first", Data: long}, {Name: "short", Data: []byte("s")},
			{Namespace: "b", Name: "last", Data: long, Signature: &Element{Name: "signature", Data: long[1:]}}}}
		whole, err := AppendMessage(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := MessageParts(m)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.Join(parts, nil), whole) || len(parts) != 5 || &parts[1][0] != &long[0] {
			t.Errorf("version %d: %d parts of %d octets, want 5 of %d", version, len(parts), len(bytes.Join(parts, nil)), len(whole))
		}
	}
}
