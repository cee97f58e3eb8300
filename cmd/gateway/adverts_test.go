package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestAdvertsCommand(t *testing.T) {
	s := newSite(t, 2, "")
	s.write(t, filepath.Join(s.dir, "data"), "1 127.0.0.1:7142")
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"-h", 0, "usage: gateway adverts"},
		{"-c " + s.file, 1, "no gateway answers at"},
		{"-c " + s.file + " --type boat", 2, "must be one of group, pipe"},
		{"-c " + s.file + " --group urn:jxta:uuid-AA03", 2, "is an id of another kind"},
	} {
		code, out, errs := run(t, append([]string{"adverts"}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(out+errs, tt.says) {
			t.Errorf("%s: exit %d: %s%s", tt.args, code, out, errs)
		}
	}
}
