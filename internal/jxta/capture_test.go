package jxta

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

func captured(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".msg"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func capturedMessage(t testing.TB, name string) Message {
	t.Helper()
	m, _, err := ParseMessage(captured(t, name), DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Every captured message is written again octet for octet: a signed receiver checks its own serialisation
// (baseline 3). Signed messages verify, and one changed octet anywhere is noticed.
func TestCapturedMessages(t *testing.T) {
	files, err := filepath.Glob("testdata/*.msg")
	if err != nil || len(files) != 18 {
		t.Fatalf("captures: %v, %v", files, err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".msg")
		t.Run(name, func(t *testing.T) {
			body := captured(t, name)
			m, rest, err := ParseMessage(body, DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			message := body[:len(body)-len(rest)]
			if again, err := AppendMessage(nil, m); err != nil || !bytes.Equal(again, message) {
				t.Errorf("written again it differs (%v)", err)
			}
			signed := strings.HasPrefix(name, "jxse27-")
			if signed != (len(rest) > 0) {
				t.Fatalf("%d octets after the message", len(rest))
			}
			if !signed {
				return
			}
			tr, err := ParseTrailer(rest)
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.Verify(message); err != nil {
				t.Error(err)
			}
			if got := AppendTrailer(nil, tr); !bytes.Equal(got, rest) {
				t.Error("trailer written again differs")
			}
			if peer, err := CertPeer(tr.Cert); err != nil || URN(peer) != tr.Source {
				t.Errorf("peer of the certificate %s, %v; source is %s", peer, err, tr.Source)
			}
			changed := bytes.Clone(message)
			changed[len(changed)/2] ^= 1
			if tr.Verify(changed) == nil {
				t.Error("a changed message verifies")
			}
		})
	}
}

// The documents inside, by value.
func TestCapturedDocuments(t *testing.T) {
	el := func(name, element string) []byte {
		m := capturedMessage(t, name)
		for _, e := range m.Elements {
			if e.Namespace == "jxta" && strings.HasPrefix(e.Name, element) && !strings.HasSuffix(e.Name, "fingerprint") {
				return e.Data
			}
		}
		t.Fatalf("%s: no element %s", name, element)
		return nil
	}
	for _, gen := range []struct{ prefix, format string }{{"jxse27", "cbid-"}, {"jxta22", "uuid-"}} {
		t.Run(gen.prefix, func(t *testing.T) {
			r, err := ParseRouterMessage(el(gen.prefix+"-connect", "EndpointRouterMsg"))
			if err != nil {
				t.Fatal(err)
			}
			peer := r.Src
			check.Prefix(t, "peer", peer, gen.format)
			check.Equal(t, "r.Last", r.Last, peer)
			check.True(check.Fatal(t), "r.Route", r.Route != nil)
			check.Equal(t, "r.Route.Dest", r.Route.Dest, peer)
			check.Equal(t, "r.Dest.Service", r.Dest.Service, URN(ClassRendezvous))
			check.Equal(t, "r.Dest.Param", r.Dest.Param, NetGroup)
			n, err := ParseXML(el(gen.prefix+"-connect", "Connect"), DefaultXML)
			if err != nil {
				t.Fatal(err)
			}
			pa, err := ParsePeerAdvertisement(n)
			check.NoError(check.Fatal(t), err)
			check.Equal(t, "pa.Peer", pa.Peer, peer)
			check.Equal(t, "pa.Group", pa.Group, NetGroup)
			check.Equal(t, "pa.Name", pa.Name, "A")
			check.True(t, "len(pa.Services) >= 2", len(pa.Services) >= 2, len(pa.Services))
			q, err := ParseResolverQuery(el(gen.prefix+"-query", "jxta-NetGroupORes"))
			check.NoError(check.Fatal(t), err)
			check.Equal(t, "q.Handler", q.Handler, HandlerDiscovery)
			check.Equal(t, "q.Src", q.Src, peer)
			check.Equal(t, "q.HopCount", q.HopCount, 0)
			dq, err := ParseDiscoveryQuery([]byte(q.Query))
			check.NoError(check.Fatal(t), err)
			check.Equal(t, "dq.Type", dq.Type, TypeAdv)
			check.Equal(t, "dq.Attr", dq.Attr, "Name")
			check.Prefix(t, "dq.Value", dq.Value, "b-")
			check.True(t, "dq.Threshold >= 1", dq.Threshold >= 1, dq.Threshold)
			resp, err := ParseResolverResponse(el(gen.prefix+"-publish", "jxta-NetGroupIRes"))
			if err != nil || resp.Handler != HandlerDiscovery || resp.QueryID != 0 {
				t.Errorf("response %+v, %v", resp, err)
			}
			dr, err := ParseDiscoveryResponse([]byte(resp.Response))
			{
				must := check.Fatal(t)
				check.NoError(must, err)
				check.Equal(must, "len(dr.Found)", len(dr.Found), 1)
				check.Equal(must, "dr.Type", dr.Type, TypeAdv)
				check.Equal(must, "dr.Found[0].Life", dr.Found[0].Life, 2*time.Hour)
			}
			adv, err := ParseXML([]byte(dr.Found[0].Doc), DefaultXML)
			if err != nil {
				t.Fatal(err)
			}
			d := Describe(adv)
			check.Equal(t, "d.Root", d.Root, "jxta:MSA")
			check.Equal(t, "d.Type", d.Type, TypeAdv)
			check.Equal(t, "IDKind(d.ID)", IDKind(d.ID), KindSpec)
			check.Equal(check.Fatal(t), "len(d.Index)", len(d.Index), 2)
			check.Prefix(t, "d.Index[0].Value", d.Index[0].Value, "a-")
			w, err := ParseWireHeader(el(gen.prefix+"-wire", "JxtaWireHeader"))
			check.NoError(check.Fatal(t), err)
			check.True(t, `w.Src == peer || gen.prefix != "jxse27"`, w.Src == peer || gen.prefix != "jxse27", w.Src) // 2.2 leaves it out
			check.Equal(t, "IDKind(w.Pipe)", IDKind(w.Pipe), KindPipe)
			check.Equal(t, "len(w.MsgID)", len(w.MsgID), 36)
			check.True(t, "w.TTL >= 1", w.TTL >= 1, w.TTL)
			p, err := ParsePropagate(el(gen.prefix+"-wire", "RendezVousPropagate"))
			check.NoError(check.Fatal(t), err)
			check.Equal(t, "p.Service", p.Service, "jxta.service.wirepipe")
			check.Equal(t, "p.Param", p.Param, NetGroup)
			check.True(t, "p.TTL >= 1", p.TTL >= 1, p.TTL)
			check.Equal(check.Fatal(t), "len(p.Path)", len(p.Path), 1)
			check.Equal(t, "p.Path[0]", p.Path[0], peer)
			pq, err := ParseResolverQuery(el(gen.prefix+"-pipe-query", "jxta-NetGroupORes"))
			if err != nil || pq.Handler != HandlerPipe {
				t.Errorf("pipe query %+v, %v", pq, err)
			}
			pr, err := ParsePipeResolver([]byte(pq.Query))
			check.NoError(check.Fatal(t), err)
			check.True(t, "not pr.Answer", !pr.Answer)
			check.Equal(t, "pr.Type", pr.Type, PipeTypeUnicast)
			check.Equal(t, "IDKind(pr.Pipe)", IDKind(pr.Pipe), KindPipe)
			u, err := ParseRouterMessage(el(gen.prefix+"-unicast", "EndpointRouterMsg"))
			if err != nil || u.Dest.Service != "PipeService" || len(u.Fwd) != 1 {
				t.Errorf("unicast %+v, %v", u, err)
			}
		})
	}
	for name, want := range map[string]string{"jxse27-srdi": HandlerPipe, "jxta22-srdi-pipe": HandlerPipe, "jxta22-srdi-index": HandlerDiscovery} {
		m, err := ParseResolverSRDI(el(name, "jxta-NetGroupSrdi"))
		if err != nil || m.Handler != want {
			t.Fatalf("%s: %+v, %v", name, m, err)
		}
		s, err := ParseSRDI([]byte(m.Payload))
		{
			in := check.In(t, name)
			check.NoError(check.Fatal(in), err)
			check.Equal(in, "IDKind(s.Peer)", IDKind(s.Peer), KindPeer)
			check.Differ(check.Fatal(in), "len(s.Entries)", len(s.Entries), 0)
			check.Differ(in, "s.Entries[0].Life", s.Entries[0].Life, 0)
		}
		if want == HandlerPipe {
			id, err := ParseURN(s.Entries[0].Value)
			in := check.In(t, name)
			check.NoError(check.Fatal(in), err)
			check.Equal(in, "IDKind(id)", IDKind(id), KindPipe)
			check.True(in, "s.Key == PipeTypeUnicast || s.Key == PipeTypePropagate", s.Key == PipeTypeUnicast || s.Key == PipeTypePropagate, s.Key)
		}
	}
	n, err := ParseXML(el("jxta22-peerview", "PeerView.PeerAdv"), DefaultXML)
	if err != nil {
		t.Fatal(err)
	}
	rdv, err := ParseRdvAdvertisement(n)
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "rdv.Group", rdv.Group, NetGroup)
	check.Differ(t, "rdv.Peer", rdv.Peer, "")
	service := URN(ClassRendezvous) + NetGroup
	check.True(t, "rdv.ServiceName of the rendezvous", strings.EqualFold(rdv.ServiceName, service), rdv.ServiceName)
	check.True(t, "rdv.Route", rdv.Route != nil)
}
