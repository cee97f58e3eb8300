package sim

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/profile"
)

// TestJournalOfVersion01 continues three nodes from journals written by version 0.1 (commit e94912a's formats), with messages waiting,
// under way, and arrived before their turn: each arrives once, and nothing old is left in the journals.
func TestJournalOfVersion01(t *testing.T) {
	for name, p := range map[string]string{"norm-0.1.json": "iridium-dialup", "p_mul-0.1.json": "hf-2400"} {
		t.Run(name, func(t *testing.T) {
			var old []struct {
				Journal []api.Record
				Sent    map[string][]uint16 // by the first letter of the text
				Got     []string
			}
			b, err := os.ReadFile("testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &old); err != nil {
				t.Fatal(err)
			}
			link, err := profile.Load(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			wire, err := profile.Load("wire", nil)
			if err != nil {
				t.Fatal(err)
			}
			w, err := New(Config{Nodes: 3, Profile: link, Wire: wire, Seed: 7, Group: p == "hf-2400"})
			if err != nil {
				t.Fatal(err)
			}
			w.Run(time.Hour)
			for i, n := range w.Nodes {
				n.journal = map[string]api.Record{}
				for _, r := range old[i].Journal {
					n.journal[r.Bucket+"\x00"+string(r.Key)] = r
				}
				w.Kill(n, 0)
			}
			w.Run(3 * time.Hour)
			for i, n := range w.Nodes {
				got := slices.Clone(old[i].Got)
				for _, g := range n.Site.Got {
					got = append(got, string(g.Payload.Parts[0].Data[:1]))
				}
				slices.Sort(got)
				var want []string
				for _, from := range old {
					for text, to := range from.Sent {
						if slices.Contains(to, n.ID) {
							want = append(want, text)
						}
					}
				}
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s was given %v in all, want %v\n%v", n.Name, got, want, w.Notes)
				}
				for _, r := range n.journal {
					switch r.Bucket {
					case "waiting", "out", "mul-out", "mul-early", "mail", "to", "early":
						t.Errorf("%s: a record is left when all has arrived: %s %x", n.Name, r.Bucket, r.Key)
					}
				}
			}
		})
	}
}
