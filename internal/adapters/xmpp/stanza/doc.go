// Package stanza reads and writes XMPP streams (RFC 6120): it cuts a stream into stanzas, bounds what a server may send, and
// does the handshake of a component (XEP-0114). It is pure; a socket of internal/edge/lan/xmpplan feeds it.
//
// A stanza that is too long or too deep, or that holds a character that XML does not allow or a name that is not of ASCII, is skipped to its end: its sender is
// told, and the stream goes on. Markup that XMPP forbids in a stream (document types, custom entities, comments,
// instructions), tags that do not match and names that are none end the stream. Attributes with a prefix other than xml are left out.
//
// Files: element.go a stanza as a tree, and as text; splitter.go the stream; parse.go one stanza; component.go the handshake;
// address.go addresses; failure.go error stanzas.
package stanza
