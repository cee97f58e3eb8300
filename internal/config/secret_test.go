package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// A secret is the file's octets without the end of its line; a file that everybody may read is refused.
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

// A path in the directory that systemd gives is looked up when the secret is read.
func TestSecretOfAUnit(t *testing.T) {
	s := Secret{File: Credentials + "journal"}
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	_, err := s.Read()
	check.Contains(t, "the error", err.Error(), "LoadCredential=")
	dir := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	check.NoError(t, os.WriteFile(dir+"/journal", []byte("of the unit\n"), 0o400))
	got, err := s.Read()
	check.NoError(t, err)
	check.Equal(t, "the secret", string(got), "of the unit")
}

// Where the secret comes from stands in [node], and in one of two ways.
func TestSecretKeys(t *testing.T) {
	file := write(t, good)
	text, err := os.ReadFile(file)
	check.NoError(t, err)
	with := func(line string) string { return strings.Replace(string(text), "[node]\n", "[node]\n"+line+"\n", 1) }
	for line, want := range map[string]Secret{
		"journal_key_file = \"key\"":                        {File: "key"},
		"journal_key_file = \"" + Credentials + "journal\"": {File: Credentials + "journal"},
		"journal_passphrase = true":                         {Ask: true},
		"":                                                  {},
	} {
		check.NoError(t, os.WriteFile(file, []byte(with(line)), 0o600))
		c, err := Load(file)
		check.NoError(check.Fatal(t), err)
		if want.File == "key" {
			want.File = filepath.Join(filepath.Dir(file), "key")
		}
		check.Equal(t, line, c.Node.Secret, want)
		node, err := ReadNode(file)
		check.NoError(t, err)
		check.Equal(t, line+", alone", node.Secret, want)
	}
	check.Contains(t, "the mistake", strings.Join(faults(t, with("journal_key_file = \"key\"\njournal_passphrase = true")), "\n"), "node.journal_passphrase")
}
