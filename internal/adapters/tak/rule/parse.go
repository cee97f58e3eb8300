package rule

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseBox reads a part of the world: "54.1 9.8 54.6 10.4". The error says what it must be.
func ParseBox(text string) (*Box, error) {
	v, err := numbers(text)
	if err != nil || len(v) != 4 {
		return nil, errors.New("south, west, north and east in degrees, like \"54.1 9.8 54.6 10.4\"")
	}
	if v[0] > v[2] || !inWorld(v[0], v[1]) || !inWorld(v[2], v[3]) {
		return nil, errors.New("south, west, north and east of a part of the world")
	}
	return &Box{South: v[0], West: v[1], North: v[2], East: v[3]}, nil
}

// ParsePolygon reads the corners of a part of the world: "54.1 9.8 54.6 10.4 54.0 10.6". Errors are for operators.
func ParsePolygon(text string) (p Polygon, err error) {
	const what = "must be latitude and longitude of three to 256 corners in degrees, like \"54.1 9.8 54.6 10.4 54.0 10.6\""
	v, err := numbers(text)
	switch {
	case err != nil:
		return nil, errors.New(what)
	case len(v) < 6 || len(v)%2 != 0 || len(v) > 2*MostCorners:
		return nil, fmt.Errorf("%s; there are %d numbers", what, len(v))
	}
	for i := 0; i < len(v); i += 2 {
		if !inWorld(v[i], v[i+1]) {
			return nil, fmt.Errorf("has a corner outside of the world: %g %g", v[i], v[i+1])
		}
		p = append(p, [2]float64{v[i], v[i+1]})
	}
	return p, nil
}

// ParseCircle reads "54.3 10.1 5000", or "own ANDROID-… 5000". The error says what it must do or be.
func ParseCircle(text string) (*Circle, error) {
	c := &Circle{}
	f := strings.Fields(text)
	if len(f) != 3 {
		return nil, errors.New("be latitude, longitude and metres, like \"54.3 10.1 5000\", or own, the uid of a unit of this site and metres")
	}
	if f[0] == "own" {
		c.Own = f[1]
	} else if at, err := numbers(f[0] + " " + f[1]); err != nil || !inWorld(at[0], at[1]) {
		return nil, errors.New("be latitude, longitude and metres")
	} else {
		c.Lat, c.Lon = at[0], at[1]
	}
	var err error
	if c.Radius, err = strconv.ParseFloat(f[2], 64); err != nil || !(c.Radius > 0 && c.Radius < 1e8) {
		return nil, errors.New("end with metres")
	}
	return c, nil
}

// numbers are finite.
func numbers(text string) (list []float64, err error) {
	for _, f := range strings.Fields(text) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("is no number")
		}
		list = append(list, v)
	}
	return list, nil
}

func inWorld(lat, lon float64) bool { return lat >= -90 && lat <= 90 && lon >= -180 && lon <= 180 }
