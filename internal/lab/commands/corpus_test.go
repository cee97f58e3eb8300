package commands

import (
	"bytes"
	"testing"
)

func TestCorpus(t *testing.T) {
	var out, errs bytes.Buffer // not as a process, which would be too slow on a loaded machine
	if code := labCorpusCommand(nil, &out, &errs); code != 0 || errs.Len() > 0 {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	wants(t, out.String(), "version 5", "the same")
}
