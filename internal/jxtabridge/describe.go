package jxtabridge

import (
	"aldis/internal/jxta"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// Describe makes a subject of an advertisement's document; the caller sets direction, site, group and peer. Group
// is the group in which it was published.
func Describe(n *jxta.Node, octets int) site.Subject {
	d := jxta.Describe(n)
	s := site.Subject{Type: filter.TypeOf(d.Root), Root: d.Root, Name: n.KidValue("Name"), Octets: octets, Topic: PipeOf(n)}
	if d.Root == "jxta:PA" {
		s.Owner = d.ID
	}
	return s
}

// PipeOf is the unique value of the pipe that an advertisement describes, or to which its service listens; "" if there is none.
func PipeOf(n *jxta.Node) string {
	root := n.Name
	if filter.TypeOf(root) == filter.Other {
		root = n.AttrValue("type")
	}
	switch root {
	case "jxta:PipeAdvertisement":
	case "jxta:MSA": // next to the other fields, or inside Parm
		spec := n
		n = nil
		spec.Walk(func(k *jxta.Node) bool {
			if k.Name == "jxta:PipeAdvertisement" || k.AttrValue("type") == "jxta:PipeAdvertisement" {
				n = k
			}
			return n == nil
		})
		if n == nil {
			return ""
		}
	default:
		return ""
	}
	id, err := jxta.ParseURN(n.KidValue("Id"))
	if err != nil {
		return ""
	}
	return id
}
