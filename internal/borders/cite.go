package borders

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// referenceTable is the page with the table of the short names of pages. It also describes the syntax of citations.
const referenceTable = "docs/reference/README.md"

// Citations reads the comments of every Go, Protocol Buffers, TOML and make file and every Markdown page below root. It returns
// a fault for each citation of a reference page that leads nowhere, for each that does not follow the syntax of
// docs/reference/README.md, and for each named page that does not exist.
func Citations(root string) ([]Fault, error) {
	c, err := readReference(root)
	if err != nil {
		return nil, err
	}
	wanted := func(d fs.DirEntry) bool { return d.Type().IsRegular() && splitter(d.Name()) != nil }
	err = walk(root, wanted, func(rel string, source []byte) error {
		c.file = rel
		list, err := splitter(path.Base(rel))(rel, source)
		for _, p := range list {
			c.judge(p)
		}
		return err
	})
	return c.faults, err
}

// splitter returns the function that finds the passages of a file of this name; nil if it has none.
func splitter(name string) func(string, []byte) ([]passage, error) {
	switch {
	case strings.HasSuffix(name, ".pb.go"):
		return nil
	case strings.HasSuffix(name, ".go"):
		return goPassages
	case strings.HasSuffix(name, ".md"):
		return pagePassages
	case strings.HasSuffix(name, ".toml"), name == "Makefile":
		return linePassages("#")
	case strings.HasSuffix(name, ".proto"):
		return linePassages("//")
	}
	return nil
}

// citer knows the reference pages and checks passages.
type citer struct {
	root    string
	file    string                         // the file being checked, with slashes, below root
	numbers map[string]map[string]struct{} // short name -> numbers on its page
	loose   *regexp.Regexp
	faults  []Fault
}

var (
	tableRow  = regexp.MustCompile("^\\| `([a-z][a-z0-9-]*)` \\| \\[[^\\]]*\\]\\(([^)]+)\\) \\|")
	headingNo = regexp.MustCompile(`^#{2,6} (\d+(?:\.\d+)*)\.? `)
	itemNo    = regexp.MustCompile(`^(\d+)\. `)
	brackets  = regexp.MustCompile(`\([^()]*\)`)
	citeSplit = regexp.MustCompile(`[,;:] | and `)
	citeFirst = regexp.MustCompile(`^([a-z][a-z0-9-]*) (\d+(?:\.\d+)*)(?: to (\d+(?:\.\d+)*))?$`)
	citeMore  = regexp.MustCompile(`^(\d+(?:\.\d+)*)(?: to (\d+(?:\.\d+)*))?$`)
	pageName  = regexp.MustCompile(`(?:\.{1,2}/)*[A-Za-z0-9_][A-Za-z0-9_./-]*\.md\b`)
	codeSpan  = regexp.MustCompile("`[^`]*`")
)

// readReference reads the table and the numbers of the pages that it names.
func readReference(root string) (*citer, error) {
	table, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(referenceTable)))
	if err != nil {
		return nil, err
	}
	c := &citer{root: root, file: referenceTable, numbers: map[string]map[string]struct{}{}}
	var names []string
	for i, line := range strings.Split(string(table), "\n") {
		row := tableRow.FindStringSubmatch(line)
		if row == nil {
			continue
		}
		short, file := row[1], path.Join(path.Dir(referenceTable), row[2])
		if c.numbers[short] != nil {
			c.fail(i+1, "%s is in the table twice", short)
			continue
		}
		c.numbers[short] = map[string]struct{}{}
		names = append(names, regexp.QuoteMeta(short), regexp.QuoteMeta(path.Base(file)))
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			c.fail(i+1, "%s stands for %s, which does not exist", short, file)
			continue
		}
		c.file = file
		c.readNumbers(c.numbers[short], string(text))
		c.file = referenceTable
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no table of short names", referenceTable)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	list := strings.Join(names, "|")
	c.loose = regexp.MustCompile(`(?:^|[^\w/.-])((?:` + list + `),? (?:(?:sections?|decisions?) \d+(?:\.\d+)*|\d+\.\d+(?:\.\d+)*)|[\w-]+\.md,? (?:section )?\d+(?:\.\d+)*)`)
	return c, nil
}

// readNumbers records the numbers of headings, and of the items of lists that directly follow one.
func (c *citer) readNumbers(into map[string]struct{}, text string) {
	var at string
	var level int // level of the heading at
	lists := map[string]struct{}{}
	last := 0
	for i, line := range proseLines(text) {
		if h := headingNo.FindStringSubmatch(line); h != nil {
			at, level, last = h[1], strings.IndexByte(line, ' '), 0
			if _, twice := into[at]; twice {
				c.fail(i+1, "the heading %s is there twice", at)
			}
			into[at] = struct{}{}
		} else if strings.HasPrefix(line, "#") {
			if strings.IndexByte(line, ' ') <= level {
				at = ""
			}
			last = 0
		} else if n := itemNo.FindStringSubmatch(line); n != nil && at != "" {
			number, _ := strconv.Atoi(n[1])
			if _, begun := lists[at]; number != last+1 || last == 0 && begun {
				continue // a second list below the same heading cannot be cited
			}
			last = number
			lists[at] = struct{}{}
			into[at+"."+n[1]] = struct{}{}
		}
	}
}

func (c *citer) fail(line int, format string, args ...any) {
	c.faults = append(c.faults, Fault{token.Position{Filename: c.file, Line: line}, fmt.Sprintf(format, args...)})
}

// passage is text that belongs together, its lines joined by spaces: a comment, or a paragraph of a page.
type passage struct {
	text string
	at   []int // where each line begins in text
	line []int // its number in the file
}

func (p *passage) add(line int, text string) {
	if p.text != "" {
		p.text += " "
	}
	p.at, p.line = append(p.at, len(p.text)), append(p.line, line)
	p.text += strings.TrimSpace(text)
}

// lineOf is the line of the file that contains the octet at offset.
func (p *passage) lineOf(offset int) int {
	i, found := slices.BinarySearch(p.at, offset)
	if !found {
		i--
	}
	return p.line[max(i, 0)]
}

func goPassages(file string, source []byte) ([]passage, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var list []passage
	for _, group := range tree.Comments {
		var p passage
		for _, comment := range group.List {
			text := strings.TrimSuffix(strings.TrimPrefix(comment.Text, "/*"), "*/")
			for i, line := range strings.Split(text, "\n") {
				p.add(set.Position(comment.Pos()).Line+i, strings.TrimPrefix(strings.TrimSpace(line), "//"))
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// linePassages finds comments from mark to the end of the line. Successive lines with only a comment are one passage.
func linePassages(mark string) func(string, []byte) ([]passage, error) {
	return func(_ string, source []byte) ([]passage, error) {
		var list []passage
		joined := false
		for i, line := range strings.Split(string(source), "\n") {
			before, text, found := strings.Cut(line, mark)
			whole := found && strings.TrimSpace(before) == ""
			switch {
			case whole && joined:
				list[len(list)-1].add(i+1, text)
			case found:
				var p passage
				p.add(i+1, text)
				list = append(list, p)
			}
			joined = whole
		}
		return list, nil
	}
}

// pagePassages finds the paragraphs, list items and table rows of a Markdown page, without blocks of code.
func pagePassages(_ string, source []byte) ([]passage, error) {
	var list []passage
	open := false
	for i, line := range proseLines(string(source)) {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" {
			open = false
			continue
		}
		if !open || strings.ContainsAny(trimmed[:1], "|#") {
			list = append(list, passage{})
		}
		list[len(list)-1].add(i+1, line)
		open = !strings.ContainsAny(trimmed[:1], "|#")
	}
	return list, nil
}

// proseLines splits a Markdown page; lines of fenced and indented code are left empty.
func proseLines(text string) []string {
	lines := strings.Split(text, "\n")
	fenced, indented, blank := false, false, true
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		indented = strings.HasPrefix(line, "    ") && (blank || indented)
		blank = strings.TrimSpace(line) == ""
		if fence {
			fenced = !fenced
		}
		if fence || fenced || indented {
			lines[i] = ""
		}
	}
	return lines
}

func (c *citer) judge(p passage) {
	text := codeSpan.ReplaceAllStringFunc(p.text, func(s string) string { return strings.Repeat(" ", len(s)) })
	right := []byte(text) // the text without correct citations
	for _, at := range brackets.FindAllStringIndex(text, -1) {
		for _, part := range c.inBrackets(p.lineOf, text, at[0]+1, at[1]-1) {
			for i := part[0]; i < part[1]; i++ {
				right[i] = ' '
			}
		}
	}
	for _, at := range c.loose.FindAllSubmatchIndex(right, -1) {
		c.fail(p.lineOf(at[2]), "%q is no citation: %s has the syntax", text[at[2]:at[3]], referenceTable)
	}
	for _, at := range pageName.FindAllStringIndex(text, -1) {
		if at[0] > 0 && strings.ContainsRune("/:.", rune(text[at[0]-1])) {
			continue // part of an address
		}
		if name := text[at[0]:at[1]]; !c.exists(name) {
			c.fail(p.lineOf(at[0]), "%s does not exist", name)
		}
	}
}

// inBrackets checks the citations in text[from:to], the inside of a pair of parentheses, and returns where they are.
func (c *citer) inBrackets(lineOf func(int) int, text string, from, to int) (cited [][2]int) {
	short := "" // of the citation before, which more numbers may follow
	for from < to {
		end, next := to, to
		separator := ""
		if s := citeSplit.FindStringIndex(text[from:to]); s != nil {
			end, next = from+s[0], from+s[1]
			separator = text[end:next]
		}
		part := text[from:end]
		var numbers []string
		if m := citeFirst.FindStringSubmatch(part); m != nil && c.numbers[m[1]] != nil {
			short, numbers = m[1], m[2:]
		} else if m := citeMore.FindStringSubmatch(part); m != nil && short != "" {
			numbers = m[1:]
		} else {
			short = ""
		}
		for _, n := range numbers {
			if _, ok := c.numbers[short][n]; n != "" && !ok {
				c.fail(lineOf(from), "(%s %s): the page has no such number", short, n)
			}
		}
		if numbers != nil {
			cited = append(cited, [2]int{from, end})
		}
		if separator != ", " && separator != " and " {
			short = ""
		}
		from = next
	}
	return cited
}

// exists says whether a page exists, named from the root or from the directory of the file being checked.
func (c *citer) exists(name string) bool {
	for _, dir := range []string{"", path.Dir(c.file)} {
		if info, err := os.Stat(filepath.Join(c.root, filepath.FromSlash(path.Join(dir, name)))); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}
