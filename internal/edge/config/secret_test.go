package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// A path in the directory that systemd provides is resolved when the secret is read.
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

// The source of the secret is configured in [node], in one of two ways.
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
