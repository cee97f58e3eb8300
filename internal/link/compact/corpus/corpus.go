// Package corpus is the words in which one speaks of a corpus that primes a model, for the codec and for what makes the corpus.
package corpus

import (
	"fmt"
	"strings"
)

// Part is messages of which each follows the one before, as on one flow.
type Part struct {
	Name     string
	Messages [][]byte
}

// Text is a corpus as text: each message with a line before it that names its kind, says whether it follows the one before on
// its flow, and how many octets it has.
func Text(parts []Part) []byte {
	var b []byte
	for _, p := range parts {
		for i, text := range p.Messages {
			follows := "first"
			if i > 0 {
				follows = "next"
			}
			b = fmt.Appendf(b, "== %s %s %d\n%s\n", p.Name, follows, len(text), text)
		}
	}
	return b
}

// GivenNames are those of persons in the corpus: some hundred that are common.
var GivenNames = strings.Split("James,Mary,Robert,Patricia,John,Jennifer,Michael,Linda,David,Elizabeth,William,Barbara,Richard,Susan,Joseph,Jessica,Thomas,Karen,Christopher,Sarah,Charles,Lisa,Daniel,Nancy,Matthew,Sandra,Anthony,Betty,Mark,Ashley,Donald,Emily,Steven,Kimberly,Andrew,Margaret,Paul,Donna,Joshua,Michelle,Kenneth,Carol,Kevin,Amanda,Brian,Melissa,George,Deborah,Timothy,Stephanie,Ronald,Rebecca,Jason,Laura,Edward,Helen,Jeffrey,Sharon,Ryan,Cynthia,Jacob,Kathleen,Gary,Amy,Nicholas,Angela,Eric,Shirley,Jonathan,Brenda,Larry,Pamela,Justin,Nicole,Scott,Anna,Brandon,Samantha,Frank,Katherine,Gregory,Christine,Raymond,Debra,Samuel,Rachel,Patrick,Carolyn,Alexander,Janet,Jack,Maria,Dennis,Olivia,Jerry,Heather,Lars,Ingrid,Nils,Astrid,Pierre,Marie,Hans,Greta,Jan,Anneke", ",")
