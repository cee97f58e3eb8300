package envelope

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Head is what can be said of a message without expanding what it carries.
type Head struct {
	Payload    bool   // an application's message; otherwise state of the sender's site
	Items      int    // of state
	Group      string // unique values, of a payload
	Pipe       string // of a propagate pipe; "" for a routed message
	Src, Dst   string
	Precedence uint8  // 0 routine, 1 priority, 2 immediate, 3 flash, 4 override, 5 deferred
	Key        uint32 // of supersession: 24 bits of a hash; 0: none
}

// ReadHead reads the head of an envelope as it crosses the link. lookup is that of ParseCoded. Elements and documents are
// left alone; only an envelope that was deflated as a whole is expanded first.
func ReadHead(b []byte, lookup func(number uint32) (Flow, bool)) (h Head, err error) {
	if b, err = unpack(b); err != nil {
		return h, err
	}
	e := &Envelope{}
	if len(b) > 0 && b[0]&formBrief != 0 {
		if e, err = parseBrief(b, lookup); err != nil {
			return h, err
		}
	} else if err := proto.Unmarshal(b, e); err != nil {
		return h, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if len(e.Items) > MaxItems {
		return h, ErrLimit
	}
	if e.Flow == 0 && e.Define == nil {
		return Head{Items: len(e.Items)}, nil
	}
	flow := e.Define
	if flow == nil {
		known, ok := Flow(""), false
		if lookup != nil {
			known, ok = lookup(e.Flow)
		}
		if !ok {
			return h, fmt.Errorf("%w: %d", ErrUnknownFlow, e.Flow)
		}
		flow = &FlowDef{}
		if err := proto.Unmarshal([]byte(known), flow); err != nil {
			return h, fmt.Errorf("%w: flow %d: %v", ErrMalformed, e.Flow, err)
		}
	}
	p, err := payloadIn(flow, make([][]byte, len(flow.Shape)))
	if err != nil {
		return h, err
	}
	return Head{Payload: true, Group: p.Group, Pipe: p.Pipe, Src: p.Src, Dst: p.Dst, Precedence: p.Precedence, Key: e.Key & maxKey}, nil
}
