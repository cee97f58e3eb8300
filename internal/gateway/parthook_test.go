package gateway

import (
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
)

// Part takes from a gateway's memory the messages that a peer's later ones are coded after, as a flipped bit would spoil them: no later
// one can be read until its sender codes otherwise. The journal keeps them.
func Part(g *Gateway, peer uint16) {
	g.out = &api.Output{}
	g.byID[peer].Reader.Unlearn()
	g.out = nil
}

// Slices gives the next turn so many octets of each peer's messages to read.
func Slices(g *Gateway, octets int) {
	for _, p := range g.byID {
		p.Turn = mail.NewTurn(octets)
	}
}

// SayForgot makes a gateway tell a peer that it has forgotten the peer's messages, whether that is so or not.
func SayForgot(g *Gateway, now time.Time, peer uint16) {
	p := g.byID[peer]
	p.Handshake.Misread()
	p.Handshake.Owe(now)
	p.Handshake.KnowsUs = false // so that it is due at once
}
