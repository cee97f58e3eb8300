package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
)

// A command that gets a named pipe or a device reports that instead of waiting or reading for ever, and names it once.
func TestWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	check.NoError(t, syscall.Mkfifo(at("pipe"), 0o600))
	check.NoError(t, os.Symlink("/dev/zero", at("zero")))
	for _, name := range []string{"pipe", "zero"} {
		data := at(name + ".d")
		check.NoError(t, os.Mkdir(data, 0o700))
		for _, file := range []string{"aldis.db", "audit.log"} {
			check.NoError(t, os.Symlink(at(name), filepath.Join(data, file)))
		}
	}
	s := newSite(t, 1, "")
	s.write(t, filepath.Join(s.dir, "data"))
	for _, command := range []string{
		"compact FILE", "compact FILE -o OUT", "compact --expand FILE", "compact --query text:x FILE", "compact " + s.file + " --corpus FILE",
		"analyse FILE", "record FILE -o OUT", "replay FILE", "replay x --profile FILE", "corpus build -o OUT FILE", "corpus show FILE",
		"check FILE", "keys show FILE", "keys node show FILE", "keys authority show FILE", "keys roster show FILE", "keys rollover FILE -c " + s.file,
		"keys authority new -o OUT --passphrase-file FILE", "lab blue-game --measured-up FILE", "lab blue-game --profile FILE",
		"restore FILE -c " + s.file, "journal check --dir FILE.d", "journal stats --dir FILE.d", "journal repair --dir FILE.d", "status -c FILE", "run -c FILE",
	} {
		for _, name := range []string{"pipe", "zero"} {
			args := strings.NewReplacer("FILE", at(name), "OUT", at("out")).Replace(command)
			code, out, errs := run(t, strings.Fields(args)...)
			says := errs + out
			want := 1
			if strings.Contains(command, "--measured-up") { // one of the options that lab checks together
				want = 2
			}
			check.Equal(t, fmt.Sprintf("exit of %s: %s", args, says), code, want)
			check.Contains(t, args, says, "is not a file but a ")
			check.True(t, args+" names it once", strings.Count(says, at(name)+":") <= 1, says)
		}
	}
	_, err := os.Stat(at("out"))
	check.ErrorIs(t, err, os.ErrNotExist)
}

// Nine million octets of elements that are never closed are coded, and decoded again.
func TestDeepDocument(t *testing.T) {
	dir := t.TempDir()
	deep, coded, back := filepath.Join(dir, "deep.xml"), filepath.Join(dir, "coded"), filepath.Join(dir, "back")
	text := strings.Repeat("<a>", 3_000_000)
	check.NoError(t, os.WriteFile(deep, []byte(text), 0o600))
	code, out, errs := run(t, "compact", deep)
	check.True(t, "it is coded", code == 0 && strings.Contains(out, "deflated"), errs)
	code, _, errs = run(t, "compact", deep, "-o", coded)
	check.True(t, "it is written", code == 0, errs)
	code, _, errs = run(t, "compact", "--expand", coded, "-o", back)
	check.True(t, "it is expanded", code == 0, errs)
	got, err := os.ReadFile(back)
	check.True(t, "it is the same", err == nil && string(got) == text)
}
