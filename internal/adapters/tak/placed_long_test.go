//go:build long

package tak_test

import "testing"

// The same for a thousand.
func TestThousandPlaced(t *testing.T) { rest(t, 1000) }
