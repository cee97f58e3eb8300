package jxta

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// Every captured message is written again octet for octet: a signed receiver checks what it serialises itself
// (baseline 3). Signed ones verify, and one changed octet anywhere is noticed.
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
			if !strings.HasPrefix(peer, gen.format) || r.Last != peer || r.Route == nil || r.Route.Dest != peer ||
				r.Dest.Service != URN(ClassRendezvous) || r.Dest.Param != NetGroup {
				t.Errorf("router message %+v", r)
			}
			n, err := ParseXML(el(gen.prefix+"-connect", "Connect"), DefaultXML)
			if err != nil {
				t.Fatal(err)
			}
			pa, err := ParsePeerAdvertisement(n)
			if err != nil || pa.Peer != peer || pa.Group != NetGroup || pa.Name != "A" || len(pa.Services) < 2 {
				t.Errorf("peer advertisement %+v, %v", pa, err)
			}
			q, err := ParseResolverQuery(el(gen.prefix+"-query", "jxta-NetGroupORes"))
			if err != nil || q.Handler != HandlerDiscovery || q.Src != peer || q.HopCount != 0 {
				t.Errorf("query %+v, %v", q, err)
			}
			dq, err := ParseDiscoveryQuery([]byte(q.Query))
			if err != nil || dq.Type != TypeAdv || dq.Attr != "Name" || !strings.HasPrefix(dq.Value, "b-") || dq.Threshold < 1 {
				t.Errorf("discovery query %+v, %v", dq, err)
			}
			resp, err := ParseResolverResponse(el(gen.prefix+"-publish", "jxta-NetGroupIRes"))
			if err != nil || resp.Handler != HandlerDiscovery || resp.QueryID != 0 {
				t.Errorf("response %+v, %v", resp, err)
			}
			dr, err := ParseDiscoveryResponse([]byte(resp.Response))
			if err != nil || len(dr.Found) != 1 || dr.Type != TypeAdv || dr.Found[0].Life != 2*time.Hour {
				t.Fatalf("discovery response %+v, %v", dr, err)
			}
			adv, err := ParseXML([]byte(dr.Found[0].Doc), DefaultXML)
			if err != nil {
				t.Fatal(err)
			}
			d := Describe(adv)
			if d.Root != "jxta:MSA" || d.Type != TypeAdv || IDKind(d.ID) != KindSpec || len(d.Index) != 2 || !strings.HasPrefix(d.Index[0].Value, "a-") {
				t.Errorf("MSA: %+v", d)
			}
			w, err := ParseWireHeader(el(gen.prefix+"-wire", "JxtaWireHeader"))
			if err != nil || w.Src != peer && gen.prefix == "jxse27" || // 2.2 leaves it out
				IDKind(w.Pipe) != KindPipe || len(w.MsgID) != 36 || w.TTL < 1 {
				t.Errorf("wire header %+v, %v", w, err)
			}
			p, err := ParsePropagate(el(gen.prefix+"-wire", "RendezVousPropagate"))
			if err != nil || p.Service != "jxta.service.wirepipe" || p.Param != NetGroup || p.TTL < 1 || len(p.Path) != 1 || p.Path[0] != peer {
				t.Errorf("propagation header %+v, %v", p, err)
			}
			pq, err := ParseResolverQuery(el(gen.prefix+"-pipe-query", "jxta-NetGroupORes"))
			if err != nil || pq.Handler != HandlerPipe {
				t.Errorf("pipe query %+v, %v", pq, err)
			}
			pr, err := ParsePipeResolver([]byte(pq.Query))
			if err != nil || pr.Answer || pr.Type != PipeTypeUnicast || IDKind(pr.Pipe) != KindPipe {
				t.Errorf("pipe resolver %+v, %v", pr, err)
			}
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
		if err != nil || IDKind(s.Peer) != KindPeer || len(s.Entries) == 0 || s.Entries[0].Life == 0 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if want == HandlerPipe {
			if id, err := ParseURN(s.Entries[0].Value); err != nil || IDKind(id) != KindPipe || s.Key != PipeTypeUnicast && s.Key != PipeTypePropagate {
				t.Errorf("%s: %+v, %v", name, s, err)
			}
		}
	}
	n, err := ParseXML(el("jxta22-peerview", "PeerView.PeerAdv"), DefaultXML)
	if err != nil {
		t.Fatal(err)
	}
	rdv, err := ParseRdvAdvertisement(n)
	if err != nil || rdv.Group != NetGroup || rdv.Peer == "" || !strings.EqualFold(rdv.ServiceName, URN(ClassRendezvous)+NetGroup) || rdv.Route == nil {
		t.Errorf("RdvAdvertisement %+v, %v", rdv, err)
	}
}
