package node

import (
	"testing"

	"aldis/internal/adapters/files"
)

// Offers of a time when files were served end without a file room.
func TestXMPPWithoutFiles(t *testing.T) {
	(&xmppSide{}).do(files.Know{Gone: true})
}
