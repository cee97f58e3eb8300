package primer

import (
	"aldis/internal/link/compact/corpus"
	"strings"
)

// Names splits a list at its commas.
func Names(s string) []string { return strings.Split(strings.TrimSpace(s), ",") }

// CorpusWords are what the corpus's names are made of.
var CorpusWords = &Words{
	Invent:   true,
	Services: Names("position,chat,orders,weather,tracks,picture,status report,sensor data,text message,logistics,navigation,alarm,surveillance,video,radar,contact list,situation,planning,intelligence,fuel state,medical,coordination,command,directory,file transfer,voice,monitoring,simulation,training,test,exercise,meteo,mission,search,boarding,recovery,patrol,air picture,surface picture,supply,maintenance,schedule,inventory,request,engine room,damage,warning,report,control,catalogue,map overlay,coast watch,identification,group chat,mail,news,time,printer,storage,backup,identity,presence,discovery"),
	Units:    Names("HQ,JTF,NATO 1,Alpha,Bravo,Charlie,Delta,Echo,Foxtrot,staff,base north,brigade 4,KNM Fridtjof,KNM Otto,HMS Daring,HNLMS Evertsen,FGS Hessen,USS Mason,KV Svalbard,KV Harstad,squadron 330,battalion 2,team red,team blue,command post,node-17,gateway-2,station,frigate,corvette,submarine,tender,division,platoon 3,flight 12,task group,operations,liaison,engineer,signal company,depot,control tower,mobile unit,vehicle 22,aircraft,shore,peer,router,server-4,laptop-9,terminal,client,relay,mpa,lynx,orion,sea king,marine,police,coastguard,rescue 5"),
	Places:   Names("Oslo,Bodo,Trondheim,Stavanger,Ramsund,Kirkenes,Narvik,Brest,Toulon,Plymouth,Rostock,Norfolk,Den Helder,Lisbon,Souda,Naples,Gdynia,Tallinn,Reykjavik,Thule,Halifax,north,south,west,east,inner sea,outer sea,channel,strait,harbor,camp 1,sector 7,area 51,zone B,field,bay,island,coast,sea,river,town,city,port"),
	First:    corpus.GivenNames,
	Last:     Names("Smith,Johnson,Williams,Brown,Jones,Garcia,Miller,Davis,Rodriguez,Martinez,Hernandez,Lopez,Gonzalez,Wilson,Anderson,Taylor,Moore,Jackson,Martin,Lee,Perez,Thompson,White,Harris,Sanchez,Clark,Ramirez,Lewis,Robinson,Walker,Young,Allen,King,Wright,Scott,Torres,Nguyen,Hill,Flores,Green,Adams,Nelson,Baker,Hall,Rivera,Campbell,Mitchell,Carter,Roberts,McDonald,McGregor,O'Brien,Phillips,Evans,Turner,Diaz,Parker,Cruz,Edwards,Collins,Reyes,Stewart,Morris,Morales,Murphy,Cook,Rogers,Gutierrez,Ortiz,Morgan,Cooper,Peterson,Bailey,Reed,Kelly,Howard,Ramos,Kim,Cox,Ward,Richardson,Watson,Brooks,Chavez,Wood,Bennett,Gray,Mendoza,Ruiz,Hughes,Price,Alvarez,Castillo,Sanders,Patel,Myers,Long,Ross,Foster,Olsen,Berg,Haugen,Schmidt,Weber,de Vries,Dubois"),
	Titles:   Names("Manager,Engineer,Clerk,Accountant,Secretary,Analyst,Sales Person,Programmer,Technician,Director,Assistant,Driver,Cook,Nurse,Lawyer,Designer,Consultant,Operator,Inspector,Supervisor,Project Manager,Software Engineer,Office Clerk,Vice President,Team Leader,Data Analyst,Security Guard,System Administrator,Shop Assistant,Marketing Assistant,Product Designer,Chief Engineer"),
}

const corpusSeed = 2004

// Parts makes the corpus. It is the same in every run.
func Parts() []corpus.Part {
	m := NewMaker(corpusSeed, CorpusWords)
	var parts []corpus.Part
	one := func(name string, doc []byte) { parts = append(parts, corpus.Part{Name: name, Messages: [][]byte{doc}}) }
	for shape := range 3 {
		picture := m.Picture(shape, []int{4, 4, 1}[shape])
		p := corpus.Part{Name: "picture"}
		for range 8 {
			p.Messages = append(p.Messages, picture.Next())
		}
		parts = append(parts, p)
	}
	for i := range 24 {
		for layout := range Layouts {
			one("pipe", m.Pipe(layout, i%3 == 0))
			one("spec", m.Spec(layout))
			if i%2 == 0 {
				one("peer", m.Peer(layout, 0, i%4 == 0))
			}
			if i%4 == 0 {
				one("class", m.Class(layout))
				one("group", m.Group(layout))
				one("rendezvous", m.Rendezvous(layout))
				one("route", m.Route(layout))
			}
			if i%9 == 1 {
				one("certified", m.Peer(layout, -1, i == 1))
				one("implementation", m.Implementation(layout))
			}
		}
		switch i % 4 {
		case 0:
			one("employees", m.Employees(1+i%7))
		case 1:
			t := []*Track{m.Track(), m.Track(), m.Track()}[:1+i%3]
			p := corpus.Part{Name: "records"}
			for range 12 {
				p.Messages = append(p.Messages, Texts(t, []int{200, 200, 96, 250, 400, 120, 180}[i%7]))
			}
			parts = append(parts, p)
		case 2:
			t := m.Track()
			p := corpus.Part{Name: "track"}
			for range 12 {
				p.Messages = append(p.Messages, t.XML())
			}
			parts = append(parts, p)
		case 3:
			t := m.Track()
			t.name = []string{"A", "B", "hq", "peer-1", "N3", "edge"}[i/4%6]
			p := corpus.Part{Name: "plot"}
			for j := range 8 {
				p.Messages = append(p.Messages, t.Plot(1.6e9+float64(i*9_876_543+j*5)+float64(m.Rand.IntN(100))/1000, []int{200, 200, 300, 120, 200, 500}[i/4%6]))
			}
			parts = append(parts, p)
			doc := m.Spec(i % Layouts)
			parts = append(parts, corpus.Part{Name: "again", Messages: [][]byte{doc, m.Pipe(i%Layouts, false), doc}})
		}
	}
	parts = interleaved(parts, fieldParts(&Field{NewMaker(corpusSeed+1, CorpusWords)}))
	return append(dialectParts(&Field{NewMaker(corpusSeed+2, CorpusWords)}), parts...)
}

// interleaved puts the parts of two lists in one, each list evenly: what a model reads last it knows best.
func interleaved(a, b []corpus.Part) (list []corpus.Part) {
	for i, j := 0, 0; i < len(a) || j < len(b); {
		if j == len(b) || i < len(a) && i*len(b) < j*len(a) {
			list = append(list, a[i])
			i++
			continue
		}
		list = append(list, b[j])
		j++
	}
	return list
}

// VectorTexts are the texts whose codes testdata/vectors.txt of internal/link/compact keeps, one in each part.
func VectorTexts() (list []corpus.Part) {
	m := NewMaker(1, CorpusWords)
	track := m.Track()
	one := func(name string, text []byte) { list = append(list, corpus.Part{Name: name, Messages: [][]byte{text}}) }
	one("pipe", m.Pipe(Compact, true))
	one("pipe of 2.2", m.Pipe(Old, false))
	one("specification", m.Spec(Pretty))
	one("peer", m.Peer(Bare, 0, true))
	one("certificate", m.Peer(Compact, -1, false))
	one("track", track.XML())
	one("records", Texts([]*Track{track, m.Track()}, 200))
	one("employees", m.Employees(3))
	one("no XML", []byte("The quick brown fox jumps over the lazy dog, 1234567890 times: \u00e6\u00f8\u00e5.\n"))
	one("octets", m.Octets(24))
	return list
}
