package commands

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// meshCapture is a capture (pcap, raw IP) of the mesh: devices that move north and report every ten seconds.
func meshCapture(devices int, length time.Duration) []byte {
	order := binary.LittleEndian
	file := append([]byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0}, make([]byte, 8)...)
	file = order.AppendUint32(order.AppendUint32(file, 65535), 101)
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	stamp := func(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }
	for at := time.Duration(0); at < length; at += 10 * time.Second {
		for d := range devices {
			now := start.Add(at)
			event := fmt.Sprintf(`<event version="2.0" uid="ANDROID-%d" type="a-f-G-U-C" how="m-g" time="%s" start="%s" stale="%s"><point lat="%.6f" lon="5.3" hae="12" ce="9.9" le="9999999.0"/>`+
				`<detail><contact callsign="UNIT %d" endpoint="*:-1:stcp"/><track speed="5.0" course="0.0"/></detail></event>`, d, stamp(now), stamp(now), stamp(now.Add(time.Minute)), 60+5*at.Seconds()/111194.9, d)
			ip := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, byte(d + 1), 239, 2, 3, 1, 0xc0, 0, 0x1b, 0x39, 0, 0, 0, 0} // to port 6969
			ip = append(ip, event...)
			binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
			binary.BigEndian.PutUint16(ip[24:], uint16(len(ip)-20))
			for _, n := range []uint32{uint32(now.Unix()), uint32(d), uint32(len(ip)), uint32(len(ip))} {
				file = order.AppendUint32(file, n)
			}
			file = append(file, ip...)
		}
	}
	return file
}

// analyse reports the events of TAK devices, and with --links their cost.
func TestAnalyseTAK(t *testing.T) {
	file := write(t, meshCapture(4, 3*time.Minute))
	var out, errs bytes.Buffer
	if code := analyseCommand([]string{file, "--links", "iridium-dialup,hf-2400"}, &out, &errs); code != cli.ExitGood {
		t.Fatalf("exit %d: %s%s", code, out.String(), errs.String())
	}
	for _, want := range []string{"4 TAK devices and 0 other units made", "UNIT 3, a-f-G-U-C (device)", "The same events through two gateways", "iridium-dialup", "hf-2400"} {
		check.Contains(t, "the text", out.String(), want)
	}
	out.Reset()
	if code := analyseCommand([]string{file, "--links", "iridium-dialup", "--json"}, &out, &errs); code != cli.ExitGood {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var got struct {
		Details map[string]struct {
			CoT struct {
				Devices int
				Costs   []struct {
					Octets  int
					CoT     int `json:"cot_octets"`
					Reports int
				}
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, d := range got.Details {
		check.Equal(t, "devices", d.CoT.Devices, 4)
		check.Equal(t, "links", len(d.CoT.Costs), 1)
		c := d.CoT.Costs[0]
		check.True(t, "a tenth of the octets, or less", c.Reports == 72 && c.Octets > 0 && c.Octets*10 < c.CoT, c)
	}
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{write(t, captures(t)["jxta22-http"]), "--links", "hf-2400"}, "the capture has no event of a TAK device in clear"},
		{[]string{file, "--links", "carrier-pigeon"}, "carrier-pigeon"},
	} {
		errs.Reset()
		code := analyseCommand(tt.args, &out, &errs)
		check.Differ(t, strings.Join(tt.args[1:], " "), code, cli.ExitGood)
		check.Contains(t, "what it says", errs.String(), tt.says)
	}
}

// record, replay and rehearse know the events of TAK devices. A test of internal/lab/field shows that replay --live plays them.
func TestTAKTrace(t *testing.T) {
	capture, file := write(t, meshCapture(3, 2*time.Minute)), filepath.Join(t.TempDir(), "tak.trace")
	for _, tt := range []struct {
		command cli.Command
		args    []string
		code    int
		says    []string
	}{
		{recordCommand, []string{capture, "-o", file}, cli.ExitGood, []string{"36 events", "36 of"}},
		{replayCommand, []string{file, "--profile", "iridium-dialup"}, cli.ExitGood, []string{"36 events of TAK devices, 36 of them reports", "On the link"}},
		{replayCommand, []string{file, "--profile", "iridium-dialup", "--html", "-"}, cli.ExitGood, []string{"<!DOCTYPE html>", "36 events of TAK devices"}},
		{rehearseCommand, []string{"--profile", "iridium-dialup", "--trace", file, "--plays", "3"}, cli.ExitGood, []string{"GO. 95 of 100 reports are shown within", "All 3 plays are GO.", "1, GO", "3, GO"}},
		{rehearseCommand, []string{"--profile", "iridium-dialup", "--trace", file, "--plays", "2", "--json"}, cli.ExitGood, []string{`"verdict": "go"`, `"chance_of_go"`, `"seed": 2`}},
		{recordCommand, []string{capture, "-o", file, "--sizes"}, cli.ExitGood, []string{"36 events"}},
		{replayCommand, []string{file}, cli.ExitRefused, []string{"record it without --sizes and --anonymise"}},
	} {
		var out bytes.Buffer
		code := tt.command(tt.args, &out, &out)
		check.Equal(t, strings.Join(tt.args, " ")+": exit", code, tt.code)
		for _, s := range tt.says {
			check.Contains(t, "what it says", out.String(), s)
		}
	}
}
