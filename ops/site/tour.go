package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// quoted is a text as JSON has it.
func quoted(s string) string {
	b, _ := json.Marshal(s) // of a string: no error
	return string(b)
}

// pictures are the four of the tour, as the tests of internal/operator/control name them.
var pictures = []struct{ file, title, about string }{
	{"now-1280-light.png", "Now", "Each site and its link, what waits by precedence and when it will be there, alarms in words."},
	{"messages-1280-light.png", "Messages", "Find one, see its whole life, hold, release, cancel or raise it."},
	{"air-1280-dark.png", "Air", "What each octet was for, minutes and money against the tariff. In the dark."},
	{"map-1280-light.png", "Map", "Sites, peers and services, and where each is known."},
}

// tour makes the page of pictures and of the session. Without a gateway it has no session, without shots no pictures.
func (s *site) tour(gateway, shots string) error {
	var b strings.Builder
	b.WriteString("# A tour\n\nMade by `make docs`.\n")
	if gateway != "" {
		steps, err := play(gateway, script())
		if err != nil {
			return err
		}
		s.files["session.cast"] = cast(steps)
		fmt.Fprintf(&b, "\n## From nothing to two gateways\n\nTwo sites on one machine: configurations and key, a check, both gateways, and a mission judged on another link. "+
			"Every line was typed and printed as it stands here; reload the page to see it again, or play [session.cast](session.cast) with asciinema.\n\n%s\n", recorded(steps))
	}
	if shots != "" {
		b.WriteString("\n## The page of a gateway\n\nA browser shows it at `http.listen` ([watch.md](watch.html)). 64 sites, 1,000 messages.\n")
		for _, p := range pictures {
			data, err := os.ReadFile(filepath.Join(shots, p.file))
			if err != nil {
				return fmt.Errorf("a picture of the tour: %w", err)
			}
			s.files["pictures/"+p.file] = data
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n![The view %s](pictures/%s)\n", p.title, p.about, p.title, p.file)
		}
	}
	s.tourBody = b.String()
	return nil
}
