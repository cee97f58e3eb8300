package commands

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// chatCapture is a capture (pcap, raw IP) of the LAN of a ship: two clients talk with a user ashore and in a room there. The server
// passes on the room's lines to both clients.
func chatCapture() []byte {
	order := binary.LittleEndian
	file := append([]byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0}, make([]byte, 8)...)
	file = order.AppendUint32(order.AppendUint32(file, 65535), 101)
	seq := map[[2]byte]uint32{}
	at := uint32(1_764_000_000)
	say := func(client byte, server bool, text string) {
		from, to, ports := client, byte(1), []byte{0x9c, 0x40, 0x14, 0x66} // 40000 to 5222
		if server {
			from, to, ports = to, from, []byte{0x14, 0x66, 0x9c, 0x40}
		}
		ip := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to}
		ip = append(ip, ports...)
		ip = binary.BigEndian.AppendUint32(ip, 100+seq[[2]byte{from, to}])
		ip = append(ip, 0, 0, 0, 1, 5<<4, 0x10, 255, 255, 0, 0, 0, 0)
		seq[[2]byte{from, to}] += uint32(len(text))
		ip = append(ip, text...)
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		at++
		for _, n := range []uint32{at, 0, uint32(len(ip)), uint32(len(ip))} {
			file = order.AppendUint32(file, n)
		}
		file = append(file, ip...)
	}
	const head = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
	names := map[byte]string{2: "anna", 3: "alma"}
	for _, c := range []byte{2, 3} {
		say(c, false, head)
		say(c, true, head)
		say(c, true, fmt.Sprintf("<iq type='result' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>%s@ship.example/x</jid></bind></iq>", names[c]))
		say(c, false, fmt.Sprintf("<presence to='ops@conference.hq.example/%s'><x xmlns='http://jabber.org/protocol/muc'/></presence>", names[c]))
	}
	say(2, false, "<message to='bert@hq.example' type='chat' id='1'><body>Good morning from the ship</body></message>")
	say(2, true, "<message from='bert@hq.example/x' to='anna@ship.example/x' type='chat' id='2'><body>And to you</body></message>")
	for i := range 5 {
		say(3, false, fmt.Sprintf("<message to='ops@conference.hq.example' type='groupchat' id='g%d'><body>line %d of the watch</body></message>", i, i))
		for _, c := range []byte{2, 3} {
			say(c, true, fmt.Sprintf("<message from='ops@conference.hq.example/alma' to='%s@ship.example/x' type='groupchat' id='g%d'><body>line %d of the watch</body></message>", names[c], i, i))
		}
	}
	say(2, false, "<message to='alma@ship.example' type='chat' id='9'><body>This stays here</body></message>")
	return file
}

// A capture of XMPP clients becomes a trace, which plays over a link and is judged.
func TestXMPPTrace(t *testing.T) {
	capture, to := write(t, chatCapture()), filepath.Join(t.TempDir(), "chat.trace")
	var out, errs bytes.Buffer
	if code := recordCommand([]string{capture, "-o", to}, &out, &errs); code != cli.ExitGood {
		t.Fatalf("exit %d: %s%s", code, out.String(), errs.String())
	}
	out.Reset()
	if code := replayCommand([]string{to, "--profile", "hf-2400"}, &out, &errs); code != cli.ExitGood {
		t.Fatalf("exit %d: %s%s", code, out.String(), errs.String())
	}
	for _, want := range []string{"9 stanzas of XMPP users", "1, message", "1, line in a room", "1, presence"} {
		check.Contains(t, "the replay", out.String(), want)
	}
	out.Reset()
	if code := rehearseCommand([]string{"--trace", to, "--profile", "iridium-directip", "--plays", "3"}, &out, &errs); code != cli.ExitGood {
		t.Fatalf("exit %d: %s%s", code, out.String(), errs.String())
	}
	check.Contains(t, "the verdict", out.String(), "GO. All messages and lines come on iridium-directip")
}
