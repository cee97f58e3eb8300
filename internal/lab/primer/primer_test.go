package primer

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"aldis/internal/lab/check"
)

// TestCorpusIsThatOfTheModel pins the file and its text, because model.bin is made from this corpus.
func TestCorpusIsThatOfTheModel(t *testing.T) {
	for what, c := range map[string]struct {
		octets []byte
		sum    string
	}{
		"corpus.txt.xz": {packed, "ce1c0901b0956ad082bba6e476bc66710e625496a7d2b9c9f8029b67b0bba752"},
		"its text":      {Corpus(), "e619236b7cbffc92e38deb9582875dd876bf94b092c1f30b99a71f7c75c43471"},
	} {
		sum := sha256.Sum256(c.octets)
		check.Equal(t, "SHA-256 of "+what, hex.EncodeToString(sum[:]), c.sum)
	}
}
