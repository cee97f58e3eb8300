// Command site makes the documentation of the repository a site: plain files that need no server and no network.
//
// # Files
//
//   - guide.go: which pages there are, and in which order
//   - main.go: the command
//   - markdown.go: a page of Markdown as HTML, with its links
//   - search.go: the words of each section
//   - session.go: a terminal session that is played and recorded
//   - tour.go: the page of pictures and of the session
//   - write.go: the files of the site
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	top := flag.String("top", ".", "`directory` of the repository")
	out := flag.String("o", "build/docs", "`directory` of the site; what is in it is replaced")
	gateway := flag.String("gateway", "", "a built `gateway`: plays the terminal session of the tour with it")
	shots := flag.String("shots", "", "`directory` with pictures of the page, as tests of internal/operator/control make them: the tour shows four")
	flag.Parse()
	s := newSite(*top)
	err := func() error {
		if *gateway == "" && *shots == "" {
			return nil
		}
		return s.tour(*gateway, *shots)
	}()
	if err == nil {
		err = s.write(*out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages: %s/index.html\n", len(s.pages), *out)
}
