package compact

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// stranger makes messages as other software writes them. Strangers share nothing with the code that makes the corpus:
// neither words, nor names, nor code (TestStrangersAreStrangers). They have only the parts in common with it that the
// formats prescribe.
type stranger struct {
	kind string
	flow func(r *rand.Rand) func() []byte // a flow of messages, each some seconds after the one before
}

// strangerKinds are measured in docs/strangers.md, in this order.
var strangerKinds = []stranger{
	{"CoT position", cotPosition}, {"CoT chat", cotChat}, {"NFFI", nffiTrack}, {"XMPP", xmppChat}, {"mail", mailMessage},
	{"JSON telemetry", jsonTelemetry}, {"NMEA", nmeaBurst}, {"OTH-GOLD", othGold}, {"ADatP-3", adatp3}, {"chat line", chatLine},
	{"GPX", gpxTrack}, {"KML", kmlPlaces}, {"GeoJSON", geoJSON}, {"AIS", aisBurst},
}

// strange are names. The measured messages have other names than the samples of which dictionaries are made.
type strange struct{ calls, ships, people, teams, hosts, lines []string }

var strangeNames = &strangeFirst

var strangeFirst = strange{
	calls:  strings.Fields("DAGGER21 VIPER OTTER6 HARPOON FALCON3 WILLOW NOMAD14 RAPTOR BADGER2 KESTREL SABRE41 ORCHID MAGPIE WOLVERINE7 JUNIPER"),
	ships:  strings.Split("TINTAGEL CASTLE,ODDEN SUND,MEERKATZE II,LOFOTEN PRIDE,GALLANT LADY,BALTIC HERON,CAPE WRATHFUL,STELLA POLARIS,NORDVIK,SANDERLING", ","),
	people: strings.Split("Tomas Wren,Ilse Brandt,Callum Reid,Noor Haddad,Petra Novak,Owen Pryce,Sanne Bakker,Jonas Eklund,Mirela Costin,Hugh Tarrant", ","),
	teams:  strings.Fields("Cyan Yellow Magenta Orange Maroon Purple Teal"),
	hosts:  strings.Fields("mail.flotilla.example ops.harbour.example sitrep.example.org fleet7.example"),
	lines:  strangeLines,
}

// strangeSecond is for samples of dictionaries alone.
var strangeSecond = strange{
	calls:  strings.Fields("TALON8 MERLIN GROUSE11 LANCER BISON4 HEATHER PILGRIM9 COUGAR FERRET5 OSPREY CUTLASS30 THISTLE JACKDAW LYNX2 SPRUCE"),
	ships:  strings.Split("DUNVEGAN,SKAGEN REV,SEEADLER IV,VESTERAALEN,BONNIE JEAN,CURLEW,CAPE FAREWELL,NORDSTERN,HAVBRIS,DUNLIN", ","),
	people: strings.Split("Erik Lund,Marta Keller,Niall Byrne,Samir Aziz,Jana Dvorak,Rhys Morgan,Lotte Visser,Karin Holm,Radu Ionescu,Giles Mercer", ","),
	teams:  strings.Fields("Red Green White Brown"),
	hosts:  strings.Fields("post.squadron.example desk.port.example log.example.net wing3.example"),
	lines: strings.Split(strings.TrimSpace(`
The cook is ill, so there is only cold food today.
Our compass is four degrees off since the lightning strike.
A barge has broken loose and drifts into the fairway.
They want to know if the ramp can take a crane of thirty tons.
Somebody painted over the numbers on the containers.
The cable ship asks for a guard of one mile on all sides.
Fresh tracks of a heavy vehicle lead into the quarry.
No answer from the tower, so I am circling at two thousand.
He swallowed sea water and coughs, otherwise he is fine.
Half of the tents were blown over during the night.
Could you ask the yard for the drawings of the rudder?
The customs officer found nothing and has gone ashore.
Ice on the antenna, so expect gaps until it melts.
A shepherd showed us another way round the landslide.
The second winch jams when the load is over a ton.
Tell the relief to bring torches and dry socks.
Nobody may swim here, the current is far too strong.
That convoy of lorries belongs to the sugar factory.
The clerk lost the keys, so the store stays shut until Monday.
Smoke rises from the hold of the grey freighter.
`), "\n"),
}

// strangeLines are lines of chat and mail.
var strangeLines = strings.Split(strings.TrimSpace(`
Small boat on my port bow, no lights, closing slowly.
Can you send me the grid for the landing site again?
We lost the starboard generator but can hold five knots.
Two casualties, one walking, request pickup before dark.
Visibility is down to half a mile and the wind is rising.
Roger that, moving to the pier now, back in ten minutes.
Who has the spare batteries for the handheld sets?
Bridge reports engine temperature normal after the repair.
The tug will meet us two miles south of the breakwater.
Your last picture did not arrive, please send it smaller.
Helicopter is inbound with fuel for one hour on station.
Nothing seen in the northern sector since the last report.
Keep clear of the shallow water behind the old lighthouse.
Doctor wants to know the blood pressure of the second man.
We are running low on drinking water, two days remaining.
The fishing vessel does not answer on channel sixteen.
Meeting moved to 1930, same place, bring the new charts.
Boarding team is back on board, all well, nothing found.
Radar contact faded at eleven miles, bearing about two seven zero.
Please confirm that you received the change of orders.
Weather at the airfield is good enough for the second flight.
I can see three trucks and a car waiting by the bridge.
Tell the captain the pilot boards at the outer buoy.
Convoy is delayed by about forty minutes at the checkpoint.
Ammunition is fine but we need food and warm clothes.
Suspicious package found near the gate, area is being cleared.
The diver is up, hull is clean, no damage to the propeller.
Do not use the north road, the crossing is flooded.
Which frequency do you want us to use for the search?
Thanks, got it, will call you when we reach the marker.
`), "\n")

func among(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

func hexes(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte("0123456789abcdef"[r.IntN(16)])
	}
	return b.String()
}

func strangeUUID(r *rand.Rand) string {
	return hexes(r, 8) + "-" + hexes(r, 4) + "-4" + hexes(r, 3) + "-a" + hexes(r, 3) + "-" + hexes(r, 12)
}

func strangeTime(r *rand.Rand) time.Time {
	return time.Date(2025, time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000)*1e6, time.UTC)
}

const zulu = "2006-01-02T15:04:05.000Z"

func cotPosition(r *rand.Rand) func() []byte {
	call, team, uid := among(r, strangeNames.calls), among(r, strangeNames.teams), "ANDROID-"+hexes(r, 16)
	at := strangeTime(r)
	lat, lon, hae := 40+r.Float64()*25, -10+r.Float64()*40, 20+r.Float64()*300
	battery, course := 30+r.IntN(70), r.Float64()*360
	device := among(r, []string{"SAMSUNG SM-S911U1", "GOOGLE PIXEL 7 PRO", "SAMSUNG SM-G736U", "SONIM XP9900"})
	role := among(r, []string{"Team Member", "Team Lead", "Medic", "RTO"})
	return func() []byte {
		at = at.Add(time.Duration(9800+r.IntN(500)) * time.Millisecond)
		lat, lon, course = lat+r.Float64()*2e-4, lon+r.Float64()*2e-4, course+r.Float64()*4
		if r.IntN(6) == 0 {
			battery--
		}
		return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><event version="2.0" uid="%s" type="a-f-G-U-C" time="%s" start="%[2]s" stale="%s" how="m-g" access="Undefined"><point lat="%.7f" lon="%.7f" hae="%.3f" ce="%.1f" le="9999999.0"/><detail><takv os="33" version="4.10.0.12 (0f2c4d1b).1709123000-CIV" device="%s" platform="ATAK-CIV"/><contact endpoint="*:-1:stcp" callsign="%s"/><uid Droid="%[9]s"/><precisionlocation altsrc="GPS" geopointsrc="GPS"/><__group role="%s" name="%s"/><status battery="%d"/><track course="%.8f" speed="%.2f"/></detail></event>`,
			uid, at.Format(zulu), at.Add(75*time.Second).Format(zulu), lat, lon, hae, 3+r.Float64()*9, device, call, role, team, battery, course, r.Float64()*3)
	}
}

func cotChat(r *rand.Rand) func() []byte {
	call, uid, room := among(r, strangeNames.calls), "ANDROID-"+hexes(r, 16), among(r, []string{"All Chat Rooms", "Boat Team", "Harbour Watch"})
	at := strangeTime(r)
	lat, lon := 40+r.Float64()*25, -10+r.Float64()*40
	return func() []byte {
		at = at.Add(time.Duration(20+r.IntN(90)) * time.Second)
		id, text := strangeUUID(r), among(r, strangeNames.lines)
		now := at.Format(zulu)
		return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><event version="2.0" uid="GeoChat.%[1]s.%[2]s.%[3]s" type="b-t-f" time="%[4]s" start="%[4]s" stale="%[5]s" how="h-g-i-g-o" access="Undefined"><point lat="%.7[6]f" lon="%.7[7]f" hae="9999999.0" ce="9999999.0" le="9999999.0"/><detail><__chat parent="RootContactGroup" groupOwner="false" messageId="%[3]s" chatroom="%[2]s" id="%[2]s" senderCallsign="%[8]s"><chatgrp uid0="%[1]s" uid1="%[2]s" id="%[2]s"/></__chat><link uid="%[1]s" type="a-f-G-U-C" relation="p-p"/><__serverdestination destinations="10.%[9]d.%[10]d.%[11]d:4242:tcp:%[1]s"/><remarks source="BAO.F.ATAK.%[1]s" to="%[2]s" time="%[4]s">%[12]s</remarks></detail></event>`,
			uid, room, id, now, at.Add(24*time.Hour).Format(zulu), lat, lon, call, r.IntN(256), r.IntN(256), r.IntN(256), text)
	}
}

func nffiTrack(r *rand.Rand) func() []byte {
	system, id, name := fmt.Sprintf("%c%c-BFT-%d", 'J'+r.IntN(12), 'K'+r.IntN(9), 1+r.IntN(40)), r.IntN(90000)+10000, among(r, strangeNames.calls)
	at := strangeTime(r)
	lat, lon := 44+r.Float64()*12, 5+r.Float64()*20
	bearing, speed := r.IntN(360), r.Float64()*12
	sidc := among(r, []string{"SFGPUCI----E---", "SFGPUCRVA--D---", "SFSPCLFF-------", "SFGPEVAT-------"})
	return func() []byte {
		at = at.Add(30 * time.Second)
		lat, lon, bearing = lat+4e-4, lon-3e-4, (bearing+r.IntN(5))%360
		return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<NFFIMessage xmlns="urn:nato:nffi" version="1.3">
  <track>
    <positionalData>
      <trackSource>
        <sourceSystem>
          <country>NLD</country>
          <system>%s</system>
          <subsystem>1</subsystem>
        </sourceSystem>
        <transponderId>%d</transponderId>
      </trackSource>
      <dateTime>%s</dateTime>
      <coordinates>
        <latitude>%.5f</latitude>
        <longitude>%.5f</longitude>
        <altitude>%d</altitude>
      </coordinates>
      <velocity>
        <bearing>%d</bearing>
        <speed>%.1f</speed>
      </velocity>
      <reliability>A1</reliability>
    </positionalData>
    <identificationData>
      <unitSymbol>%s</unitSymbol>
      <unitShortName>%s</unitShortName>
    </identificationData>
    <operStatusData>
      <footprint>%d</footprint>
      <status>OPR</status>
    </operStatusData>
  </track>
</NFFIMessage>
`, system, id, at.Format("20060102150405"), lat, lon, 10+r.IntN(5), bearing, speed+r.Float64(), sidc, name, 50)
	}
}

func xmppChat(r *rand.Rand) func() []byte {
	a, b := strings.ToLower(among(r, strangeNames.calls)), strings.ToLower(among(r, strangeNames.calls))
	host, res, thread := among(r, strangeNames.hosts), hexes(r, 8), strangeUUID(r)
	return func() []byte {
		id := strangeUUID(r)
		return fmt.Appendf(nil, `<message xmlns="jabber:client" from="%s@%s/gajim.%s" to="%s@%[2]s" type="chat" id="%[5]s"><body>%s</body><thread>%s</thread><active xmlns="http://jabber.org/protocol/chatstates"/><request xmlns="urn:xmpp:receipts"/><origin-id xmlns="urn:xmpp:sid:0" id="%[5]s"/></message>`,
			a, host, res, b, id, among(r, strangeNames.lines), thread)
	}
}

func mailMessage(r *rand.Rand) func() []byte {
	from, to := among(r, strangeNames.people), among(r, strangeNames.people)
	host := among(r, strangeNames.hosts)
	at := strangeTime(r)
	address := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", ".")) + "@" + host }
	subject := strings.TrimSuffix(among(r, strangeNames.lines), ".")
	return func() []byte {
		at = at.Add(time.Duration(10+r.IntN(50)) * time.Minute)
		date := at.Format("Mon, 02 Jan 2006 15:04:05 -0700")
		var body strings.Builder
		for i := range 6 {
			body.WriteString(among(r, strangeNames.lines))
			if i%2 == 1 {
				body.WriteString("\r\n")
			} else {
				body.WriteString(" ")
			}
		}
		return fmt.Appendf(nil, "Return-Path: <%s>\r\nReceived: from [10.%d.%d.%d] by %s with ESMTPSA id %s\r\n\tfor <%s>; %s\r\nDate: %[8]s\r\nFrom: %s <%[1]s>\r\nTo: %[10]s <%[7]s>\r\nSubject: Re: %[11]s\r\nMessage-ID: <%[12]s@%[5]s>\r\nUser-Agent: Mozilla Thunderbird\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=UTF-8; format=flowed\r\nContent-Transfer-Encoding: 7bit\r\nContent-Language: en-GB\r\n\r\nHello %[13]s,\r\n\r\n%[14]s\r\nRegards\r\n%[15]s\r\n",
			address(from), r.IntN(256), r.IntN(256), r.IntN(256), host, strings.ToUpper(hexes(r, 10)), address(to), date, from, to, subject, strangeUUID(r),
			strings.Fields(to)[0], body.String(), strings.Fields(from)[0])
	}
}

func jsonTelemetry(r *rand.Rand) func() []byte {
	node, at := fmt.Sprintf("buoy-%02d", r.IntN(60)), strangeTime(r)
	lat, lon, volts, temp, seq := 50+r.Float64()*20, r.Float64()*20, 12+r.Float64(), 4+r.Float64()*12, r.IntN(9000)
	return func() []byte {
		seq++
		at = at.Add(time.Minute)
		volts -= r.Float64() / 100
		temp += r.Float64()/5 - 0.1
		return fmt.Appendf(nil, `{"device_id":"%s","seq":%d,"timestamp":"%s","position":{"lat":%.6f,"lon":%.6f,"alt":%.1f},"speed":%.2f,"heading":%d,"battery":{"voltage":%.2f,"percent":%d},"temperature":%.1f,"humidity":%.1f,"pressure":%.1f,"rssi":%d,"status":"ok","errors":[]}`,
			node, seq, at.Format("2006-01-02T15:04:05Z"), lat+r.Float64()/1e3, lon+r.Float64()/1e3, r.Float64()*4, r.Float64()*2, r.IntN(360), volts, 40+r.IntN(3), temp, 60+r.Float64()*30, 990+r.Float64()*30, -60-r.IntN(50))
	}
}

func withSum(body string) string {
	var x byte
	for i := range len(body) {
		x ^= body[i]
	}
	return fmt.Sprintf("%s*%02X\r\n", body, x)
}

func nmeaBurst(r *rand.Rand) func() []byte {
	at := strangeTime(r)
	lat, lon := 3000+r.Float64()*2900, 100+r.Float64()*2900
	course, speed, depth := r.Float64()*360, 2+r.Float64()*15, 10+r.Float64()*200
	return func() []byte {
		at = at.Add(10 * time.Second)
		lat, lon = lat+0.01+r.Float64()/1000, lon+0.02+r.Float64()/1000
		clock := at.Format("150405.00")
		y, x := fmt.Sprintf("%09.4f,N", lat), fmt.Sprintf("%010.4f,E", lon)
		var b strings.Builder
		for _, s := range []string{
			fmt.Sprintf("$GPGGA,%s,%s,%s,1,%02d,%.1f,%.1f,M,%.1f,M,,", clock, y, x, 7+r.IntN(5), 0.8+r.Float64(), 5+r.Float64()*9, 44.5),
			fmt.Sprintf("$GPRMC,%s,A,%s,%s,%.1f,%.1f,%s,,,A", clock, y, x, speed+r.Float64(), course+r.Float64(), at.Format("020106")),
			fmt.Sprintf("$GPVTG,%.1f,T,,M,%.1f,N,%.1f,K,A", course, speed, speed*1.852),
			fmt.Sprintf("$HEHDT,%.1f,T", course+r.Float64()*2),
			fmt.Sprintf("$SDDBT,%.1f,f,%.1f,M,%.1f,F", depth*3.2808, depth+r.Float64(), depth*0.5468),
			fmt.Sprintf("$WIMWV,%d.0,R,%.1f,N,A", r.IntN(360), 3+r.Float64()*20),
		} {
			b.WriteByte('$')
			b.WriteString(withSum(s[1:]))
		}
		return []byte(b.String())
	}
}

func othGold(r *rand.Rand) func() []byte {
	ship, at := among(r, strangeNames.ships), strangeTime(r)
	number, serial := 1000+r.IntN(8000), r.IntN(900)
	lat, lon := 30+r.Float64()*30, r.Float64()*40
	course, speed := r.IntN(360), 5+r.Float64()*20
	return func() []byte {
		serial++
		at = at.Add(time.Duration(5+r.IntN(10)) * time.Minute)
		lat, lon = lat+0.02, lon-0.03
		stamp := func(t time.Time) string { return t.Format("021504Z") + "/" + strings.ToUpper(t.Format("Jan")) }
		degrees := func(v float64, width int, h string) string {
			d := int(v)
			return fmt.Sprintf("%0*d%02d%s", width, d, int((v-float64(d))*60), h)
		}
		return fmt.Appendf(nil, "MSGID/GOLD/FOTC WEST/%04d/%s\nCTC/T%d/%s/FFG/%s///UNK/MERCHANT\nPOS/%s/%s/%s/%s/RADAR/%03dT/%.1fK/%dNM/%dNM\nPOS/%s/%s/%s/%s/RADAR/%03dT/%.1fK/%dNM/%dNM\nAMPN/LAST SEEN BY %s\nENDAT\n",
			serial, strings.ToUpper(at.Format("Jan")), number, ship, "GBR",
			stamp(at), degrees(lat, 2, "N"), degrees(lon, 3, "E"), at.Format("06"), course, speed, 1+r.IntN(3), 1+r.IntN(4),
			stamp(at.Add(-20*time.Minute)), degrees(lat-0.05, 2, "N"), degrees(lon+0.04, 3, "E"), at.Format("06"), course, speed, 1+r.IntN(3), 1+r.IntN(4), among(r, strangeNames.calls))
	}
}

func adatp3(r *rand.Rand) func() []byte {
	unit, at, serial := among(r, strangeNames.calls), strangeTime(r), r.IntN(200)
	return func() []byte {
		serial++
		at = at.Add(time.Hour)
		return fmt.Appendf(nil, "EXER/BOLD CORMORANT 25//\nMSGID/OWNSITREP/APP-11(D)/1/%s/%03d/%s//\nREF/A/TYPE:MSG/OPORD/CTF 440/%s//\nPERID/%s/TO:%s//\nHEADING/OWN SITUATION//\n5UNIT\n/DE/UNITNAME /LOCATION /STATUS /PERS\n/01/%s /%02dUNB%04d%04d /OPR /%d\n/02/%s /%02dUNB%04d%04d /LIM /%d//\nGENTEXT/REMARKS/%s//\n",
			unit, serial, strings.ToUpper(at.Format("Jan")), at.Format("021504Z")+strings.ToUpper(at.Format("Jan06")), at.Format("021504Z"), at.Add(6*time.Hour).Format("021504Z"),
			unit, 31+r.IntN(3), r.IntN(10000), r.IntN(10000), 20+r.IntN(100), among(r, strangeNames.calls), 31+r.IntN(3), r.IntN(10000), r.IntN(10000), 20+r.IntN(100), strings.ToUpper(strings.TrimRight(among(r, strangeNames.lines), ".?")))
	}
}

func chatLine(r *rand.Rand) func() []byte {
	return func() []byte { return []byte(among(r, strangeNames.lines)) }
}

func gpxTrack(r *rand.Rand) func() []byte {
	at, name := strangeTime(r), among(r, strangeNames.calls)
	lat, lon := 50+r.Float64()*10, r.Float64()*20
	return func() []byte {
		b := fmt.Appendf(nil, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<gpx version=\"1.1\" creator=\"Garmin Connect\" xmlns=\"http://www.topografix.com/GPX/1/1\">\n  <metadata>\n    <time>%s</time>\n  </metadata>\n  <trk>\n    <name>%s</name>\n    <trkseg>\n", at.Format("2006-01-02T15:04:05Z"), name)
		for range 12 {
			at = at.Add(5 * time.Second)
			lat, lon = lat+r.Float64()*3e-4, lon+r.Float64()*4e-4
			b = fmt.Appendf(b, "      <trkpt lat=\"%.6f\" lon=\"%.6f\">\n        <ele>%.1f</ele>\n        <time>%s</time>\n      </trkpt>\n", lat, lon, 10+r.Float64()*5, at.Format("2006-01-02T15:04:05Z"))
		}
		return append(b, "    </trkseg>\n  </trk>\n</gpx>\n"...)
	}
}

func kmlPlaces(r *rand.Rand) func() []byte {
	return func() []byte {
		b := fmt.Appendf(nil, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<kml xmlns=\"http://www.opengis.net/kml/2.2\">\n<Document>\n<name>%s</name>\n", among(r, strangeNames.ships))
		for range 4 {
			b = fmt.Appendf(b, "<Placemark>\n<name>%s</name>\n<description><![CDATA[%s]]></description>\n<styleUrl>#icon-1899</styleUrl>\n<Point>\n<coordinates>%.6f,%.6f,0</coordinates>\n</Point>\n</Placemark>\n", among(r, strangeNames.calls), among(r, strangeNames.lines), r.Float64()*40, 40+r.Float64()*20)
		}
		return append(b, "</Document>\n</kml>\n"...)
	}
}

func geoJSON(r *rand.Rand) func() []byte {
	return func() []byte {
		b := []byte(`{"type":"FeatureCollection","features":[`)
		for i := range 5 {
			if i > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, `{"type":"Feature","geometry":{"type":"Point","coordinates":[%.6f,%.6f]},"properties":{"name":"%s","speed":%.1f,"course":%d}}`, r.Float64()*40, 40+r.Float64()*20, among(r, strangeNames.ships), r.Float64()*20, r.IntN(360))
		}
		return append(b, "]}"...)
	}
}

func aisBurst(r *rand.Rand) func() []byte {
	var mmsi [4]int
	for i := range mmsi {
		mmsi[i] = 200e6 + r.IntN(5e8)
	}
	y, x := 30e6+r.IntN(8e6), r.IntN(9e6)
	return func() []byte {
		var b strings.Builder
		for i, m := range mmsi {
			var bits []byte
			put := func(v, n int) {
				for j := n - 1; j >= 0; j-- {
					bits = append(bits, byte(v>>j&1))
				}
			}
			put(1, 6)
			put(0, 2)
			put(m, 30)
			put(0, 4)
			put(128, 8)
			put(40+r.IntN(120), 10)
			put(1, 1)
			put(x+i*9000+r.IntN(300), 28)
			put(y+i*7000+r.IntN(300), 27)
			put(r.IntN(3600), 12)
			put(511, 9)
			put(r.IntN(60), 6)
			put(0, 25)
			var s []byte
			for j := 0; j < len(bits); j += 6 {
				v := byte(0)
				for k := range 6 {
					v <<= 1
					if j+k < len(bits) {
						v |= bits[j+k]
					}
				}
				if v += 48; v > 87 {
					v += 8
				}
				s = append(s, v)
			}
			b.WriteByte('!')
			b.WriteString(withSum("AIVDM,1,1,," + string("AB"[r.IntN(2)]) + "," + string(s) + ",0"))
		}
		return []byte(b.String())
	}
}

// strangerFirst are the first messages of sixty flows of a kind.
func strangerFirst(s stranger) (list [][]byte) {
	for i := range 60 {
		list = append(list, s.flow(rand.New(rand.NewPCG(uint64(i), 12)))())
	}
	return list
}

// strangerFlows are five flows of ten.
func strangerFlows(s stranger) (flows [][][]byte) {
	for i := range 5 {
		next := s.flow(rand.New(rand.NewPCG(uint64(i), 13)))
		var flow [][]byte
		for range 10 {
			flow = append(flow, next())
		}
		flows = append(flows, flow)
	}
	return flows
}

// strangerSamples are the samples for a dictionary of the kind: other flows, with other names and sentences.
func strangerSamples(s stranger) (list [][]byte) {
	strangeNames = &strangeSecond
	defer func() { strangeNames = &strangeFirst }()
	for i := range 200 {
		list = append(list, s.flow(rand.New(rand.NewPCG(uint64(i), 14)))())
	}
	return list
}
