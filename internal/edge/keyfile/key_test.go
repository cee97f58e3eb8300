package keyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/link/seal"
)

func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "net.key")
	if err := NewKey(file); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	first, err := LoadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := NewKey(file); err == nil || !strings.Contains(err.Error(), "is not overwritten") {
		t.Errorf("second key into one file: %v", err)
	}
	if again, err := LoadKey(file); err != nil || again != first {
		t.Errorf("the key changed: %v", err)
	}
	second := filepath.Join(dir, "second.key")
	if err := NewKey(second); err != nil {
		t.Fatal(err)
	}
	if k, _ := LoadKey(second); k == first {
		t.Error("two keys are the same")
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o660, 0o644, 0o610} {
		os.Chmod(file, mode)
		if _, err := LoadKey(file); err == nil || !strings.Contains(err.Error(), "chmod 600 "+file) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	os.Chmod(file, 0o400)
	if _, err := LoadKey(file); err != nil {
		t.Errorf("mode 0400: %v", err)
	}
	for name, text := range map[string]string{"empty": "", "other": "ssh-ed25519 AAAA", "big": strings.Repeat("x", maxKeyFile+1)} {
		bad := filepath.Join(dir, name)
		os.WriteFile(bad, []byte(text), 0o600)
		if _, err := LoadKey(bad); !errors.Is(err, seal.ErrKeyText) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for path, want := range map[string]string{dir: "is not a file", filepath.Join(dir, "lost"): "gateway keys new -o"} {
		os.Chmod(path, 0o700)
		if _, err := LoadKey(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := NewKey(filepath.Join(dir, "no", "such", "dir")); err == nil || !strings.Contains(err.Error(), "cannot be made: no such file or directory") {
		t.Errorf("no directory: %v", err)
	}
}

func TestReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	for _, text := range []string{"one", "two"} {
		check.NoError(t, Replace(file, text, 0o600))
		got, err := os.ReadFile(file)
		check.NoError(t, err)
		check.Equal(t, "text", string(got), text)
	}
	check.True(t, "into no directory", Replace(filepath.Join(file, "x"), "", 0o600) != nil)
}

// A secret is the file's octets without its line end; a file that everybody may read is refused.
func TestLoadSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.key")
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
		says string
	}{
		{"sixteen octets..\r\n", 0o600, "sixteen octets..", ""},
		{"two\nlines", 0o440, "two\nlines", ""},
		{"\n", 0o600, "", "is empty"},
		{"sixteen octets..", 0o604, "", "chmod 600"},
		{strings.Repeat("x", 4097), 0o600, "", "more than 4096"},
	} {
		os.Remove(path)
		check.NoError(t, os.WriteFile(path, []byte(c.text), c.mode))
		got, err := LoadSecret(path)
		check.Equal(t, "the secret", string(got), c.want)
		if c.says == "" {
			check.NoError(t, err)
		} else if check.True(t, "an error", err != nil) {
			check.Contains(t, "the error", err.Error(), c.says)
		}
	}
	_, err := LoadSecret(path + "x")
	check.Contains(t, "the error", err.Error(), "is its medium there?")
}
