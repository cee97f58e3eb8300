package node

import (
	"os"
	"testing"

	"aldis/internal/lab/labtest"
)

func TestMain(m *testing.M) {
	labtest.IfCalled()
	os.Exit(labtest.Main(m))
}
