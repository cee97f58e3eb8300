package rule

import (
	"reflect"
	"testing"

	"aldis/internal/adapters/tak/cot"
)

func at(kind, team string, lat, lon string) *cot.Event {
	return &cot.Event{Type: kind, Point: cot.Point{Lat: cot.Number(lat), Lon: cot.Number(lon)},
		Detail: []cot.Node{{Name: "__group", Attrs: []cot.Attr{{Name: "name", Value: team}}}}}
}

// The wants that a site states are read unchanged at the other end, and random octets are an error or a list within its bounds.
func TestWants(t *testing.T) {
	wants := []Want{{Type: "a-f"}, {Team: "Cyan", Affiliation: "h"}, {Type: "b-m", Box: &Box{South: 54.25, West: 179.5, North: 54.5, East: -179.5}}}
	b := AppendWants(nil, wants)
	if len(b) > 50 {
		t.Errorf("stated in %d octets", len(b))
	}
	got, err := ParseWants(b)
	if err != nil || len(got) != 3 || !reflect.DeepEqual(got[:2], wants[:2]) || got[2].Type != "b-m" || !got[2].Box.has(54.25, 180) || !got[2].Box.has(54.5, -179.5) ||
		got[2].Box.has(54.51, 180) {
		t.Errorf("%+v came as %+v, %v", wants, got, err)
	}
	for i := range b {
		if _, err := ParseWants(b[:i]); err == nil && i != 0 && i != 7 && i != 16 {
			t.Errorf("%d of %d octets were read", i, len(b))
		}
	}
	for _, c := range []struct {
		e    *cot.Event
		want bool
	}{
		{at("a-f-G-U-C", "", "1", "1"), true}, {at("a-n-G", "Cyan", "1", "1"), false}, {at("a-h-G", "Cyan", "1", "1"), true}, {at("a-h-G", "Red", "1", "1"), false},
		{at("b-m-p", "", "54.3", "-179.9"), true}, {at("b-m-p", "", "54.3", "170"), false}, {at("b-a-o-tbl", "", "0", "0"), true}, {at("u-d-f", "", "54.3", "180"), false},
	} {
		if got := Wanted(wants, c.e); got != c.want {
			t.Errorf("%s at %s,%s: %v", c.e.Type, c.e.Point.Lat, c.e.Point.Lon, got)
		}
	}
	if !Wanted(nil, at("a-n-G", "", "0", "0")) {
		t.Error("who has stated nothing does not get everything")
	}
}

// A polygon contains the places inside of it, also if it is hollow or crosses the date line.
func TestPolygon(t *testing.T) {
	hollow := Polygon{{54, 10}, {55, 10}, {55, 11}, {54.5, 10.5}, {54, 11}} // open to the east
	line := Polygon{{0, 179}, {10, 179}, {10, -179}, {0, -179}}
	for _, c := range []struct {
		p        Polygon
		lat, lon float64
		in       bool
	}{
		{hollow, 54.5, 10.2, true}, {hollow, 54.5, 10.8, false}, {hollow, 54.9, 10.8, true}, {hollow, 53.9, 10.2, false}, {hollow, 54.5, 9.9, false}, {hollow, 54.5, 11.2, false},
		{line, 5, 179.5, true}, {line, 5, -179.5, true}, {line, 5, 180, true}, {line, 5, 178.5, false}, {line, 5, -178.5, false}, {line, 5, 0, false}, {line, 11, 180, false},
	} {
		if got := c.p.has(c.lat, c.lon); got != c.in {
			t.Errorf("%v has %g %g: %v", c.p, c.lat, c.lon, got)
		}
	}
	r := Rule{Polygon: hollow}
	if r.Misses(&Subject{Event: at("a-f-G", "", "54.5", "10.8")}) != "polygon" || r.Misses(&Subject{Event: at("a-f-G", "", "54.5", "10.2")}) != "" {
		t.Error("a rule does not go by its polygon")
	}
}

func FuzzWants(f *testing.F) {
	f.Add(AppendWants(nil, []Want{{Type: "a-f", Box: &Box{1, 2, 3, 4}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		wants, err := ParseWants(b)
		if err != nil {
			return
		}
		if len(wants) > MostWants {
			t.Fatalf("%d wants", len(wants))
		}
		if _, err := ParseWants(AppendWants(nil, wants)); err != nil {
			t.Fatal(err)
		}
	})
}
