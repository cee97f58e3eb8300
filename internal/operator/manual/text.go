package manual

import "strings"

// text is the parsed help of a command.
type text struct {
	usage []string // one call each
	body  []block
	exit  string // the meaning of the exit codes
}

// block is a paragraph, a line of an example, or an entry of a list.
type block struct {
	kind  blockKind
	term  string // of an entry
	text  string
	apart bool // an empty line precedes it
}

type blockKind int

const (
	paragraph blockKind = iota
	example
	entry
)

// read parses the help of a program's command. An indented line is an example; with two blanks or more in its middle it is an
// entry of a list, which goes on in lines that are indented further.
func read(program, about string) (t text) {
	head, body, _ := strings.Cut(about, "\n\n")
	for _, line := range strings.Split(head, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(line, "usage: "))
		if n := len(t.usage); n > 0 && !strings.HasPrefix(line, program+" ") {
			t.usage[n-1] += " " + line
			continue
		}
		t.usage = append(t.usage, line)
	}
	apart := false
	for _, line := range strings.Split(strings.TrimRight(body, "\n"), "\n") {
		bare := strings.TrimSpace(line)
		if bare == "" {
			apart = true
			continue
		}
		t.add(line, bare, apart)
		apart = false
	}
	if n := len(t.body); n > 0 && t.body[n-1].kind == paragraph && strings.HasPrefix(t.body[n-1].text, "Exit: ") {
		t.exit = strings.TrimPrefix(t.body[n-1].text, "Exit: ")
		t.body = t.body[:n-1]
	}
	return t
}

// add adds a line; bare is the line without surrounding blanks.
func (t *text) add(line, bare string, apart bool) {
	var before *block
	if n := len(t.body); n > 0 && !apart {
		before = &t.body[n-1]
	}
	indent := len(line) - len(strings.TrimLeft(line, " "))
	term, rest, list := strings.Cut(bare, "  ")
	exit := strings.HasPrefix(bare, "Exit: ")
	switch {
	case indent > 2 && before != nil && before.kind == entry, indent == 0 && before != nil && before.kind == paragraph && !exit:
		before.text += " " + bare
	case indent == 0:
		t.body = append(t.body, block{paragraph, "", bare, apart})
	case list:
		t.body = append(t.body, block{entry, term, strings.TrimSpace(rest), apart})
	default:
		t.body = append(t.body, block{example, "", bare, apart})
	}
}
