package jxtabridge

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"aldis/internal/site"
)

// credentials are the documents that clients show when they open a stream. Each crosses the link once for each site.
type credentials struct {
	*step
	docs map[credentialKey][]byte // of far peers
	told map[credentialKey][]byte // digests of the documents of local peers that far sites have
}

func newCredentials(s *step) *credentials {
	return &credentials{s, map[credentialKey][]byte{}, map[credentialKey][]byte{}}
}

// credentialKey is a peer of a far site or, in told, a local peer and a far site.
type credentialKey struct {
	site uint16
	peer string
}

const memCredential = "credential/"

func (k credentialKey) memory() string {
	return memCredential + strconv.Itoa(int(k.site)) + "/" + k.peer
}

const (
	maxCredentials = 512
	maxCredential  = 16 << 10
)

// learn keeps the document of a far peer.
func (c *credentials) learn(key credentialKey, doc []byte) {
	if len(doc) > maxCredential || bytes.Equal(c.docs[key], doc) {
		return
	}
	if len(c.docs) >= maxCredentials {
		for k := range c.docs {
			c.forget(k.memory())
		}
		clear(c.docs)
	}
	c.docs[key] = slices.Clone(doc)
	c.record(key.memory(), c.docs[key])
}

// crosses tells whether the document with this digest has to go to a far site, and notes that it has gone.
func (c *credentials) crosses(key credentialKey, digest []byte) bool {
	if bytes.Equal(c.told[key], digest) {
		return false
	}
	if len(c.told) >= maxCredentials {
		clear(c.told)
	}
	c.told[key] = digest
	return true
}

// siteLost forgets which documents a site has.
func (c *credentials) siteLost(siteID uint16) {
	for k := range c.told {
		if k.site == siteID {
			delete(c.told, k)
		}
	}
}

// recall restores one memory; it reports whether m is of a credential.
func (c *credentials) recall(m site.Memory) bool {
	s, ok := strings.CutPrefix(m.Key, memCredential)
	if !ok {
		return false
	}
	siteID, peer, _ := strings.Cut(s, "/")
	if n, err := strconv.ParseUint(siteID, 10, 16); err == nil {
		c.docs[credentialKey{uint16(n), peer}] = m.Value
	}
	return true
}
