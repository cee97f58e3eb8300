package trace

import (
	"bytes"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// A capture says in one sentence what is wrong with its link, or that nothing is.
func TestHeadline(t *testing.T) {
	for name, want := range map[string]struct {
		condition Condition
		text      string
	}{
		"jxta22-tcp":          {Clean, "Nothing is wrong with this link: no packet was sent again, and every connection was set up; of 100 octets on the wire 5.1 were the application's."},
		"jxse27-http":         {Clean, "Nothing is wrong with this link: 0.3 % of all packets were sent again, and every connection was set up; of 100 octets on the wire 7.1 were the application's."},
		"jxta22-http-iridium": {Jammed, "This link was jammed: 14 % of all packets were sent again, 2 of 15 connections were never set up and setting one up took 4.9 s on average; of 100 octets on the wire 7.4 were the application's."},
		"jxta22-tcp-iridium":  {Jammed, "This link was jammed: 12 % of all packets were sent again and another peer's service was found after 139 s; of 100 octets on the wire 1.9 were the application's."},
	} {
		r := analyse(packets(t, load(t, name)), Options{})
		check.Equal(t, name, r.Condition, want.condition)
		check.Equal(t, name, r.Headline, want.text)
		var text bytes.Buffer
		if err := r.WriteText(&text, name); err != nil {
			t.Fatal(err)
		}
		check.True(t, "it is the first line", strings.HasPrefix(text.String(), want.text+"\n"), text.String())
	}
}

// Each figure decides by itself.
func TestConditions(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    Report
		want Condition
		says string
	}{
		{"nothing", Report{}, Unjudged, "Nothing was found that could be judged."},
		{"little", Report{Figures: Figures{Packets: 19}, RetransmitPct: 50}, Unjudged, "19 packets of TCP are too few"},
		{"no JXTA", Report{Figures: Figures{Packets: 100}}, Clean, "; no JXTA was found on it."},
		{"some again", Report{Figures: Figures{Packets: 100}, RetransmitPct: 3, Setups: 1}, Strained, "This link was strained: 3.0 % of all packets were sent again"},
		{"handshakes", Report{Figures: Figures{Packets: 100}, Setups: 7, FailedSetups: 11, RetransmitPct: 30}, Jammed, "This link was jammed: 30 % of all packets were sent again and 11 of 18 connections were never set up"},
		{"one handshake", Report{Figures: Figures{Packets: 100}, FailedSetups: 1}, Strained, "1 of 1 connections were never set up"},
		{"slow", Report{Figures: Figures{Packets: 100, SetupAvgS: 4.2}, Setups: 3}, Strained, "setting one up took 4.2 s on average"},
		{"late", Report{Figures: Figures{Packets: 100}, Discovery: []Service{{"own", 3, true}, {"other", 147, false}}}, Strained, "another peer's service was found after 147 s"},
		{"jammed and slow", Report{Figures: Figures{Packets: 100, SetupAvgS: 9}, RetransmitPct: 24, Setups: 1}, Jammed, "24 % of all packets were sent again and setting one up took 9.0 s"},
		{"closed", Report{Link: &LinkReport{Datagrams: 12}}, Unjudged, "12 datagrams of gateways, none of which could be opened: --key FILE"},
		{"gateways", Report{Link: &LinkReport{Datagrams: 12, Opened: 12, Messages: 5, Acked: 4, Repeats: 1, MeanS: 2}}, Unjudged, "Gateways sent 12 datagrams for 5 messages: 4 have their acknowledgement in the capture, 1 frames were sent again, and an acknowledgement took 2.0 s on average."},
	} {
		tt.r.judge()
		check.Equal(t, tt.name, tt.r.Condition, tt.want)
		check.True(t, tt.name, strings.Contains(tt.r.Headline, tt.says), tt.r.Headline)
		check.Equal(t, tt.name+": a jam is only of a jammed link", tt.r.Jam() != Jam{}, tt.want == Jammed)
	}
	jam := Jam{30.2, 7, 11, 3}
	check.Equal(t, "a jam in words", jam.String(), "30 % of all packets were sent again, 11 of 18 connections were never set up and 3 messages were begun and never ended")
}
