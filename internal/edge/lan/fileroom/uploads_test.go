package fileroom

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/files"
	"aldis/internal/lab/check"
)

// do sends one request; it returns status and body.
func do(t *testing.T, method, at, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, at, strings.NewReader(body))
	check.NoError(check.Fatal(t), err)
	answer, err := http.DefaultClient.Do(req)
	check.NoError(check.Fatal(t), err)
	defer answer.Body.Close()
	b, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(b)
}

// A client uploads a file of the announced size to the address that it got, once. A client that knows the address can download the
// file, also after a restart, and also by its hash. Nobody can upload to another address.
func TestUploads(t *testing.T) {
	dir := t.TempDir()
	b := open(t, Config{Face: XMPP, Dir: dir})
	b.Do(files.Reserve{Ask: 7, Name: "../the <quay>.jpg", MIME: "image/jpeg", Size: 5})
	r := heard[files.Reserved](b)
	if r.Ask != 7 || !strings.HasPrefix(r.Put, b.at+"/") || !strings.HasSuffix(r.Put, "/the%20_quay_.jpg") {
		t.Fatalf("%+v", r)
	}
	status, _ := do(t, "PUT", r.Put, "123456")
	check.Equal(t, "too long", status, http.StatusBadRequest)
	status, text := do(t, "PUT", r.Put, "1234")
	check.Equal(t, "too short: "+text, status, http.StatusBadRequest)
	status, _ = do(t, "GET", r.Get, "")
	check.Equal(t, "before it is there", status, http.StatusNotFound)
	status, _ = do(t, "PUT", b.at+"/GUESSED/x", "12345")
	check.Equal(t, "a guess", status, http.StatusForbidden)
	status, _ = do(t, "PUT", r.Put, "12345")
	check.Equal(t, "the file", status, http.StatusCreated)
	up := heard[files.Uploaded](b)
	if up.Hash != hashOf([]byte("12345")) || up.Name != "the _quay_.jpg" || up.Size != 5 || !strings.Contains(r.Get, up.ID) {
		t.Errorf("%+v", up)
	}
	status, _ = do(t, "PUT", r.Put, "54321")
	check.Equal(t, "again", status, http.StatusForbidden)
	b.Shutdown()
	again := open(t, Config{Face: XMPP, Dir: dir})
	for _, at := range []string{strings.Replace(r.Get, b.at, again.at, 1), again.at + "/" + up.Hash + "/x"} {
		_, text = do(t, "GET", at, "")
		check.Equal(t, at, text, "12345")
		status, _ = do(t, "HEAD", at, "")
		check.Equal(t, at, status, http.StatusOK)
	}
	status, _ = do(t, "OPTIONS", again.at+"/any/thing", "")
	check.Equal(t, "a browser asks", status, http.StatusOK)
	status, text = do(t, "GET", again.at+"/"+strings.Repeat("0", 64)+"/x", "")
	check.Equal(t, "a file of nobody: "+text, status, http.StatusNotFound)
	for i := range mostSlots + 1 {
		again.Do(files.Reserve{Ask: uint64(i), Name: "x", Size: 1})
	}
	check.Until(t, time.Minute, "the last gets no slot", func() bool { return heard[files.Reserved](again).Err != "" })
}
