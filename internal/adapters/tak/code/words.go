package code

// shape is an element that events often have, with its usual attributes. At most 60 attributes.
type shape struct {
	name  string
	attrs []string
}

// shapes are numbered from firstShape. New ones go at the end.
var shapes = []shape{
	{"contact", []string{"callsign", "endpoint"}},
	{"__group", []string{"name", "role"}},
	{"takv", []string{"device", "platform", "os", "version"}},
	{"track", []string{"course", "speed"}},
	{"status", []string{"battery"}},
	{"precisionlocation", []string{"geopointsrc", "altsrc"}},
	{"uid", []string{"Droid"}},
	{"remarks", nil},
	{"remarks", []string{"source", "to", "time"}},
	{"link", []string{"uid", "type", "relation"}},
	{"link", []string{"uid", "type", "relation", "parent_callsign", "production_time"}},
	{"link", []string{"point"}},
	{"link", []string{"uid", "callsign", "type", "point", "remarks", "relation"}},
	{"__chat", []string{"id", "chatroom", "senderCallsign", "groupOwner", "messageId", "parent"}},
	{"__chatreceipt", []string{"id", "chatroom", "senderCallsign", "groupOwner", "messageId", "parent"}},
	{"chatgrp", []string{"id", "uid0", "uid1"}},
	{"__serverdestination", []string{"destinations"}},
	{"marti", nil},
	{"dest", []string{"callsign"}},
	{"dest", []string{"uid"}},
	{"archive", nil},
	{"color", []string{"argb"}},
	{"color", []string{"value"}},
	{"usericon", []string{"iconsetpath"}},
	{"strokeColor", []string{"value"}},
	{"strokeWeight", []string{"value"}},
	{"strokeStyle", []string{"value"}},
	{"fillColor", []string{"value"}},
	{"labels_on", []string{"value"}},
	{"height", nil},
	{"height_unit", nil},
	{"shape", nil},
	{"ellipse", []string{"major", "minor", "angle"}},
	{"polyline", []string{"closed"}},
	{"vertex", []string{"lat", "lon", "hae"}},
	{"Style", nil},
	{"LineStyle", nil},
	{"PolyStyle", nil},
	{"color", nil},
	{"width", nil},
	{"emergency", []string{"type"}},
	{"emergency", []string{"cancel"}},
	{"__routeinfo", nil},
	{"__navcues", nil},
	{"link_attr", []string{"planningmethod", "color", "method", "prefix", "type", "stroke", "direction", "routetype", "order"}},
	{"_medevac_", []string{"title", "casevac", "freq", "urgent", "priority", "routine", "litter", "ambulatory", "security", "hlz_marking",
		"us_military", "equipment_none", "terrain_none", "obstacles", "medline_remarks", "zone_prot_selection"}},
	{"zMistsMap", nil},
	{"zMist", []string{"title", "z", "m", "i", "s", "t"}},
	{"fileshare", []string{"filename", "name", "senderUrl", "senderUid", "senderCallsign", "sha256", "sizeInBytes"}},
	{"ackrequest", []string{"uid", "ackrequested", "tag"}},
	{"ackresponse", []string{"uid", "tag", "success", "reason"}},
	{"__video", []string{"url", "uid"}},
	{"ConnectionEntry", []string{"address", "uid", "alias", "port", "roverPort", "rtspReliable", "ignoreEmbeddedKLV", "path", "protocol",
		"networkTimeout", "bufferTime"}},
	{"sensor", []string{"azimuth", "elevation", "fov", "vfov", "range", "model", "north", "roll", "type", "version", "displayMagneticReference",
		"strokeColor", "strokeWeight", "fovBlue", "fovGreen", "fovRed", "fovAlpha", "hideFov", "rangeLines", "rangeLineStrokeWeight",
		"rangeLineStrokeColor"}},
	{"rangeUnits", []string{"value"}},
	{"range", []string{"value"}},
	{"bearing", []string{"value"}},
	{"bearingUnits", []string{"value"}},
	{"inclination", []string{"value"}},
	{"northRef", []string{"value"}},
	{"bullseye", []string{"mils", "distance", "bearingRef", "bullseyeUID", "distanceUnits", "edgeToCenter", "rangeRingVisible", "title",
		"hasRangeRings"}},
	{"mission", []string{"type", "tool", "name", "authorUid"}},
	{"task", []string{"priority", "status", "assignee"}},
	{"hierarchy", nil},
	{"group", []string{"uid", "name"}},
	{"contact", []string{"uid", "name"}},
	{"contact", []string{"callsign"}},
	{"creator", []string{"uid", "callsign", "time", "type"}},
	{"_flow-tags_", nil},
	{"milsym", []string{"id"}},
	{"model", nil},
	{"tog", []string{"enabled"}},
	{"geofence", []string{"monitor", "trigger", "minElevation", "maxElevation", "elevationMonitored", "boundingSphere"}},
	{"takDataPackage", []string{"name"}},
	{"environment", []string{"temperature", "windDirection", "windSpeed"}},
	{"status", []string{"battery", "readiness"}},
	{"status", []string{"readiness"}},
}

// words are texts that events have in common: names of elements and attributes that are in no shape, types, and values. New
// ones go at the end; the first 160 take one octet.
var words = []string{
	"", "a-f-G-U-C", "a-f-G", "a-h-G", "a-n-G", "a-u-G", "a-f-G-E-V", "a-f-A-M-F", "a-f-A-M-H", "a-f-A", "a-f-S", "a-h-A", "a-h-S", "a-f-G-E-V-C",
	"a-f-G-E-S", "a-f-A-M-F-Q", "m-g", "h-e", "h-g-i-g-o", "m-a", "m-r", "m-f", "h-t", "m-g-n", "h-c", "m-s", "m-p",
	"b-t-f", "b-t-f-d", "b-t-f-r", "b-t-f-p", "b-t-f-s", "b-m-p-s-m", "b-m-p-w", "b-m-p-s-p-i", "b-m-p-w-GOTO", "b-m-p-c", "b-m-p-s-p-loc",
	"b-m-r", "u-d-f", "u-d-r", "u-d-c-c", "u-d-f-m", "u-d-p", "u-rb-a", "u-r-b-c-c", "u-r-b-bullseye", "b-a-o-tbl", "b-a-o-can", "b-a-o-pan",
	"b-a-o-opn", "b-a-g", "b-r-f-h-c", "b-f-t-r", "b-f-t-a", "b-i-x-i", "b-i-v", "b-e-r", "t-s", "t-x-d-d", "t-x-m-c", "y-c-r", "y-a-r",
	"t-x-c-t", "t-x-c-t-r", "a-f-S-X", "a-n-S", "a-f-G-I", "a-f-G-U-C-I",
	"*:-1:stcp", "0.0.0.0:4242:tcp", ":4242:tcp", "ATAK-CIV", "ATAK-MIL", "WinTAK-CIV", "iTAK", "WebTAK", "GPS", "DTED0", "DTED2", "SRTM1", "???",
	"USER", "Cyan", "White", "Yellow", "Orange", "Magenta", "Red", "Maroon", "Purple", "Dark Blue", "Blue", "Teal", "Green", "Dark Green", "Brown",
	"Team Member", "Team Lead", "HQ", "Sniper", "Medic", "Forward Observer", "RTO", "K9",
	"p-p", "p-c", "p-l", "c", "r-u", "p-p-CASEVAC", "All Chat Rooms", "RootContactGroup", "UserGroups", "TeamGroups", "BAO.F.ATAK.", "GeoChat", "true", "false",
	"2.0", "solid", "dashed", "dotted", "outlined", "911 Alert", "Ring The Bell", "Geo-fence Breached", "In Contact", "Infil", "On Foot", "Driving",
	"Primary", "Secondary", "Ascending Check Points", "CP", "SP", "VDO", "BDO", "raw", "rtsp", "udp", "rtp", "http", "https",
	"meters", "feet", "degrees", "miles", "kilometers", "unrestricted", "Undefined", "CREATE", "CHANGE", "NONE", "All Streaming", "FOLDER",
	"1", "0", "-1", "100", "3", "2", "4", "5",
	// From here on two octets.
	"6", "10", "-65536", "-16777216", "-16776961", "-16711936", "-256", "-35072", "-1761607681", "COT_MAPPING_2525B", "COT_MAPPING_SPOTMAP",
	"34f7921e2934a2a8", "f7f71666-8b28-4b57-9fbb-e38e61d33b79", "LPT1", "NTT", "phone", "email", "sipAddress", "xmppUsername", "version", "name",
	"value", "id", "uid", "type", "time", "point", "detail", "event", "lat", "lon", "hae", "callsign", "endpoint", "message", "text", "title",
	"description", "url", "address", "port", "path", "status", "role", "color", "width", "height", "angle", "geofence", "sensor", "model", "hud",
	"messageId", "deliveredTime", "readTime", "serverName", "reason", "mission", "tool", "public", "sha256", "size", "hash", "filename",
	"creatorUid", "keywords", "submissionTime", "submitter", "tag", "ackrequested", "success", "iconsetpath", "argb", "__special", "__shapeExtras",
	"cpvis", "editable", "extras", "precision", "slope", "bullseye", "angle_unit", "range_unit", "mag", "__milsym", "__milicon", "milsym", "code",
	"attachment_list", "hashes", "archive", "creator", "__forcedelete", "__track", "_uastool", "_aircot_", "flight", "icao24", "squawk", "reg",
	"cat", "vehicle", "pause", "spatial", "attitude", "roll", "pitch", "yaw", "activeRoute", "commandedData", "climbRate", "waypointCollection",
	"altsrc", "geopointsrc", "battery", "uid2", "uid3", "uid4", "uid5", "uid6", "uid7", "SAMSUNG", "Google", "Pixel", "SM-G", "29", "30", "31",
	"33", "34", "Windows", "iOS", "Android", "patrol", "position", "enemy", "friendly", "hostile", "vehicles", "troops", "objective", "checkpoint",
}

var (
	wordOf  = numbered()
	shapeOf = byName()
)

// numbered are the numbers of words.
func numbered() map[string]int {
	of := map[string]int{}
	for i, w := range words {
		if _, has := of[w]; !has {
			of[w] = i
		}
	}
	return of
}

// byName are the numbers of shapes by the name of their element.
func byName() map[string][]int {
	of := map[string][]int{}
	for i, s := range shapes {
		of[s.name] = append(of[s.name], i)
	}
	return of
}
