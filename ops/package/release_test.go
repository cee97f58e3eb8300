package install

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// output runs a program and returns what it said, whatever its exit code.
func output(stdin []byte, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// What is released, of either program, is position independent, is bound at its start to memory that is read-only from then on, has no stack that
// is executed, no symbols, and no path of the machine that built it. The symbols are beside it.
func TestReleasedBinary(t *testing.T) {
	for _, program := range []string{"gateway", "gateway-lab"} {
		t.Run(program, func(t *testing.T) { released(t, program) })
	}
}

func released(t *testing.T, program string) {
	file := filepath.Join(t.TempDir(), program+"-"+runtime.GOARCH)
	if out, err := output(nil, "../../scripts/hardened", runtime.GOARCH, file, "", program); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flag := func(tag elf.DynTag) (bits uint64) {
		list, err := f.DynValue(tag)
		if err != nil {
			t.Error(err)
		}
		for _, v := range list {
			bits |= v
		}
		return bits
	}
	if f.Type != elf.ET_DYN || flag(elf.DT_FLAGS_1)&uint64(elf.DF_1_PIE) == 0 {
		t.Errorf("it is %v and not position independent", f.Type)
	}
	if flag(elf.DT_FLAGS)&uint64(elf.DF_BIND_NOW) == 0 || flag(elf.DT_FLAGS_1)&uint64(elf.DF_1_NOW) == 0 {
		t.Error("functions of libraries are bound when they are first called")
	}
	relro := false
	for _, p := range f.Progs {
		relro = relro || p.Type == elf.PT_GNU_RELRO
		if p.Type == elf.PT_GNU_STACK && p.Flags&elf.PF_X != 0 {
			t.Error("its stack is executable")
		}
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Flags&elf.PF_W != 0 {
			t.Error("it has memory that is written and executed")
		}
	}
	if !relro {
		t.Error("nothing is read-only after the relocation")
	}
	for _, s := range f.Sections {
		if s.Name == ".symtab" || strings.HasPrefix(s.Name, ".debug") || strings.HasPrefix(s.Name, ".zdebug") {
			t.Errorf("it has the section %s", s.Name)
		}
	}
	if link := f.Section(".gnu_debuglink"); link == nil {
		t.Error("it does not name the file of its symbols")
	} else if name, err := link.Data(); err != nil || !strings.HasPrefix(string(name), filepath.Base(file)+".debug\x00") {
		t.Errorf("the file of its symbols is %q, %v", name, err)
	}
	symbols, err := elf.Open(file + ".debug")
	if err != nil {
		t.Fatal(err)
	}
	defer symbols.Close()
	if list, err := symbols.Symbols(); err != nil || len(list) < 1000 {
		t.Errorf("%d symbols beside it, %v", len(list), err)
	}
	if _, err := symbols.DWARF(); err != nil {
		t.Error(err)
	}
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(here)) {
		t.Errorf("it names %s", here)
	}
	if out, err := output(nil, file, "version"); err != nil || !strings.HasPrefix(out, "aldis "+program+" ") {
		t.Errorf("%v: %s", err, out)
	}
}

// verify is what docs/install.md tells everybody to do with what was released.
func verify(dir, signers string) (string, error) {
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		return "", err
	}
	out, err := output(sums, "ssh-keygen", "-Y", "verify", "-f", signers, "-I", "aldis", "-n", "aldis-release", "-s", filepath.Join(dir, "SHA256SUMS.sig"))
	if err != nil {
		return out, err
	}
	more, err := output(nil, "sh", "-c", `cd "$0" && sha256sum --check --strict --quiet SHA256SUMS`, dir)
	return out + more, err
}

// A release is good as it was signed, and not with another file, other checksums or another key. A key in the tree is refused.
func TestSignedChecksums(t *testing.T) {
	keys, dir := t.TempDir(), t.TempDir()
	key := func(name string) string {
		t.Helper()
		file := filepath.Join(keys, name)
		if out, err := output(nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(file + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file+".signers", append([]byte("aldis "), text...), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	releaser, other := key("releaser"), key("other")
	write("aldis.deb", "a package")
	write("with a space", "another")
	for range 2 { // also over what was signed before
		if out, err := output(nil, "../../scripts/sign", releaser, dir); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if out, err := verify(dir, releaser+".signers"); err != nil || strings.Count(text(t, filepath.Join(dir, "SHA256SUMS")), "\n") != 2 {
		t.Errorf("as it was signed: %v\n%s", err, out)
	}
	if out, err := verify(dir, other+".signers"); err == nil {
		t.Errorf("by another key it is good:\n%s", out)
	}
	write("aldis.deb", "a packagE")
	if out, err := verify(dir, releaser+".signers"); err == nil {
		t.Errorf("with another file it is good:\n%s", out)
	}
	sums, _ := output(nil, "sh", "-c", `cd "$0" && sha256sum aldis.deb "with a space"`, dir)
	write("SHA256SUMS", sums)
	if out, err := verify(dir, releaser+".signers"); err == nil {
		t.Errorf("with other checksums it is good:\n%s", out)
	}

	tree, err := os.MkdirTemp(".", "key")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tree)
	inside := filepath.Join(tree, "releaser")
	if err := os.WriteFile(inside, []byte(text(t, releaser)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := output(nil, "../../scripts/sign", inside, dir); err == nil || !strings.Contains(out, "lies in the source tree") {
		t.Errorf("a key in the tree: %v\n%s", err, out)
	}
	if out, err := output(nil, "../../scripts/sign", releaser, t.TempDir()); err == nil || !strings.Contains(out, "there is nothing in") {
		t.Errorf("nothing to sign: %v\n%s", err, out)
	}
}

// Who releases says so in CHANGELOG.md first, and from a commit.
func TestUnfinishedIsNotReleased(t *testing.T) {
	cmd := exec.Command("../../scripts/release", "/dev/null", runtime.GOARCH)
	cmd.Env = append(os.Environ(), "VERSION=", "DIST="+t.TempDir())
	out, err := cmd.CombinedOutput()
	unreleased := strings.Contains(text(t, "../../CHANGELOG.md"), "] - unreleased")
	if err == nil || unreleased && !strings.Contains(string(out), "calls") {
		t.Errorf("%v\n%s", err, out)
	}
}
