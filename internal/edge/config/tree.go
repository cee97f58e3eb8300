package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// maxSyntax bounds how many broken lines are reported: a file with so many is no configuration.
const maxSyntax = 20

// value is the value of one key.
type value struct {
	line int
	kind unstable.Kind
	text string   // strings unescaped, other values as written
	list []string // of an array of strings
}

// table is one section, or one of an array of sections.
type table struct {
	path   string // "link", "link.peer"
	line   int
	values map[string]value // by the key within the section
	keys   []string         // in the order of the file
}

// tree is a file as sections with positions.
type tree struct {
	tables map[string]*table   // [section]; "" holds the keys before the first section
	arrays map[string][]*table // [[section]]
	links  []*linkTables       // each [[link]] behind the first; the first is in tables as [link]
	order  []*table
	slips  []string // the text before "=" on lines that are not TOML; "" is a line without "=", perhaps a section's
}

// linkTables is a [[link]] and its peers.
type linkTables struct {
	*table
	peers []*table
}

// link begins another [[link]]; the first is a section like any other.
func (t *tree) link(line int) *table {
	if t.tables["link"] == nil {
		return t.open("link", line)
	}
	s := &table{path: "link", line: line, values: map[string]value{}}
	t.links, t.order = append(t.links, &linkTables{table: s}), append(t.order, s)
	return s
}

// wanted says that a broken line may have been meant to set key: the line names it, or may have been meant to begin a section.
func (t *tree) wanted(key string) bool {
	return slices.Contains(t.slips, key) || slices.Contains(t.slips, "")
}

// parse reads data. A line that is not TOML is reported and treated as empty, so that the rest can be checked too.
func parse(data []byte, fail func(line int, key, format string, args ...any)) *tree {
	data = bytes.Clone(data)
	var broken int
	var slips []string
	for {
		t, line, err := parseOnce(data, nil)
		if err == nil {
			break
		}
		fail(line, "", "is not TOML: %v", err)
		broken++
		slips = append(slips, slipOf(data, line))
		if broken == maxSyntax || !blank(data, line) {
			t.slips = slips
			return t
		}
	}
	t, _, _ := parseOnce(data, fail)
	t.slips = slips
	return t
}

// slipOf is the key that a broken line was meant to set, or "".
func slipOf(data []byte, line int) string {
	lines := bytes.SplitN(data, []byte("\n"), line+1)
	if line > len(lines) {
		return ""
	}
	key, _, is := bytes.Cut(lines[line-1], []byte("="))
	if !is {
		return ""
	}
	return string(bytes.TrimSpace(key))
}

// blank empties a line, counted from 1, and keeps the number of lines; false: it was empty already.
func blank(data []byte, line int) bool {
	for n := 1; ; n++ {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			end = len(data)
		}
		if n == line {
			had := len(bytes.TrimSpace(data[:end])) > 0
			for i := range data[:end] {
				data[i] = ' '
			}
			return had
		}
		if end == len(data) {
			return false
		}
		data = data[end+1:]
	}
}

// parseOnce reads data up to the first line that is not TOML. It calls fail for keys and sections written twice.
func parseOnce(data []byte, fail func(line int, key, format string, args ...any)) (*tree, int, error) {
	if fail == nil {
		fail = func(int, string, string, ...any) {}
	}
	t := &tree{tables: map[string]*table{}, arrays: map[string][]*table{}}
	current := t.open("", 0)
	var p unstable.Parser
	p.Reset(data)
	for p.NextExpression() {
		e := p.Expression()
		parts, line := keyOf(&p, e)
		path := strings.Join(parts, ".")
		switch e.Kind {
		case unstable.Table:
			if isArray(path) {
				fail(line, path, "is written with two brackets: [[%s]]", path)
				current = t.append(path, line)
				break
			}
			if old := t.tables[path]; old != nil {
				fail(line, path, "section is there twice, first in line %d", old.line)
			}
			current = t.open(path, line)
		case unstable.ArrayTable:
			if path == "link" {
				current = t.link(line)
				break
			}
			if !isArray(path) {
				fail(line, path, "is written with one bracket: [%s]", path)
				current = t.open(path, line)
				break
			}
			current = t.append(path, line)
		case unstable.KeyValue:
			t.set(&p, current, parts, line, e.Value(), fail)
		}
	}
	if err := p.Error(); err != nil {
		return t, errorLine(&p, data, err), err
	}
	return t, 0, nil
}

func errorLine(p *unstable.Parser, data []byte, err error) int {
	var pe *unstable.ParserError
	if errors.As(err, &pe) && pe.Highlight != nil {
		return p.Shape(p.Range(pe.Highlight)).Start.Line
	}
	return 1 + bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n"))
}

func keyOf(p *unstable.Parser, e *unstable.Node) (parts []string, line int) {
	for it := e.Key(); it.Next(); {
		n := it.Node()
		if line == 0 {
			line = p.Shape(n.Raw).Start.Line
		}
		parts = append(parts, string(n.Data))
	}
	return parts, line
}

func (t *tree) open(path string, line int) *table {
	s := t.tables[path]
	if s == nil {
		s = &table{path: path, line: line, values: map[string]value{}}
		t.tables[path] = s
		t.order = append(t.order, s)
	}
	return s
}

func (t *tree) append(path string, line int) *table {
	s := &table{path: path, line: line, values: map[string]value{}}
	if n := len(t.links); n > 0 && path == "link.peer" {
		t.links[n-1].peers = append(t.links[n-1].peers, s)
	} else {
		t.arrays[path] = append(t.arrays[path], s)
	}
	t.order = append(t.order, s)
	return s
}

// set enters a value. Inline tables and dotted keys mean the same as sections.
func (t *tree) set(p *unstable.Parser, in *table, parts []string, line int, v *unstable.Node, fail func(int, string, string, ...any)) {
	key := parts[len(parts)-1]
	if len(parts) > 1 && !isArray(in.path) {
		in = t.open(join(in.path, strings.Join(parts[:len(parts)-1], ".")), line)
	} else {
		key = strings.Join(parts, ".")
	}
	path := join(in.path, key)
	switch {
	case v.Kind == unstable.InlineTable && !isArray(in.path):
		if t.tables[path] != nil {
			fail(line, path, "section is there twice, first in line %d", t.tables[path].line)
		}
		t.inline(p, t.open(path, line), v, fail)
		return
	case v.Kind == unstable.Array && isArray(path):
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.InlineTable {
				t.inline(p, t.append(path, line), it.Node(), fail)
			} else {
				fail(line, path, "must be a list of sections: [[%s]]", path)
			}
		}
		return
	}
	if old, ok := in.values[key]; ok {
		fail(line, path, "is set twice, first in line %d", old.line)
		return
	}
	is := value{line: line, kind: v.Kind, text: string(v.Data)}
	for it := v.Children(); v.Kind == unstable.Array && it.Next(); {
		if it.Node().Kind != unstable.String {
			is.list = nil
			break
		}
		is.list = append(is.list, string(it.Node().Data))
	}
	in.values[key] = is
	in.keys = append(in.keys, key)
}

func (t *tree) inline(p *unstable.Parser, in *table, v *unstable.Node, fail func(int, string, string, ...any)) {
	for it := v.Children(); it.Next(); {
		if it.Node().Kind == unstable.KeyValue {
			parts, line := keyOf(p, it.Node())
			t.set(p, in, parts, line, it.Node().Value(), fail)
		}
	}
}

func join(section, key string) string {
	if section == "" {
		return key
	}
	return section + "." + key
}

// word names a kind of value for people.
func (v value) word() string {
	switch v.kind {
	case unstable.String:
		return fmt.Sprintf("%q", v.text)
	case unstable.Array:
		return "a list"
	case unstable.InlineTable:
		return "a section"
	}
	return v.text
}
