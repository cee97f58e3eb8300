package manual

import (
	"flag"
	"strings"
	"testing"
)

// sample is a program with one of each kind.
func sample() Program {
	fs := flag.NewFlagSet("send", flag.ContinueOnError)
	fs.String("c", "/etc/boat.toml", "configuration `file`")
	fs.Bool("dry-run", false, "change nothing, don't [yet]: say")
	fs.Int("count", 0, "how many")
	fs.String("profile", "", "`name` of a link")
	send := Command{Name: "mail send", Summary: "send it", Files: true, Flags: FlagsOf(fs, map[string][]string{"profile": {"hf", "vhf"}}),
		About: "usage: boat mail send [-c FILE]\n            [--dry-run] FILE\n       boat mail send\n\nSends a file - at once.\nWith --dry-run nothing.\n\n" +
			".start of a line\n  boat mail send 'a b'   \n  one  the first\n       goes on\nC:\\x.\nExit: 0 sent, 1 not.\n"}
	return Program{Name: "boat", Product: "Boats 1", Date: "2026-11-22", Summary: "keep boats", About: "Keeps boats.", End: "The end.",
		Files: []File{{"/etc/boat.toml", "the configuration"}},
		Groups: []Group{
			{"Boats", []Command{{Name: "list", Summary: "list boats", About: "usage: boat list\n\nLists.\n", Words: []string{"all", "mine"}}}},
			{"Letters", []Command{{Name: "mail", Summary: "send letters", About: "usage: boat mail send\n\nSends.\n"}, send}},
		}}
}

func TestHelpListsCommandsInGroups(t *testing.T) {
	want := "usage: boat COMMAND [flags]\n\nKeeps boats.\n\n  list  list boats\n\n  mail  send letters\n\nThe end.\n"
	if got := sample().Help(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPageOfACommand(t *testing.T) {
	pages := sample().Pages()
	if len(pages) != 4 {
		t.Fatalf("%d pages, want those of the program and of three commands", len(pages))
	}
	page := pages[3]
	if page.Name != "boat-mail-send.1" {
		t.Errorf("its file is %s", page.Name)
	}
	want := `.TH BOAT\-MAIL\-SEND 1 "2026-11-22" "Boats 1" "Aldis manual"
.SH NAME
boat\-mail\-send \- send it
.SH SYNOPSIS
boat mail send [\-c FILE] [\-\-dry\-run] FILE
.br
boat mail send
.SH DESCRIPTION
Sends a file \- at once. With \-\-dry\-run nothing.
.PP
\&.start of a line
.RS 4
.EX
boat mail send \(aqa b\(aq
.EE
.RE
.TP
\fBone\fP
the first goes on
.PP
C:\ex.
.SH OPTIONS
.TP
\fB\-c\fP \fIfile\fP
configuration file (default /etc/boat.toml)
.TP
\fB\-\-count\fP \fIint\fP
how many
.TP
\fB\-\-dry\-run\fP
change nothing, don't [yet]: say
.TP
\fB\-\-profile\fP \fIname\fP
name of a link
.SH EXIT STATUS
0 sent, 1 not.
.SH FILES
.TP
.I /etc/boat.toml
the configuration
.SH SEE ALSO
.BR boat (1),
.BR boat\-mail (1)
`
	if page.Text != want {
		t.Errorf("got\n%s\nwant\n%s", page.Text, want)
	}
}

func TestPageOfTheProgram(t *testing.T) {
	text := sample().Pages()[0].Text
	for _, want := range []string{".SH NAME\nboat \\- keep boats\n", ".SS Letters\n.TP\n.BR boat\\-mail (1)\nsend letters\n.TP\n.BR boat\\-mail\\-send (1)\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// A text with any characters stays text: no line of it becomes a request to the formatter.
func FuzzRoff(f *testing.F) {
	for _, s := range []string{"plain", ".so /etc/passwd", "'br", "a\\fBb", "--json is -c", "\x00\xff", "ünï…"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.Join(strings.Fields(s), " ") // a paragraph has no line ends
		for _, out := range []string{literal(s), flowing(s)} {
			if strings.HasPrefix(out, ".") || strings.HasPrefix(out, "'") {
				t.Errorf("%q begins a request", out)
			}
			for _, r := range out {
				if r > 126 {
					t.Errorf("%q has %q, which not every formatter reads", out, r)
				}
			}
		}
	})
}

// The page of the documentation has each command, its calls, flags and defaults, and no text that Markdown would interpret.
func TestMarkdown(t *testing.T) {
	page := sample().Markdown()
	for _, c := range sample().Commands() {
		for _, want := range []string{"### boat " + c.Name + "\n", "(#boat-" + strings.ReplaceAll(c.Name, " ", "-") + ")"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q:\n%s", want, page)
			}
		}
		for _, f := range c.Flags {
			if !strings.Contains(page, "| `"+f.Typed()) {
				t.Errorf("the page lacks %s:\n%s", f.Typed(), page)
			}
		}
	}
	p := Program{Name: "x", Groups: []Group{{"G", []Command{{Name: "y", Summary: "a|b", About: "usage: x y\n\nA *star* <b>.\n",
		Flags: []Flag{{Name: "f", Value: "on|off", About: "a_b|c", Default: "on"}}}}}}}
	for _, want := range []string{`| a\|b |`, `A \*star\* &lt;b>.`, "| `-f on\\|off` | a\\_b\\|c | `on` |"} {
		if !strings.Contains(p.Markdown(), want) {
			t.Errorf("the page lacks %q:\n%s", want, p.Markdown())
		}
	}
}
