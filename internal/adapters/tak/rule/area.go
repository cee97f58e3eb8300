package rule

import "math"

// Box is a part of the world, in degrees: from South to North, and from West eastwards to East, also across the date line.
type Box struct{ South, West, North, East float64 }

// Circle is a part of the world: everything within a distance of a place or of a unit.
type Circle struct {
	Lat, Lon float64 // degrees; ignored if Own is set
	Radius   float64 // metres
	// Own is the uid of the unit of this site around which the circle lies; "": it lies around Lat, Lon.
	Own string
}

// Polygon is a part of the world: its corners in order, each latitude and longitude in degrees, from 3 to MostCorners. A side
// takes the shorter way around the world.
type Polygon [][2]float64

// MostCorners is how many corners a Polygon may have.
const MostCorners = 256

func (p Polygon) has(lat, lon float64) bool {
	lon = p[0][1] + math.Remainder(lon-p[0][1], 360)
	return p.around(lat, lon) || p.around(lat, lon-360) || p.around(lat, lon+360)
}

// around counts the sides of the polygon east of a place. The corners follow each other without a jump at the date line.
func (p Polygon) around(lat, lon float64) (in bool) {
	at := p[0][1]
	for i, a := range p {
		b := p[(i+1)%len(p)]
		side := math.Remainder(b[1]-a[1], 360)
		if (a[0] > lat) != (b[0] > lat) && at+side*(lat-a[0])/(b[0]-a[0]) > lon {
			in = !in
		}
		at += side
	}
	return in
}

func (b *Box) has(lat, lon float64) bool {
	if lat < b.South || lat > b.North {
		return false
	}
	if b.West <= b.East {
		return lon >= b.West && lon <= b.East
	}
	return lon >= b.West || lon <= b.East
}

func (c *Circle) has(lat, lon float64, where func(string) (float64, float64, bool)) bool {
	atLat, atLon := c.Lat, c.Lon
	if c.Own != "" {
		var ok bool
		if where != nil {
			atLat, atLon, ok = where(c.Own)
		}
		if !ok { // nobody knows where the unit is: the place counts as inside
			return true
		}
	}
	return metres(lat, lon, atLat, atLon) <= c.Radius
}

// metres is the distance between two places on a sphere.
func metres(lat1, lon1, lat2, lon2 float64) float64 {
	const rad = math.Pi / 180
	a := math.Pow(math.Sin((lat2-lat1)*rad/2), 2) + math.Cos(lat1*rad)*math.Cos(lat2*rad)*math.Pow(math.Sin((lon2-lon1)*rad/2), 2)
	return 2 * 6371008.8 * math.Asin(math.Min(1, math.Sqrt(a)))
}
