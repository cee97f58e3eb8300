package profile

import (
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// A unit of the bill limits datagrams to sizes that fill it, and a profile in which that is impossible is refused with a reason.
func TestUnitsOfABill(t *testing.T) {
	source, err := Source("iridium-directip")
	check.NoError(t, err)
	load := func(change ...string) (Profile, error) {
		text := strings.NewReplacer(change...).Replace(string(source))
		return Load("./bill.toml", func(string) ([]byte, error) { return []byte(text), nil })
	}
	p, err := load("[link]\n", "[link]\ntariff_unit_octets = 50\n", "segment_octets = 448", "segment_octets = 400")
	check.NoError(t, err)
	check.Equal(t, "the longest datagram", p.Filled(), 500-IPUDPOctets)
	for octets, units := range map[int]int{1: 1, 50: 1, 51: 2, 500: 10} {
		check.Equal(t, "units", p.Units(octets), units)
	}
	plain, err := load()
	check.NoError(t, err)
	check.Equal(t, "the longest datagram without units", plain.Filled(), plain.DatagramOctets)
	check.Equal(t, "units without units", plain.Units(500), 0)
	for _, tt := range []struct{ link, says string }{
		{"tariff_unit_octets = 50", "the 472 octets that fill units of 50"}, // segments of 448 have no room
		{"tariff_unit_octets = -1", "link.tariff_unit_octets"},
		{"tariff_unit_octets = 5000", "link.tariff_unit_octets"},
		{"tariff_unit_octets = 900", "leaves no datagram"},
	} {
		_, err := load("[link]\n", "[link]\n"+tt.link+"\n")
		check.True(t, tt.link+" is refused", err != nil && strings.Contains(err.Error(), tt.says), err)
	}
	_, err = load("[link]\n", "[link]\ntariff_unit_octets = 50\n", `tariff = "octets"`, `tariff = "minutes"`)
	check.True(t, "minutes by octets are refused", err != nil && strings.Contains(err.Error(), "is of no use where link.tariff"), err)
}
