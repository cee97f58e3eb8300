package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

const tlsLink = `
[[link]]
name = "sat"
profile = "iridium-directip"
listen = "10.77.0.2:7142"
modem = "sat.sock"
key_file = "net.key"
[[link.peer]]
id = 1
address = "10.77.0.1:7142"

[[link]]
name = "shore"
over = "tls"
profile = "tls-443"
listen = "0.0.0.0:443"
proxy = "10.0.0.8:3128"
[[link.peer]]
id = 1
address = "198.51.100.7:443"
`

// A [[link]] over TLS needs no address of its own. It listens on a TCP socket, which may be inherited. A modem's socket is found
// without reading the keys.
func TestALinkOverTLS(t *testing.T) {
	c, err := withLinks(t, tlsLink)
	check.NoError(check.Fatal(t), err)
	check.True(t, "one is over TLS", !c.Link.TLS && c.More[0].TLS)
	check.Equal(t, "the proxy", c.More[0].Proxy.String(), "10.0.0.8:3128")
	listens := c.Listens()
	check.Equal(t, "where it listens", listens[len(listens)-1].At.String()+" "+listens[len(listens)-1].Key, `0.0.0.0:443 link.listen of "shore"`)
	dir := filepath.Dir(c.File)
	check.True(t, "sockets of modems", slices.Equal(c.Modems(), []string{dir + "/sat.sock"}), c.Modems())
	for _, name := range []string{"", "sat"} {
		at, err := ModemSocket(c.File, name)
		check.NoError(t, err)
		check.Equal(t, "socket of "+name, at, dir+"/sat.sock")
	}
	_, err = ModemSocket(c.File, "shore")
	check.True(t, "a link without one", err != nil && strings.Contains(err.Error(), `no [[link]] with the name "shore"`), err)
	dials, err := withLinks(t, strings.Replace(tlsLink, "listen = \"0.0.0.0:443\"\n", "", 1))
	check.NoError(check.Fatal(t), err)
	check.True(t, "it needs no address of its own", !dials.More[0].Listen.IsValid())
	one, err := withLinks(t, strings.Replace(tlsLink[strings.LastIndex(tlsLink, "\n[[link]]"):], "name = \"shore\"", "key_file = \"net.key\"", 1))
	check.NoError(check.Fatal(t), err)
	moved := *one
	moved.Link.Peers = slices.Clone(one.Link.Peers)
	moved.Link.Peers[0].Address = c.Link.Peers[0].Address
	changes := one.Changes(&moved)
	check.True(t, "another address needs a restart", len(changes) == 1 && changes[0].Restart, changes)
}

func TestMistakesOfLinksOverTLS(t *testing.T) {
	for _, tt := range []struct{ name, from, to, want string }{
		{"another word", "over = \"tls\"", "over = \"http\"", "link.over: must be one of"},
		{"no address over UDP", "listen = \"10.77.0.2:7142\"\n", "", "link.listen: is missing"},
		{"a proxy over UDP", "over = \"tls\"\n", "", "link.proxy: is of no use without over"},
		{"a channel that all hear", "tls-443", "hf-2400", "link.profile: hf-2400 is for a channel that all hear"},
		{"nobody calls", "listen = \"0.0.0.0:443\"\nproxy = \"10.0.0.8:3128\"\n[[link.peer]]\nid = 1\naddress = \"198.51.100.7:443\"", "[[link.peer]]\nid = 1", "there would be no connection"},
		{"a port twice", "0.0.0.0:443", "10.0.0.1:9701", "is the address of lan.tcp"},
	} {
		text := strings.Replace(tlsLink, tt.from, tt.to, 1)
		_, err := withLinks(t, text)
		check.True(t, tt.name+": it is refused", text != tlsLink && err != nil && strings.Contains(err.Error(), tt.want), err)
	}
}
