package node

import (
	"fmt"
	"net/netip"
	"testing"

	"aldis/internal/edge/config"
	"aldis/internal/lab/check"
)

// A TAK device may have a stream through each machine of the site, two or more.
func TestTAKDevicesByOtherMachines(t *testing.T) {
	var two, three config.Config
	two.Site.Other = netip.MustParseAddrPort("10.20.0.2:9733")
	for i := range 3 {
		three.Cluster.Members = append(three.Cluster.Members, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 20, 0, byte(1 + i)}), 9733))
	}
	check.Equal(t, "of two", fmt.Sprint(TAKConfig(&two).Beside), "[10.20.0.2]")
	check.Equal(t, "of three", fmt.Sprint(TAKConfig(&three).Beside), "[10.20.0.1 10.20.0.2 10.20.0.3]")
}
