package compact

import (
	"fmt"
	"strings"
)

func list(s string) []string { return strings.Split(strings.TrimSpace(s), ",") }

// corpusWords are what the corpus's names are made of.
var corpusWords = &Words{
	Invent:   true,
	Services: list("position,chat,orders,weather,tracks,picture,status report,sensor data,text message,logistics,navigation,alarm,surveillance,video,radar,contact list,situation,planning,intelligence,fuel state,medical,coordination,command,directory,file transfer,voice,monitoring,simulation,training,test,exercise,meteo,mission,search,boarding,recovery,patrol,air picture,surface picture,supply,maintenance,schedule,inventory,request,engine room,damage,warning,report,control,catalogue,map overlay,coast watch,identification,group chat,mail,news,time,printer,storage,backup,identity,presence,discovery"),
	Units:    list("HQ,JTF,NATO 1,Alpha,Bravo,Charlie,Delta,Echo,Foxtrot,staff,base north,brigade 4,KNM Fridtjof,KNM Otto,HMS Daring,HNLMS Evertsen,FGS Hessen,USS Mason,KV Svalbard,KV Harstad,squadron 330,battalion 2,team red,team blue,command post,node-17,gateway-2,station,frigate,corvette,submarine,tender,division,platoon 3,flight 12,task group,operations,liaison,engineer,signal company,depot,control tower,mobile unit,vehicle 22,aircraft,shore,peer,router,server-4,laptop-9,terminal,client,relay,mpa,lynx,orion,sea king,marine,police,coastguard,rescue 5"),
	Places:   list("Oslo,Bodo,Trondheim,Stavanger,Ramsund,Kirkenes,Narvik,Brest,Toulon,Plymouth,Rostock,Norfolk,Den Helder,Lisbon,Souda,Naples,Gdynia,Tallinn,Reykjavik,Thule,Halifax,north,south,west,east,inner sea,outer sea,channel,strait,harbor,camp 1,sector 7,area 51,zone B,field,bay,island,coast,sea,river,town,city,port"),
	First:    list("James,Mary,Robert,Patricia,John,Jennifer,Michael,Linda,David,Elizabeth,William,Barbara,Richard,Susan,Joseph,Jessica,Thomas,Karen,Christopher,Sarah,Charles,Lisa,Daniel,Nancy,Matthew,Sandra,Anthony,Betty,Mark,Ashley,Donald,Emily,Steven,Kimberly,Andrew,Margaret,Paul,Donna,Joshua,Michelle,Kenneth,Carol,Kevin,Amanda,Brian,Melissa,George,Deborah,Timothy,Stephanie,Ronald,Rebecca,Jason,Laura,Edward,Helen,Jeffrey,Sharon,Ryan,Cynthia,Jacob,Kathleen,Gary,Amy,Nicholas,Angela,Eric,Shirley,Jonathan,Brenda,Larry,Pamela,Justin,Nicole,Scott,Anna,Brandon,Samantha,Frank,Katherine,Gregory,Christine,Raymond,Debra,Samuel,Rachel,Patrick,Carolyn,Alexander,Janet,Jack,Maria,Dennis,Olivia,Jerry,Heather,Lars,Ingrid,Nils,Astrid,Pierre,Marie,Hans,Greta,Jan,Anneke"),
	Last:     list("Smith,Johnson,Williams,Brown,Jones,Garcia,Miller,Davis,Rodriguez,Martinez,Hernandez,Lopez,Gonzalez,Wilson,Anderson,Taylor,Moore,Jackson,Martin,Lee,Perez,Thompson,White,Harris,Sanchez,Clark,Ramirez,Lewis,Robinson,Walker,Young,Allen,King,Wright,Scott,Torres,Nguyen,Hill,Flores,Green,Adams,Nelson,Baker,Hall,Rivera,Campbell,Mitchell,Carter,Roberts,McDonald,McGregor,O'Brien,Phillips,Evans,Turner,Diaz,Parker,Cruz,Edwards,Collins,Reyes,Stewart,Morris,Morales,Murphy,Cook,Rogers,Gutierrez,Ortiz,Morgan,Cooper,Peterson,Bailey,Reed,Kelly,Howard,Ramos,Kim,Cox,Ward,Richardson,Watson,Brooks,Chavez,Wood,Bennett,Gray,Mendoza,Ruiz,Hughes,Price,Alvarez,Castillo,Sanders,Patel,Myers,Long,Ross,Foster,Olsen,Berg,Haugen,Schmidt,Weber,de Vries,Dubois"),
	Titles:   list("Manager,Engineer,Clerk,Accountant,Secretary,Analyst,Sales Person,Programmer,Technician,Director,Assistant,Driver,Cook,Nurse,Lawyer,Designer,Consultant,Operator,Inspector,Supervisor,Project Manager,Software Engineer,Office Clerk,Vice President,Team Leader,Data Analyst,Security Guard,System Administrator,Shop Assistant,Marketing Assistant,Product Designer,Chief Engineer"),
}

// A part of the corpus: messages of which each follows the one before, as on one flow.
type part struct {
	name     string
	messages [][]byte
}

const corpusSeed = 2004

// generateCorpus makes the corpus. It is the same in every run.
func generateCorpus() []part {
	m := NewMaker(corpusSeed, corpusWords)
	var parts []part
	one := func(name string, doc []byte) { parts = append(parts, part{name, [][]byte{doc}}) }
	for shape := range 3 {
		picture := m.Picture(shape, []int{4, 4, 1}[shape])
		p := part{name: "picture"}
		for range 8 {
			p.messages = append(p.messages, picture.Next())
		}
		parts = append(parts, p)
	}
	for i := range 24 {
		for layout := range layouts {
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
			p := part{name: "records"}
			for range 12 {
				p.messages = append(p.messages, Texts(t, []int{200, 200, 96, 250, 400, 120, 180}[i%7]))
			}
			parts = append(parts, p)
		case 2:
			t := m.Track()
			p := part{name: "track"}
			for range 12 {
				p.messages = append(p.messages, t.XML())
			}
			parts = append(parts, p)
		case 3:
			t := m.Track()
			t.name = []string{"A", "B", "hq", "peer-1", "N3", "edge"}[i/4%6]
			p := part{name: "plot"}
			for j := range 8 {
				p.messages = append(p.messages, t.Plot(1.6e9+float64(i*9_876_543+j*5)+float64(m.r.IntN(100))/1000, []int{200, 200, 300, 120, 200, 500}[i/4%6]))
			}
			parts = append(parts, p)
			doc := m.Spec(i % layouts)
			parts = append(parts, part{"again", [][]byte{doc, m.Pipe(i%layouts, false), doc}})
		}
	}
	parts = interleaved(parts, fieldParts(&Field{NewMaker(corpusSeed+1, corpusWords)}))
	return append(dialectParts(&Field{NewMaker(corpusSeed+2, corpusWords)}), parts...)
}

// interleaved puts the parts of two lists in one, each list evenly: what a model reads last it knows best.
func interleaved(a, b []part) (list []part) {
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

// Corpus is the text of the priming corpus: each message with a line before it that names its kind, says whether it
// follows the one before on its flow, and how many octets it has.
func Corpus() []byte {
	var b []byte
	for _, p := range generateCorpus() {
		for i, text := range p.messages {
			follows := "first"
			if i > 0 {
				follows = "next"
			}
			b = fmt.Appendf(b, "== %s %s %d\n%s\n", p.name, follows, len(text), text)
		}
	}
	return b
}

// census finds the contexts that occur in two parts of the corpus at least. Only those get a counter when the model is
// primed: what occurs in one part alone, numbers and names most of all, would take the room of what will occur again.
type census struct {
	part   uint16
	counts bool     // occurrences are counted still
	first  []uint16 // the part that had a context first, by its hash; common for two
}

const (
	censusBits = 25
	inTwoParts = 0xffff
)

// common counts an occurrence, or says whether there were some in two parts. The first bits of the octet are those of its
// first half, once that is known.
func (c *census) common(h, first uint32, context int) bool {
	at := &c.first[mix32(mix32(h, first), uint32(context))>>(32-censusBits)]
	if c.counts {
		switch *at {
		case 0:
			*at = c.part
		case c.part:
		default:
			*at = inTwoParts
		}
		return true
	}
	return *at == inTwoParts
}

// prime returns the model that both ends start from.
func prime(parts []part) *model {
	c := &census{counts: true, first: make([]uint16, 1<<censusBits)}
	all := primeWith(parts, c)
	c.counts = false
	m := primeWith(parts, c)
	m.tables, m.census = all.tables, nil
	return m
}

func primeWith(parts []part, c *census) *model {
	m := newModel()
	m.steps, m.rate = stepsPriming, 14
	m.lore = newLore("")
	told := map[string]int{}
	m.census = c
	for i, p := range parts {
		c.part = uint16(i + 1)
		m.forget()
		for _, text := range p.messages {
			if tokens, ok := tokenizeXML(text); ok {
				m.train(tokens, true)
			} else {
				m.train(text, false)
			}
		}
		if told[p.name] += len(m.hist); told[p.name] <= mostLore {
			m.lore.tell(string(m.hist))
		}
	}
	m.forget()
	return m
}

// mostLore is the most octets of a kind that the model keeps as they are.
const mostLore = 24 << 10

// BuildModel primes a model with the corpus and returns it as model.bin keeps it.
func BuildModel() []byte { return prime(generateCorpus()).image() }

// vectors are the texts whose codes testdata/vectors.txt keeps.
func vectors() []Vector {
	m := NewMaker(1, corpusWords)
	track := m.Track()
	list := []Vector{
		{Name: "pipe", Text: m.Pipe(Compact, true)},
		{Name: "pipe of 2.2", Text: m.Pipe(Old, false)},
		{Name: "specification", Text: m.Spec(Pretty)},
		{Name: "peer", Text: m.Peer(Bare, 0, true)},
		{Name: "certificate", Text: m.Peer(Compact, -1, false)},
		{Name: "track", Text: track.XML()},
		{Name: "records", Text: Texts([]*Track{track, m.Track()}, 200)},
		{Name: "employees", Text: m.Employees(3)},
		{Name: "no XML", Text: []byte("The quick brown fox jumps over the lazy dog, 1234567890 times: \u00e6\u00f8\u00e5.\n")},
		{Name: "octets", Text: m.Octets(24)},
	}
	var c Coder
	for i := range list {
		list[i].Code, list[i].Codec = c.Append(nil, list[i].Text)
	}
	return list
}

// Vector is a text and its code.
type Vector struct {
	Name  string
	Text  []byte
	Codec Codec
	Code  []byte
}

// Vectors are known codes, for those who port the coder: a name, the codec's octet, the code and the text, both in
// hexadecimal, one line each.
func Vectors() []byte {
	var b []byte
	for _, v := range vectors() {
		b = fmt.Appendf(b, "%s\n%02x\n%x\n%x\n\n", v.Name, byte(v.Codec), v.Code, v.Text)
	}
	return b
}

// GivenNames are those of persons in the corpus: some hundred that are common.
func GivenNames() []string { return corpusWords.First }
