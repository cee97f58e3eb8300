package tak

import "aldis/internal/site"

// DescribeItem returns the properties that rules of [[filter]] can match; this adapter has no items.
func (f *Adapter) DescribeItem(it site.Item) site.Subject {
	return site.Subject{Type: "other", Scope: it.Scope, Owner: it.Owner, Octets: len(it.Doc)}
}

// DescribeMessage returns the properties that rules of [[filter]] and [[message]] can match: the topic, and the type of an event as the
// name of its part.
func (f *Adapter) DescribeMessage(m *site.Message) site.Subject {
	s := site.Subject{Type: "message", Scope: m.Scope, Owner: m.From, Topic: m.Topic}
	for _, p := range m.Parts {
		s.Octets += len(p.Data)
	}
	return s
}
