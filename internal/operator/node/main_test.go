package node

import (
	"os"
	"testing"

	"aldis/internal/lab/commands"
)

func TestMain(m *testing.M) {
	commands.IfCalled()
	os.Exit(commands.WithLab(m))
}
