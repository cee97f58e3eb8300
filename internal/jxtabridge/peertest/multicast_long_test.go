//go:build long

package peertest

import "aldis/internal/lab"

var multicastKinds = []string{lab.KindJXSE27, lab.KindJXSE27Unsigned, lab.KindJXTA22}
