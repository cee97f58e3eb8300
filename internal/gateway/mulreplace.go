package gateway

import (
	"maps"

	"aldis/internal/pmul"
	"aldis/internal/site"
)

// mulOlder is the message that msg takes the place of: one with the same key, precedence and recipients, of which nothing
// has been on the air.
func (g *Gateway) mulOlder(msg *mulMessage) (pmul.MessageID, *mulMessage) {
	pl := msg.content.Payload
	if pl == nil || pl.Supersedes == "" {
		return 0, nil
	}
	id, ok := g.mul.latest[pl.Supersedes]
	old := g.mul.out[id]
	if !ok || old == nil || old.content.Payload == nil || old.content.Payload.Precedence != pl.Precedence ||
		!maps.Equal(old.to, msg.to) || !g.mul.sender.Waits(id) {
		return 0, nil
	}
	return id, old
}

// newest notes the last message of a key.
func (m *mul) newest(id pmul.MessageID, pl *site.Message) {
	if pl != nil && pl.Supersedes != "" {
		m.latest[pl.Supersedes] = id
	}
}

// noLonger forgets a message that has ended.
func (m *mul) noLonger(id pmul.MessageID, pl *site.Message) {
	if pl != nil && m.latest[pl.Supersedes] == id {
		delete(m.latest, pl.Supersedes)
	}
}
