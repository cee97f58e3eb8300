package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// found is a section as the search knows it.
type found struct {
	Page    string `json:"p"` // title
	Title   string `json:"t"`
	Address string `json:"a"` // from the top of the site
	Words   string `json:"w"` // each once
}

var word = regexp.MustCompile(`[\p{L}\p{N}_.-]{3,}`)

// index is the script that the search loads when somebody looks for something. It is a script, because a page that was opened
// from a disk may load nothing else.
func (s *site) index() ([]byte, error) {
	var list []found
	for _, p := range s.pages {
		for _, h := range p.Headings {
			seen := map[string]bool{}
			for _, w := range word.FindAllString(strings.ToLower(h.plain), -1) {
				w = strings.Trim(w, ".-")
				if len(w) > 2 {
					seen[w] = true
				}
			}
			list = append(list, found{p.Name, h.Title, p.path + "#" + h.ID, strings.Join(slices.Sorted(maps.Keys(seen)), " ")})
		}
	}
	b, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return append(append([]byte("aldisIndex="), b...), ";\n"...), nil
}
