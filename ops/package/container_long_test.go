//go:build long

package install

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// user is the number of the image's user, which the key file on the host belongs to.
const user = 842

// The container file makes an image that runs as a user without privileges on a root that is read-only, keeps its journal
// in a volume, and ends in good order when it is told to.
func TestContainer(t *testing.T) {
	dir := t.TempDir()
	must(t, []string{"DIST=" + dir, "VERSION=" + newer}, "../../scripts/packages", "amd64")
	base := filepath.Join(t.TempDir(), "base.tar")
	must(t, nil, "mmdebstrap", append([]string{"--quiet", "--variant=minbase", "bookworm", base}, sources(t)...)...)
	store := t.TempDir()
	podman := func(args ...string) string {
		t.Helper()
		return must(t, nil, "podman", append([]string{"--root", store + "/root", "--runroot", store + "/run", "--runtime", "runc", "--cgroup-manager", "cgroupfs"}, args...)...)
	}
	t.Cleanup(func() { podman("system", "reset", "--force") })
	podman("import", "--quiet", base, "localhost/debian:12")
	podman("build", "--quiet", "--isolation", "chroot", "--network", "host", "--build-arg", "BASE=localhost/debian:12",
		"--build-arg", "DEB=aldis-gateway_"+newer+"_amd64.deb", "--file", "../container/Containerfile", "--tag", "aldis", dir)

	etc, lan, link, desk := t.TempDir(), check.FreeAddress(t, "tcp"), check.FreeAddress(t, "udp"), check.FreeAddress(t, "tcp")
	config := fmt.Sprintf("[node]\nid = 2\nname = \"ship\"\ndata_dir = \"/var/lib/aldis\"\n[lan]\ntcp = %q\n[link]\nprofile = \"wire\"\nlisten = %q\nkey_file = \"net.key\"\n"+
		"[http]\nlisten = %q\n[[link.peer]]\nid = 1\nname = \"hq\"\n", lan, link, desk)
	if err := os.WriteFile(filepath.Join(etc, "gateway.toml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(etc, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(more ...string) string {
		t.Helper()
		return podman(append([]string{"run", "--network", "host", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges",
			"--ulimit", "nofile=4096:4096", "--ulimit", "nproc=1024:1024"}, more...)...)
	}
	if out := run("--rm", "--entrypoint", "/usr/bin/id", "aldis"); !strings.HasPrefix(out, fmt.Sprintf("uid=%d(aldis) gid=%d(aldis)", user, user)) {
		t.Errorf("the image's user: %s", out)
	}
	run("--rm", "--user", "0", "-v", etc+":/key", "aldis", "keys", "new", "-o", "/key/net.key")
	if err := os.Chown(filepath.Join(etc, "net.key"), user, user); err != nil {
		t.Fatal(err)
	}
	for start := range 2 {
		id := strings.TrimSpace(run("--detach", "-v", etc+":/etc/aldis:ro", "-v", "journal:/var/lib/aldis", "aldis"))
		check.Until(t, patience, "the gateway in the container answers", func() bool {
			answer, err := http.Get("http://" + desk + "/healthz")
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			io.Copy(io.Discard, answer.Body)
			return answer.StatusCode == http.StatusOK
		})
		podman("stop", id)
		if code := strings.TrimSpace(podman("inspect", "--format", "{{.State.ExitCode}}", id)); code != "0" {
			t.Errorf("start %d ended with exit code %s:\n%s", start, code, podman("logs", id))
		}
	}
	if out := run("--rm", "-v", "journal:/var/lib/aldis", "aldis", "journal", "stats", "--dir", "/var/lib/aldis"); !strings.Contains(out, "ship") {
		t.Errorf("the volume's journal:\n%s", out)
	}
}
