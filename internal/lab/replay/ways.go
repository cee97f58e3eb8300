package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"aldis/internal/gateway"
	"aldis/internal/gateway/mail/history"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/sim"
)

// Bearer is the traffic of one of two bearers.
type Bearer struct {
	Link    string        `json:"link"`    // its name
	Profile string        `json:"profile"` // name of its link profile
	Octets  UpDown[int64] `json:"octets"`  // IP octets
	Money   float64       `json:"money"`   // at the price that the configuration names
}

// Way is the messages of a gateway that took one bearer by one rule; a message counts for the last way that it took. Seconds are from
// custody to acknowledgement.
type Way struct {
	From     string  `json:"from"` // name of the gateway
	Rule     string  `json:"rule"` // label or line of the [[route]] rule; "": no rule fits
	Link     string  `json:"link"` // name of the bearer
	Messages int     `json:"messages"`
	Octets   int64   `json:"octets"` // of the messages, as coded
	MeanS    float64 `json:"mean_s"`
	MaxS     float64 `json:"max_s"`
	Money    float64 `json:"money"` // of these octets
	Waiting  int     `json:"waiting,omitempty"`
}

// waysOf adds the traffic of the bearers and the ways of messages, if there are two bearers.
func (p *player) waysOf() {
	if p.o.Second == nil {
		return
	}
	price := map[string]float64{}
	for i, b := range p.ship.GW.Status(p.w.Now).Bearers {
		aired := p.aired(i)
		up, down := aired.Up.Octets, aired.Down.Octets
		price[b.Name] = b.Price
		p.res.Bearers = append(p.res.Bearers, Bearer{b.Name, b.Profile, UpDown[int64]{up, down}, float64(up+down) * b.Price / 1000})
	}
	for _, n := range []*sim.Node{p.ship, p.shore} {
		p.res.Ways = append(p.res.Ways, waysFrom(n.GW.Status(p.w.Now).Name, n.GW.Messages(), price)...)
	}
}

// aired is the traffic on the air of a bearer, from the ship and to it.
func (p *player) aired(bearer int) UpDown[linkemu.Count] {
	stats := p.w.Links[bearer].Stats()
	up, down := stats.Node(p.ship.Name).Up, stats.Node(p.ship.Name).Down
	if shared := []bool{p.o.Profile.Shared, p.o.Second.Profile.Shared}[bearer]; shared {
		down = stats.Node(p.shore.Name).Up
	}
	return UpDown[linkemu.Count]{up.OnAir, down.OnAir}
}

// waysFrom are the ways of the messages of one gateway.
func waysFrom(name string, messages gateway.Messages, price map[string]float64) []Way {
	rows := map[[2]string]*Way{}
	for _, id := range messages.IDs() {
		m, ok := messages.Row(id)
		link, rule := "", ""
		for _, e := range m.Life {
			if e.What == history.Chosen {
				link, rule = e.Link, e.Rule
			}
		}
		if !ok || link == "" {
			continue
		}
		w := rows[[2]string{rule, link}]
		if w == nil {
			w = &Way{From: name, Rule: rule, Link: link}
			rows[[2]string{rule, link}] = w
		}
		w.Messages, w.Octets = w.Messages+1, w.Octets+int64(m.Coded)
		for _, r := range m.Recipients {
			if r.State != string(history.Delivered) {
				w.Waiting++
				continue
			}
			took := r.Since.Sub(m.Accepted).Seconds()
			w.MeanS, w.MaxS = w.MeanS+took, max(w.MaxS, took)
		}
	}
	var list []Way
	for _, w := range rows {
		w.MeanS, w.MaxS = round(w.MeanS/float64(max(1, w.Messages-w.Waiting))), round(w.MaxS)
		w.Money = float64(w.Octets) * price[w.Link] / 1000
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b Way) int { return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Link, b.Link)) })
	return list
}

// WayTable is the ways as rows of text, after a head; nil: there is one bearer.
func (res *Result) WayTable() (rows [][]string) {
	if len(res.Bearers) == 0 {
		return nil
	}
	rows = [][]string{{"from", "rule", "link", "messages", "octets", "mean, s", "worst, s", "money", "not there"}}
	for _, w := range res.Ways {
		rows = append(rows, []string{w.From, orElse(w.Rule, "-"), w.Link, fmt.Sprint(w.Messages), fmt.Sprint(w.Octets), num(w.MeanS), num(w.MaxS), num(w.Money), fmt.Sprint(w.Waiting)})
	}
	return rows
}
