package stanza

// Stanzas is the namespace of the conditions of errors (RFC 6120, 8.3).
const Stanzas = "urn:ietf:params:xml:ns:xmpp-stanzas"

// errorTypes are the types of the conditions that are not "cancel".
var errorTypes = map[string]string{"remote-server-timeout": "wait", "resource-constraint": "wait", "recipient-unavailable": "wait",
	"internal-server-error": "wait", "policy-violation": "modify", "bad-request": "modify", "not-acceptable": "modify",
	"jid-malformed": "modify", "forbidden": "auth", "not-authorized": "auth", "registration-required": "auth", "subscription-required": "auth"}

// Failure is the element that says why a stanza was refused.
func Failure(condition, text string) Element {
	kind := errorTypes[condition]
	if kind == "" {
		kind = "cancel"
	}
	e := New(Component, "error", "type", kind).With(New(Stanzas, condition))
	if text != "" {
		e = e.With(New(Stanzas, "text", "xml:lang", "en").Says(text))
	}
	return e
}

// Refusal is the error stanza that answers a stanza.
func Refusal(e *Element, condition, text string) Element {
	return New(Component, e.Name, "from", e.Get("to"), "to", e.Get("from"), "id", e.Get("id"), "type", "error").With(Failure(condition, text))
}
