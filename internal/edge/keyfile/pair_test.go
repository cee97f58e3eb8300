package keyfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// A client that connects gets the certificate that is in the directory then; a broken one does not count.
func TestPairIsReadAgain(t *testing.T) {
	c, dir := check.Fatal(t), t.TempDir()
	_, err := NewTAKKeys(dir, "ship.example", nil, time.Now())
	check.NoError(c, err)
	keys, err := PairTLS(dir)
	check.NoError(c, err)
	shown := func() string {
		pair, err := keys.GetCertificate(nil)
		check.NoError(c, err)
		return pair.Leaf.Subject.CommonName
	}
	check.Equal(t, "name", shown(), "ship.example")
	for _, name := range []string{ServerCert, serverKey} {
		check.NoError(c, os.Remove(filepath.Join(dir, name)))
	}
	check.Equal(t, "name while nothing is there", shown(), "ship.example")
	_, err = NewTAKKeys(dir, "new.example", nil, time.Now())
	check.NoError(c, err)
	check.NoError(c, os.Chtimes(filepath.Join(dir, ServerCert), time.Time{}, time.Now().Add(time.Minute)))
	check.Equal(t, "new name", shown(), "new.example")
	check.NoError(c, os.WriteFile(filepath.Join(dir, ServerCert), []byte("x"), 0o644))
	check.Equal(t, "name beside a broken file", shown(), "new.example")
	_, err = PairTLS(dir)
	check.True(t, "a start with a broken file fails", err != nil)
}
