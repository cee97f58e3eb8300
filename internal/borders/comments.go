package borders

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// comments finds doc comments whose first word is a name, but not the declared one. A first word is a name if it begins in
// lower case, if the package declares it, or if only its case differs from the declared name. An exported declaration needs a
// comment that begins with its name. Comments of tests may begin with any sentence.
func comments(files []*file) (faults []Fault) {
	declared := map[string]map[string]bool{}
	for _, f := range files {
		dir := path.Dir(f.path)
		if declared[dir] == nil {
			declared[dir] = map[string]bool{}
		}
		for _, d := range f.documented() {
			for _, n := range d.names {
				declared[dir][n] = true
			}
		}
	}
	for _, f := range files {
		if f.generated {
			continue
		}
		for _, d := range f.documented() {
			word := firstWord(d.doc.Text())
			if d.doc == nil || word == "" || slices.Contains(d.names, word) {
				continue
			}
			first, _ := utf8.DecodeRuneInString(word)
			name := unicode.IsLower(first) || declared[path.Dir(f.path)][word] || strings.EqualFold(word, d.names[0]) ||
				ast.IsExported(d.names[0]) && !f.test
			if d.sentence {
				name = declared[path.Dir(f.path)][word] && !unicode.IsLower(first) && isTest(word)
			}
			if name {
				faults = append(faults, f.fault(d.doc, "the comment of %s begins with %q", d.names[0], word))
			}
		}
	}
	return faults
}

// documentedDecl is a declaration with its comment; doc may be nil.
type documentedDecl struct {
	names    []string
	doc      *ast.CommentGroup
	sentence bool // a test's comment
}

func (f *file) documented() (list []documentedDecl) {
	for _, d := range f.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			list = append(list, documentedDecl{[]string{d.Name.Name}, d.Doc, f.test && isTest(d.Name.Name)})
		case *ast.GenDecl:
			for _, s := range d.Specs {
				list = append(list, specOf(d, s))
			}
		}
	}
	return slices.DeleteFunc(list, func(d documentedDecl) bool { return len(d.names) == 0 })
}

func specOf(d *ast.GenDecl, s ast.Spec) (out documentedDecl) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		out.names, out.doc = []string{s.Name.Name}, s.Doc
	case *ast.ValueSpec:
		for _, n := range s.Names {
			out.names = append(out.names, n.Name)
		}
		out.doc = s.Doc
	}
	if out.doc == nil && d.Lparen == token.NoPos {
		out.doc = d.Doc
	}
	return out
}

func isTest(name string) bool {
	return slices.ContainsFunc([]string{"Test", "Benchmark", "Fuzz", "Example"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// firstWord is the first word of a text; "": the text does not begin with a word.
func firstWord(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	if end < 0 {
		return text
	}
	return text[:end]
}
