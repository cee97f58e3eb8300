//go:build long

package peertest

import (
	"time"

	"aldis/internal/lab/field"
)

func init() {
	streamDelays = append(streamDelays, streamDelay{field.KindJXSE27, field.KindJXSE27, 35 * time.Second})
}
