package jxtabridge

import "aldis/internal/site"

// output is what one Step gathers. Its orders leave in the order of their kinds: a connection's last words go before its
// end.
type output struct {
	site.Output
	welcome []Welcome
	send    []Send
	shout   []Shout
	dial    []Dial
	close   []Close
	gates   []Gate
}

// done is what the step wants, with its orders listed.
func (o *output) done() site.Output {
	n := len(o.welcome) + len(o.send) + len(o.shout) + len(o.dial) + len(o.close) + len(o.gates)
	if n > 0 {
		o.Orders = make([]site.Order, 0, n)
	}
	o.Orders = listed(o.Orders, o.welcome)
	o.Orders = listed(o.Orders, o.send)
	o.Orders = listed(o.Orders, o.shout)
	o.Orders = listed(o.Orders, o.dial)
	o.Orders = listed(o.Orders, o.close)
	o.Orders = listed(o.Orders, o.gates)
	return o.Output
}

func listed[T site.Order](to []site.Order, orders []T) []site.Order {
	for _, o := range orders {
		to = append(to, o)
	}
	return to
}
