package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
)

const token = "TCVkDPWmCbUzL0hM"

// post gives an order for silence over TCP.
func (s *server) post(t *testing.T, kind, body, authorization, host string) (code int, answer string) {
	t.Helper()
	return s.postTo(t, "/silence", kind, body, authorization, host)
}

// postTo gives any order over TCP.
func (s *server) postTo(t *testing.T, path, kind, body, authorization, host string) (code int, answer string) {
	t.Helper()
	r, err := http.NewRequest("POST", s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host // "": the URL's
	r.Header.Set("Content-Type", kind)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// Over TCP an order needs the token, and the refusal without it says how to give orders.
func TestOrderNeedsTheToken(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		name, authorization string
		code                int
		says                string
	}{
		{"nothing", "", 403, "orders are not taken here: go to the bridge"},
		{"another token", "Bearer TCVkDPWmCbUzL0hm", 403, "this is not the token of http.token_file: go to the bridge"},
		{"a part of it", "Bearer TCVk", 403, "this is not the token"},
		{"no token at all", "Bearer ", 403, "orders are not taken here"},
		{"another scheme", "Basic " + token, 403, "orders are not taken here"},
		{"the token", "Bearer " + token, 200, `"on":true`},
	} {
		code, answer := s.post(t, "application/json", `{"on":true}`, tt.authorization, "")
		check.Equal(check.In(t, tt.name), "code", code, tt.code)
		check.Contains(check.In(t, tt.name), "answer", answer, tt.says)
	}
	check.Equal(t, "orders that were given", len(s.ordered), 1)
	log := s.log.String()
	check.Equal(t, "refusals in the log", strings.Count(log, "an order was refused"), 5)
	check.Contains(t, "log", log, `msg="an order was given" order=silence what="on, announced: false" by="over HTTP from 127.0.0.1:`)
	check.Equal(t, "orders with the token in the log", strings.Count(log, `, with the token"`), 1)
}

// An order that contradicts the configuration, or whose end is past, is refused in words.
func TestOrderRefused(t *testing.T) {
	s := start(t)
	s.status.Silence = api.SilenceStatus{On: true, Fixed: true}
	code, answer := s.post(t, "application/json", `{"on":false}`, "Bearer "+token, "")
	check.Equal(t, "code", code, http.StatusConflict)
	check.Contains(t, "answer", answer, "node.silent = true")
	code, answer = s.post(t, "application/json", `{"on":true,"until":"2020-01-01T00:00:00Z"}`, "Bearer "+token, "")
	check.Equal(t, "code", code, http.StatusBadRequest)
	check.Contains(t, "answer", answer, "2020-01-01T00:00:00Z is over")
	check.Equal(t, "orders that were given", len(s.ordered), 0)
}

// A request with a host name that is not this gateway's is refused: a browser's page could have sent it.
func TestHost(t *testing.T) {
	s := start(t)
	for host, want := range map[string]int{
		"": 200, "localhost": 200, "LocalHost:9142": 200, "127.0.0.1": 200, "10.20.0.1:9142": 200, "[::1]:9142": 200,
		"ship.example": 200, "SHIP.example:9142": 200,
		"attacker.example": 421, "attacker.example:9142": 421, "127.0.0.1.attacker.example": 421, "localhost.attacker.example": 421, "ship": 421,
	} {
		for _, path := range []string{"/status", "/healthz", "/metrics", "/silence"} {
			r, err := http.NewRequest("GET", s.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			resp, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			wanted := want
			if path == "/silence" && want == 200 {
				wanted = http.StatusMethodNotAllowed
			}
			check.Equal(check.In(t, host+path), "code", resp.StatusCode, wanted)
		}
		code, _ := s.post(t, "application/json", `{"on":true}`, "Bearer "+token, host)
		check.Equal(check.In(t, host), "code of an order", code, want)
	}
}

// desk serves on a unix socket until the test ends.
func desk(t *testing.T, group int) (path string, log *bytes.Buffer) {
	t.Helper()
	dir, err := os.MkdirTemp("", "aldis-control-") // shorter than the test's own, and others may pass
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path, log = filepath.Join(dir, "control.sock"), &bytes.Buffer{}
	ln, err := ListenSocket("control.socket", path, group)
	if err != nil {
		t.Fatal(err)
	}
	on := false
	d := New(Source{
		Names: func() []string { return nil }, Authority: func() Authority { return Authority{Group: group, Way: "go to the bridge"} }, Log: slog.New(slog.NewTextHandler(log, nil)),
		Snapshot: func(context.Context) (Snapshot, error) {
			return Snapshot{Gateway: api.Status{Silence: api.SilenceStatus{On: on}}}, nil
		},
		Order: func(ev api.Event) { on = ev.(api.Silence).On },
	}, prometheus.NewRegistry())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- d.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return path, log
}

// sendAs gives an order over the socket as another user.
func sendAs(t *testing.T, path string, as *syscall.Credential) (answer string, err error) {
	t.Helper()
	const request = "POST /silence HTTP/1.1\r\nHost: attacker.example\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 11\r\n\r\n{\"on\":true}"
	cmd := exec.Command("/proc/self/exe", path)
	cmd.Env = append(os.Environ(), asSender+"=1")
	cmd.Stdin = strings.NewReader(request)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	out, err := cmd.Output()
	return string(out), err
}

// asSender makes the test program one that copies its input to the unix socket, and the answer to its output.
const asSender = "ALDIS_TEST_AS_SENDER"

func TestMain(m *testing.M) {
	if os.Getenv(asSender) != "" {
		conn, err := net.Dial("unix", os.Args[1])
		if err != nil {
			os.Exit(3)
		}
		io.Copy(conn, os.Stdin)
		io.Copy(os.Stdout, conn)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Over the unix socket the kernel names the user that gives an order. Root, the gateway's user and the members of the group
// may; others may not, even if the file's mode lets them connect.
func TestOrderOverTheSocket(t *testing.T) {
	const ours = 54321
	for _, tt := range []struct {
		name  string
		group int
		mode  os.FileMode // 0: unchanged
		as    syscall.Credential
		says  string // "": cannot connect
	}{
		{"root", -1, 0, syscall.Credential{}, "200 OK"},
		{"nobody", -1, 0, syscall.Credential{Uid: 65534, Gid: 65534}, ""},
		{"nobody, through an open door", -1, 0o666, syscall.Credential{Uid: 65534, Gid: 65534}, "403 Forbidden"},
		{"of the group", ours, 0, syscall.Credential{Uid: 65534, Gid: ours}, "200 OK"},
		{"of the group as well", ours, 0, syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{7, ours}}, "200 OK"},
		{"of another", ours, 0, syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{7}}, ""},
		{"of another, through an open door", ours, 0o666, syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{7}}, "403 Forbidden"},
	} {
		path, log := desk(t, tt.group)
		if tt.mode != 0 {
			if err := os.Chmod(path, tt.mode); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := sendAs(t, path, &tt.as)
		in := check.In(t, tt.name)
		switch tt.says {
		case "":
			check.Contains(in, "the error", err.Error(), "exit status 3")
		case "200 OK":
			check.Contains(in, "answer", answer, tt.says)
			check.Contains(in, "log", log.String(), "an order was given")
		default:
			check.Contains(in, "answer", answer, tt.says)
			check.Contains(in, "answer", answer, "uid 65534 (nobody), pid ")
			check.Contains(in, "answer", answer, "may not give orders: go to the bridge")
			check.Contains(in, "log", log.String(), "an order was refused")
		}
	}
}

// A socket that a killed gateway left is replaced; a socket that answers is not, nor is a file.
func TestListenSocket(t *testing.T) {
	path, _ := desk(t, -1)
	_, err := ListenSocket("control.socket", path, -1)
	check.Contains(t, "error", fmt.Sprint(err), "another gateway answers at "+path)
	left := filepath.Join(t.TempDir(), "left.sock")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: left})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	again, err := ListenSocket("control.socket", left, -1)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(left); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", info, err)
	}
	again.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = ListenSocket("control.socket", file, -1)
	check.Contains(t, "error", fmt.Sprint(err), "is no socket")
}

// The answer to an order comes once the journal has stored it. If the journal cannot write, that is logged, and the answer is
// the same.
func TestOrderWaitsForTheJournal(t *testing.T) {
	s := start(t)
	asked := 0
	s.durable = func(context.Context) error {
		asked++
		check.Equal(t, "orders obeyed before the journal is asked", len(s.ordered), asked)
		if asked == 2 {
			return context.DeadlineExceeded
		}
		return nil
	}
	for want := 1; want <= 2; want++ {
		code, answer := s.post(t, "application/json", `{"on":true}`, "Bearer "+token, "")
		check.Equal(t, "code, "+answer, code, http.StatusOK)
		check.Equal(t, "times that the journal was asked", asked, want)
		s.status.Silence.On = false
	}
	check.Equal(t, "lines about a journal that has it not", strings.Count(s.log.String(), "not yet in the journal"), 1)
	s.post(t, "application/json", `{"on":maybe}`, "Bearer "+token, "")
	check.Equal(t, "times that the journal was asked after what is no order", asked, 2)
}

// slow is the source of a gateway whose loop has not seen an order when it is asked for its status for the first time after that, and
// does not answer when it is asked again.
func slow(status api.Status) Source {
	asked := 0
	return Source{Log: slog.New(slog.DiscardHandler), Authority: func() Authority { return Authority{Token: token} }, Order: func(api.Event) {}, Snapshot: func(context.Context) (Snapshot, error) {
		if asked++; asked > 2 {
			return Snapshot{}, errors.New("the loop does not answer")
		}
		return Snapshot{Gateway: status}, nil
	}}
}

// An order that changes what is so already, such as the end of a silence or the key of a group, is not in force before the status shows the
// change.
func TestOrderThatChangesWhatIsSo(t *testing.T) {
	silent := api.Status{Silence: api.SilenceStatus{On: true, Until: "2099-01-01T06:00:00Z"}}
	joined := api.Status{Roster: &api.RosterStatus{}, Groups: []api.GroupStatus{{Name: "ops"}}}
	silence := func() http.HandlerFunc { s := slow(silent); return order(s, "silence", s.silence) }
	group := func() http.HandlerFunc { s := slow(joined); return order(s, "group", s.group) }
	for _, tt := range []struct {
		name, body string
		by         http.HandlerFunc
		code       int
	}{
		{"a later end", `{"on":true,"until":"2099-01-01T08:00:00Z"}`, silence(), 503},
		{"no end", `{"on":true}`, silence(), 503},
		{"the same end", `{"on":true,"until":"2099-01-01T06:00:00Z"}`, silence(), 200},
		{"a key", `{"name":"ops","in":true,"key":true}`, group(), 503},
		{"no key", `{"name":"ops","in":true}`, group(), 200},
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		tt.by(w, r)
		check.Equal(check.In(t, tt.name), "code, "+w.Body.String(), w.Code, tt.code)
		check.Lacks(check.In(t, tt.name), "answer", w.Body.String(), "refused")
	}
}
