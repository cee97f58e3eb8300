package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/edge/keyfile"
)

// desk is the address at which a running gateway answers.
type desk struct {
	url   string                                                               // without the path
	at    string                                                               // the address in messages
	hint  string                                                               // likely reason if nobody answers
	token string                                                               // "": none
	dial  func(ctx context.Context, network, address string) (net.Conn, error) // nil: TCP
}

// deskAt is the desk at http.listen. A gateway that listens at every address is asked on loopback.
func deskAt(at netip.AddrPort) desk {
	at = dialable(at)
	return desk{url: "http://" + at.String(), at: at.String(), hint: "it does not run, or runs with another http.listen"}
}

// DeskOf is the desk that takes orders: control.socket of a configuration, or with a token http.listen.
func DeskOf(file, tokenFile string) (desk, error) {
	if tokenFile != "" {
		token, err := keyfile.LoadToken(tokenFile)
		if err != nil {
			return desk{}, err
		}
		at, err := config.HTTPListen(file)
		d := deskAt(at)
		d.token = token
		return d, err
	}
	path, err := config.ControlSocket(file)
	return desk{url: "http://localhost", at: path, hint: "it does not run, or runs with another control.socket",
		dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}}, err
}

// do sends a request to the gateway.
func (d desk) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if d.token != "" {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	client := http.Client{Transport: &http.Transport{DialContext: d.dial, DisableKeepAlives: true, DisableCompression: true}}
	return client.Do(req)
}

// TalkOf is talk that also decodes the answer into what.
func (d desk) TalkOf(what any, method, path string, body []byte) ([]byte, error) {
	answer, err := d.talk(method, path, body)
	if err == nil {
		err = json.Unmarshal(answer, what)
	}
	return answer, err
}

// talk sends a request to the gateway, and returns its answer.
func (d desk) talk(method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	resp, err := d.do(ctx, method, path, body)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no gateway answers at %s: %s", d.at, d.hint)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("permission denied at %s: run this as root (sudo), as the user that runs the gateway, or as a member of control.group", d.at)
	case err != nil:
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the gateway at %s says: %s", d.at, strings.TrimSpace(string(answer)))
	}
	return answer, err
}
