package jxtabridge

import (
	"testing"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/rules/filter"
)

const (
	describedPipe = "uuid-59616261646162614E50472050325033AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA04"
	pipeXML       = `<jxta:PipeAdvertisement type="jxta:PipeAdvertisement"><Id>urn:jxta:` + describedPipe +
		`</Id><Type>JxtaUnicast</Type><Name>ship track</Name></jxta:PipeAdvertisement>`
	specXML = `<jxta:MSA><MSID>urn:jxta:uuid-DEADBEEFDEAFBABAFEEDBABE0000000106</MSID><Name>JXTASPEC:track</Name><Parm>` + pipeXML + `</Parm></jxta:MSA>`
)

func TestDescribe(t *testing.T) {
	for _, tt := range []struct{ doc, kind, name, pipe string }{
		{pipeXML, filter.Pipe, "ship track", describedPipe},
		{specXML, filter.Spec, "JXTASPEC:track", describedPipe},
		{`<x:Chart><Name>coast</Name></x:Chart>`, filter.Other, "coast", ""},
		{`<jxta:PGA><GID>urn:jxta:uuid-AA02</GID><Name>g</Name></jxta:PGA>`, filter.Group, "g", ""},
	} {
		n, err := jxta.ParseXML([]byte(tt.doc), jxta.DefaultXML)
		if err != nil {
			t.Fatal(err)
		}
		s := Describe(n, len(tt.doc))
		in := check.In(t, tt.doc)
		check.Equal(in, "s.Type", s.Type, tt.kind)
		check.Equal(in, "s.Name", s.Name, tt.name)
		check.Equal(in, "s.Topic", s.Topic, tt.pipe)
		check.Equal(in, "s.Octets", s.Octets, len(tt.doc))
	}
}
