package teach

import (
	"bytes"
	"crypto/sha256"
	"regexp"
	"slices"
	"strings"
)

// Private is something private in the samples: every holder of the corpus file could read it.
type Private struct {
	What    string `json:"what"`
	Secret  bool   `json:"secret"` // it gives access to something; otherwise it is about a person
	Samples int    `json:"samples"`
	From    string `json:"from"` // the origin of one such sample
}

// sight is a way to find private things: the value is the pattern's last group, or the whole match.
type sight struct {
	what    string
	secret  bool
	pattern *regexp.Regexp
	person  bool // the first word must be a given name
}

var sights = []sight{
	{what: "PEM block", secret: true, pattern: regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\z)`)},
	{what: "password, key or token", secret: true, pattern: regexp.MustCompile(`(?i)(?:password|passwd|passphrase|pwd|secret|credential|private[_-]?key|api[_-]?key|access[_-]?key|[a-z]*token)["']?\s*(?:[:=>]|value=)\s*["']?([^\s"'<>,;&]{4,})`)},
	{what: "authorization", secret: true, pattern: regexp.MustCompile(`(?i)authorization["']?\s*[:=]\s*["']?(?:basic|bearer|digest)\s+([^\s"'<>,;]+)`)},
	{what: "access key or signed token", secret: true, pattern: regexp.MustCompile(`\b(AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)`)},
	{what: "e-mail address", pattern: regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)},
	{what: "personal name", pattern: regexp.MustCompile(`(?i)(?:full_?name|first_?name|last_?name|sur_?name|given_?name|family_?name|person|author|patient|sender_?name|contact_?name)["']?\s*[:=>]\s*["']?(\p{L}[^"'<>;,\n\t{}\[\]]{1,40})`)},
	{what: "personal name", person: true, pattern: regexp.MustCompile(`\b\p{Lu}\p{Ll}+[ ]\p{Lu}[\p{L}'-]+`)},
}

// look notes the private things in a text, and returns the text with other words in their place.
func look(text []byte, from string, found map[string]*Private) []byte {
	noted := map[string]bool{}
	for _, s := range sights {
		var out []byte
		last := 0
		for _, at := range s.pattern.FindAllSubmatchIndex(text, -1) {
			begin, end := at[len(at)-2], at[len(at)-1]
			if first, _, _ := bytes.Cut(text[begin:end], []byte(" ")); s.person && !given(string(first)) {
				continue
			}
			if masked(text[begin:end]) {
				continue
			}
			if !noted[s.what] {
				noted[s.what] = true
				p := found[s.what]
				if p == nil {
					p = &Private{What: s.what, Secret: s.secret, From: from}
					found[s.what] = p
				}
				p.Samples++
				p.From = min(p.From, from)
			}
			out = append(append(out, text[last:begin]...), s.mask(text[begin:end])...)
			last = end
		}
		if last > 0 {
			text = append(out, text[last:]...)
		}
	}
	return text
}

func given(name string) bool { return slices.Contains(givenNames, name) }

// givenNames are some hundred common given names, and those in the built-in corpus.
var givenNames = strings.Split("James,Mary,Robert,Patricia,John,Jennifer,Michael,Linda,David,Elizabeth,William,Barbara,Richard,Susan,Joseph,Jessica,Thomas,Karen,Christopher,Sarah,Charles,Lisa,Daniel,Nancy,Matthew,Sandra,Anthony,Betty,Mark,Ashley,Donald,Emily,Steven,Kimberly,Andrew,Margaret,Paul,Donna,Joshua,Michelle,Kenneth,Carol,Kevin,Amanda,Brian,Melissa,George,Deborah,Timothy,Stephanie,Ronald,Rebecca,Jason,Laura,Edward,Helen,Jeffrey,Sharon,Ryan,Cynthia,Jacob,Kathleen,Gary,Amy,Nicholas,Angela,Eric,Shirley,Jonathan,Brenda,Larry,Pamela,Justin,Nicole,Scott,Anna,Brandon,Samantha,Frank,Katherine,Gregory,Christine,Raymond,Debra,Samuel,Rachel,Patrick,Carolyn,Alexander,Janet,Jack,Maria,Dennis,Olivia,Jerry,Heather,Lars,Ingrid,Nils,Astrid,Pierre,Marie,Hans,Greta,Jan,Anneke", ",")

// Names that replace those of persons.
var standIns = strings.Split("Robin Vale,Kim Ashe,Sasha Reed,Jo Marlow,Alex Thorne,Sam Holt,Toni Lake,Chris Dale,Pat Wells,Ray Cole,Lee Frost,Max Hart", ",")

const maskOctet = 'x'

// mask is the replacement of a private value: for a secret one of its length with its line ends, for a person another name.
func (s *sight) mask(value []byte) []byte {
	switch {
	case s.secret:
		out := bytes.Repeat([]byte{maskOctet}, len(value))
		for i, c := range value {
			if c == '\n' || c == '\r' {
				out[i] = c
			}
		}
		return out
	case bytes.IndexByte(value, '@') >= 0:
		return []byte(maskMail)
	}
	sum := sha256.Sum256(value)
	return []byte(standIns[int(sum[0])%len(standIns)])
}

const maskMail = "somebody@unit.example"

// masked says whether a value comes from mask.
func masked(value []byte) bool {
	return len(bytes.Trim(value, string(rune(maskOctet))+"\r\n")) == 0 || string(value) == maskMail || slices.Contains(standIns, string(value))
}
