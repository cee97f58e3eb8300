package node

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// The process has the least of the machine, on one processor, and ends when nobody wants it any more.
func TestRehearsalGoesLast(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	long := `{"aldis_trace":1,"duration_s":1000000,"content":"size"}` + "\n" + `{"t":0,"do":"peer","peer":"a","edge":true}` + "\n" +
		`{"t":0,"do":"pipe","pipe":"q","kind":"propagate"}` + "\n" + `{"t":999999,"do":"end","totals":{"events":0,"messages_in":0,"messages_out":0,"in":0,"out":0}}` + "\n"
	go func() {
		_, err := rehearseBeside(ctx, "iridium-dialup", time.Minute, []byte(long))
		ended <- err
	}()
	child := 0
	check.Until(t, 30*time.Second, "there is a process", func() bool {
		paths, _ := filepath.Glob("/proc/self/task/*/children")
		for _, p := range paths {
			b, _ := os.ReadFile(p)
			for _, f := range strings.Fields(string(b)) {
				cmdline, _ := os.ReadFile(filepath.Join("/proc", f, "cmdline"))
				if strings.Contains(string(cmdline), "rehearse\x00") {
					child, _ = strconv.Atoi(f)
				}
			}
		}
		return child != 0
	})
	tasks, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(child), "task/*/stat"))
	if err != nil || len(tasks) == 0 {
		t.Fatal("it has no threads", err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		check.Equal(t, "niceness of "+task, strings.Fields(rest)[16], "19")
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("it ends well after it was stopped")
	}
	if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(child))); err == nil {
		t.Error("it is still there")
	}
}
