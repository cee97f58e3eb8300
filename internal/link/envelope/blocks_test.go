package envelope

import (
	"bytes"
	"fmt"
	"testing"

	"aldis/internal/jxta"
	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// A message whose text is longer than the model takes as one is coded by the model, block by block, except if both ends
// code and read it in one turn of the loop.
func TestLongTextsGoInBlocks(t *testing.T) {
	var text []byte
	for i := 0; len(text) <= compact.MaxModelled; i++ {
		text = fmt.Appendf(text, "<contact nr=\"%d\" course=\"%d\" speed=\"%d\"/>\n", i, i*7%360, i%23)
	}
	text = append(append([]byte("<log>\n"), text...), "</log>\n"...)
	m := Message{Payload: &site.Message{Published: true, Scope: "jxta-NetGroup", Topic: pipeA, From: peerA,
		Parts: []jxta.Element{{Name: "log", Type: "text/xml", Data: text}}}}
	var c compact.Coder
	for _, tt := range []struct {
		whole bool
		want  compact.Codec
	}{{false, compact.Blocks}, {true, compact.Deflated}} {
		b, err := Packed(&c, m, 1, true, &Texts{Coder: &c, Whole: tt.whole})
		if err != nil {
			t.Fatal(err)
		}
		seen := compact.Stored
		texts := &Texts{Coder: &c, Whole: tt.whole, Seen: func(_ bool, codec compact.Codec, _ int) { seen = codec }}
		back, _, _, err := ParseCoded(b, nil, texts)
		if err != nil || !bytes.Equal(back.Payload.Parts[0].Data, text) || seen != tt.want {
			t.Errorf("whole %t: %d octets, %v, want %v: %v", tt.whole, len(b), seen, tt.want, err)
		}
		if _, _, _, err := ParseCoded(b, nil, &Texts{Coder: &c, Whole: true}); (err == nil) != tt.whole {
			t.Errorf("whole %t: read in one turn: %v", tt.whole, err)
		}
	}
}
