package tak

import (
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// Events of the mesh from the LAN room, and orders for the mesh.
type (
	// Overheard: a host sent this to a group of the mesh. Nothing in it is trusted.
	Overheard struct {
		Remote string // address and port
		Data   []byte
	}
	// Shout sends a datagram to a group of the mesh.
	Shout struct {
		Chat bool // to the group of chats; otherwise to the group of positions and everything else
		Data []byte
	}
)

// AdapterEvent marks Overheard as an event of this adapter.
func (Overheard) AdapterEvent() {}

// Concerns names no device.
func (Shout) Concerns() (site.ConnID, bool) { return 0, false }

// Octets is the size of the datagram.
func (s Shout) Octets() int { return len(s.Data) }

// mesh holds the members that were heard on the mesh, and the versions that they read.
type mesh struct {
	members map[string]member // by address
	next    time.Time         // when we announce again which versions we read
}

type member struct {
	heard time.Time
	most  uint32 // version that it reads
}

const (
	sayVersions = time.Minute
	memberLife  = 5 * time.Minute
	mostMembers = 1024
	// mostShout is the longest event that goes to the mesh: it fits into a datagram.
	mostShout = 60_000
)

// overheard takes a datagram that was sent to the mesh.
func (f *Adapter) overheard(now time.Time, ev Overheard) {
	host := hostOf(ev.Remote)
	c := &client{host: host, mesh: true}
	e, control, err := cot.ParseDatagram(ev.Data)
	if err != nil {
		f.refuse(now, reasonOf(err), c, "", err)
		return
	}
	f.devices.mesh.heard(now, host, control, ev.Data[0] == '<')
	if e == nil {
		return
	}
	f.trouble.Count("mesh_in")
	if e.Local() {
		f.trouble.Count("local")
		return
	}
	f.devices.noteReach(now, host, e)
	f.event(now, c, e)
}

// heard notes which version a member reads: the version that it announces, or else the version in which it sends.
func (m *mesh) heard(now time.Time, host string, control *cot.Control, xml bool) {
	old, known := m.members[host]
	if !known && len(m.members) >= mostMembers {
		m.forget(now)
		if len(m.members) >= mostMembers {
			return
		}
	}
	switch {
	case control != nil:
		old.most = control.Most
	case !xml:
		old.most = max(1, old.most)
	}
	old.heard = now
	m.members[host] = old
}

func (m *mesh) forget(now time.Time) {
	for host, x := range m.members {
		if now.Sub(x.heard) > memberLife {
			delete(m.members, host)
		}
	}
}

// proto says whether all members read version 1.
func (m *mesh) proto() bool {
	for _, x := range m.members {
		if x.most < 1 {
			return false
		}
	}
	return len(m.members) > 0
}

// shout sends an event to the mesh in a version that all members read.
func (d *devices) shout(e *cot.Event) {
	if !d.cfg.Mesh {
		return
	}
	if e.Is("a") && d.cfg.Unicast != "" {
		e = reached(e, d.cfg.Unicast+":tcp")
	}
	s := Shout{Chat: e.Is("b-t-f")}
	if d.mesh.proto() {
		s.Data = e.AppendDatagram(nil, nil)
	} else {
		s.Data = e.AppendXML(nil)
	}
	if len(s.Data) > mostShout {
		d.trouble.Count("mesh_too_long")
		return
	}
	d.out.Orders = append(d.out.Orders, s)
	d.trouble.Count("mesh_out")
}

// tellVersions announces which versions we read, once a minute.
func (d *devices) tellVersions(now time.Time) {
	if !d.cfg.Mesh || now.Before(d.mesh.next) {
		return
	}
	d.mesh.next = now.Add(sayVersions)
	d.mesh.forget(now)
	var none *cot.Event
	d.out.Orders = append(d.out.Orders, Shout{Data: none.AppendDatagram(nil, &cot.Control{Least: 1, Most: 1, UID: "aldis"})})
}

// dueMesh is at or when tellVersions is due, whichever is earlier; zero: never.
func (d *devices) dueMesh(at time.Time) time.Time {
	if !d.cfg.Mesh {
		return at
	}
	return due.Earliest(at, d.mesh.next)
}
