package edgepeer

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"

	"aldis/internal/jxta"
)

const (
	elSource      = "EndpointSourceAddress"
	elDestination = "EndpointDestinationAddress"
	elRouter      = "EndpointRouterMsg"
	elFingerprint = "EndpointRouterMsg-fingerprint"
	elPropagate   = "RendezVousPropagate" // + group
	elWire        = "JxtaWireHeader"

	svcPropagate = "JxtaPropagate"
	svcWire      = "jxta.service.wirepipe"
	svcRouter    = "EndpointRouter"
	svcPipe      = "PipeService"

	mimeXML  = "text/xml;charset=UTF-8"
	mimeText = "text/plain;charset=UTF-8"

	walkTTL = 200 // of messages to the whole group (wire 5.3)
)

func text(name, value string) jxta.Element {
	return jxta.Element{Namespace: "jxta", Name: name, Type: mimeText, Data: []byte(value)}
}

func xmlElement(name string, doc []byte) jxta.Element {
	return jxta.Element{Namespace: "jxta", Name: name, Type: mimeXML, Data: doc}
}

func find(elements []jxta.Element, name string) *jxta.Element {
	for i := range elements {
		if e := &elements[i]; e.Namespace == "jxta" && e.Name == name {
			return e
		}
	}
	return nil
}

type routeKey struct{ to, group, service, param string }

const maxCached = 4096 // router elements

// router is the ERM to a service of a peer: of the rendezvous itself, or through it (wire 4.4). It is the same for each message.
func (p *Peer) router(to, group, service, param string) []byte {
	k := routeKey{to, group, service, param}
	if doc := p.cached[k]; doc != nil {
		return doc
	}
	if group != jxta.NetGroup {
		service, param = jxta.Mangle(group, service, param)
	}
	r := jxta.RouterMessage{Src: p.id, Dest: jxta.Address{Scheme: "jxta", Host: to, Service: service, Param: param}, Last: p.id}
	if to != p.rdv.Peer {
		r.Fwd = []jxta.AccessPoint{p.rdv}
	}
	if len(p.cached) >= maxCached {
		clear(p.cached)
	}
	doc := r.Append(nil)
	p.cached[k] = doc
	return doc
}

// post sends elements to a service of a peer.
func (p *Peer) post(to, group, service, param string, elements ...jxta.Element) {
	all := make([]jxta.Element, 0, len(elements)+4)
	all = append(all, elements...)
	all = append(all, xmlElement(elRouter, p.router(to, group, service, param)))
	if p.print != nil {
		all = append(all, jxta.Element{Namespace: "jxta", Name: elFingerprint, Data: p.print})
	}
	outer, outerParam := jxta.Mangle(jxta.NetGroup, svcRouter, "")
	p.transmit(outer, outerParam, all...)
}

// propagate sends to the whole group, through the rendezvous (wire 5.3).
func (p *Peer) propagate(group, service, param string, elements ...jxta.Element) {
	all := make([]jxta.Element, 0, len(elements)+4)
	all = append(append(all, elements...), xmlElement(elPropagate+group, p.propagateDoc(p.uuid(), service, param)))
	p.post(p.rdv.Peer, group, svcPropagate, group, all...)
}

// fingerprint proves to a peer that receives a message through others that this peer made it: an unmodified signed peer otherwise
// discards all messages that a rendezvous passes on (wire 4.4).
func fingerprint(id string, key *rsa.PrivateKey, cert []byte) []byte {
	address := []byte(jxta.PeerAddress(id))
	sum := sha256.Sum256(append(address[:len(address):len(address)], cert...))
	sig, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		return nil // a key too short to sign with: transmit counts the message as unsent
	}
	var b []byte
	for _, part := range [][]byte{address, cert, sig} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	return b
}

// transmit hands one message to the connection.
func (p *Peer) transmit(service, param string, elements ...jxta.Element) {
	if !p.ready {
		p.stats.Unsent++
		return
	}
	dest := jxta.Address{Scheme: "tcp", Host: p.remote, Service: service, Param: param}
	m := jxta.Message{Elements: append(elements, text(elSource, jxta.PeerAddress(p.id)), text(elDestination, dest.String()))}
	size := 1024
	for _, e := range m.Elements {
		size += 64 + len(e.Name) + len(e.Type) + len(e.Data)
	}
	body, err := jxta.AppendMessage(make([]byte, 0, size), m)
	if err == nil && p.cfg.Key != nil {
		body, err = jxta.SignMessage(body, p.cfg.Key, p.cfg.Cert, jxta.URN(p.id))
	}
	if err != nil {
		p.stats.Unsent++
		return
	}
	p.stats.Sent++
	p.out.Send = append(p.out.Send, body)
}
