//go:build long

package peertest

import "aldis/internal/lab/field"

var multicastKinds = []string{field.KindJXSE27, field.KindJXSE27Unsigned, field.KindJXTA22}
