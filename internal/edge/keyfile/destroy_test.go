package keyfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
)

// A data directory that a symbolic link names is destroyed as another is, and so is a file in it that is a link. What cannot be read keeps no
// other file from it, and a gateway that runs is noticed.
func TestDestroyableBehindLinks(t *testing.T) {
	c, dir := check.Fatal(t), t.TempDir()
	real, link, disk := filepath.Join(dir, "real"), filepath.Join(dir, "data"), filepath.Join(dir, "disk")
	for _, d := range []string{real, disk} {
		check.NoError(c, os.Mkdir(d, 0o700))
	}
	journal, spool := filepath.Join(real, "aldis.db"), filepath.Join(disk, "spool")
	for _, file := range []string{journal, spool, filepath.Join(real, "audit.log")} {
		check.NoError(c, os.WriteFile(file, []byte("x"), 0o600))
	}
	check.NoError(c, os.Symlink(real, link))
	files, err := Destroyable(link)
	check.NoError(t, err)
	check.Same(t, "files", files, []string{journal})

	check.NoError(c, os.Symlink(spool, filepath.Join(real, "spool")))
	check.NoError(c, os.Symlink(disk, filepath.Join(real, "adisk")))
	files, err = Destroyable(link)
	check.Same(t, "files", files, []string{journal, filepath.Join(real, "spool")})
	if check.True(t, "a linked directory is named", err != nil) {
		check.Contains(t, "the error", err.Error(), "adisk: a link to a directory")
	}
	check.Equal(t, "keys", len(KeysIn(dir)), 0)
	check.NoError(c, os.Symlink(spool, filepath.Join(dir, "server.key")))
	check.Same(t, "keys", KeysIn(dir), []string{filepath.Join(dir, "server.key")})

	f, err := os.Open(journal)
	check.NoError(c, err)
	defer f.Close()
	check.NoError(c, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	_, err = Destroyable(link)
	check.ErrorIs(t, err, ErrRuns)
	files, err = Destroyable(filepath.Join(dir, "none"))
	check.True(t, "no directory: nothing to do", err == nil && len(files) == 0)
}
