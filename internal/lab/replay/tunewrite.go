package replay

import (
	"fmt"
	"regexp"
	"strings"

	"aldis/internal/link/profile"
)

// WriteTuned makes a profile file from the one with which a search began: its text with the changed values in their places, each with its
// old value, and a head that gives their origin. name is the new profile's. A file whose [gateway] section does not have its keys on
// lines of their own is refused.
func WriteTuned(source []byte, from, to profile.Profile, name string, head []string) ([]byte, error) {
	to.Name = name
	var out strings.Builder
	for _, line := range head {
		out.WriteString(strings.TrimSpace("# "+strings.Map(printable, line)) + "\n")
	}
	section := ""
	done := map[string]bool{}
	for line := range strings.Lines(string(source)) {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "[") {
			section = strings.TrimSpace(strings.Trim(strings.SplitN(trimmed, "#", 2)[0], "[] \t"))
		}
		key, _, ok := strings.Cut(trimmed, "=")
		key = strings.TrimSpace(key)
		switch {
		case ok && section == "" && key == "name":
			line = fmt.Sprintf("name = %q\n", name)
		case ok && section == "gateway":
			for _, k := range knobs() {
				if k.Key != key || k.get(&from) == k.get(&to) {
					continue
				}
				value := fmt.Sprintf("%s = %d", key, k.get(&to))
				line = fmt.Sprintf("%-28s # tuned, was %d%s\n", value, k.get(&from), reason(trimmed))
				done[key] = true
			}
		}
		out.WriteString(line)
	}
	text := []byte(out.String())
	got, err := profile.Decode(name+".toml", text)
	if err != nil {
		return nil, err
	}
	if got != to {
		return nil, fmt.Errorf("tune: the profile's file cannot be rewritten: write the keys of [gateway] on lines of their own, as gateway profiles %s prints them", from.Name)
	}
	return text, nil
}

var comment = regexp.MustCompile(`#\s*(.*)$`)

// reason is the file's comment on a value.
func reason(line string) string {
	if m := comment.FindStringSubmatch(line); m != nil && m[1] != "" {
		return ": " + m[1]
	}
	return ""
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '?'
	}
	return r
}
