package tak_test

import (
	"fmt"
	"math"
	"time"
)

// unit is a device's own unit on its way.
type unit struct {
	uid, callsign string
	lat, lon      float64
	course, speed float64
	every         time.Duration
}

func (u *unit) report(now time.Time) string {
	return fmt.Sprintf(`<event version="2.0" uid="%s" type="a-f-G-U-C" time="%s" start="%s" stale="%s" how="m-g"><point lat="%.7f" lon="%.7f" hae="22.958679722315807" ce="4.7" le="9999999.0"/><detail><takv os="29" version="4.5.1.13 (55e727de)" device="SAMSUNG SM-G970U" platform="ATAK-CIV"/><contact endpoint="*:-1:stcp" callsign="%s"/><uid Droid="%s"/><precisionlocation altsrc="GPS" geopointsrc="GPS"/><__group role="Team Member" name="Cyan"/><status battery="88"/><track course="%v" speed="%v"/></detail></event>`,
		u.uid, stamp(now), stamp(now), stamp(now.Add(2*u.every+15*time.Second)), u.lat, u.lon, u.callsign, u.callsign, u.course, u.speed)
}

// move moves the unit on.
func (u *unit) move(d time.Duration) {
	const perDegree = 111194.9
	way := u.speed * d.Seconds()
	u.lat += way * math.Cos(u.course*math.Pi/180) / perDegree
	u.lon += way * math.Sin(u.course*math.Pi/180) / perDegree / math.Cos(u.lat*math.Pi/180)
}

func newUnit(i int) *unit {
	return &unit{uid: fmt.Sprintf("ANDROID-%016x", 0x359975090666199a+i*7919), callsign: fmt.Sprintf("FALCON %d", i), lat: 54.3 + float64(i)/100, lon: 10.1, every: 20 * time.Second}
}
