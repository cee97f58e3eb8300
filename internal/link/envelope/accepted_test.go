package envelope

import (
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// The time after an envelope comes off whole; an envelope without one stays unchanged, whatever its octets are.
func TestAccepted(t *testing.T) {
	at := time.Date(2026, 11, 22, 20, 15, 1, 7e6, time.UTC)
	for _, data := range []string{"", "text", "\x71\x01\x02\x03\x04\x05\x06\x07\x08", "0123456789"} {
		m := Message{Payload: &site.Message{Published: true, Scope: "jxta-NetGroup", Topic: "reports", From: "somebody",
			Parts: []site.Part{{Name: "text", Data: []byte(data)}}}}
		full, err := Append(nil, m, 0, true)
		check.NoError(t, err)
		in := check.In(t, data)
		rest, none := CutAccepted(full)
		check.Equal(in, "the envelope alone", string(rest), string(full))
		check.True(in, "it has no time", none.IsZero(), none)
		with := AppendAccepted(full, at)
		rest, got := CutAccepted(with)
		check.Equal(in, "the envelope", string(rest), string(full))
		check.Equal(in, "the time", got, at)
		old, _, _, err := Parse(with, nil) // like a gateway that does not know the field
		check.NoError(in, err)
		check.Equal(in, "the text", string(old.Payload.Parts[0].Data), data)
	}
	for _, junk := range []string{"\xff\xff\xff", "\x71", "\x71\x01\x02\x03", "\x0a\xff"} {
		rest, at := CutAccepted([]byte(junk))
		check.Equal(t, "junk", string(rest), junk)
		check.True(t, "it has no time", at.IsZero(), at)
	}
}
