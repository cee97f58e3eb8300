// Package manual writes what an operator reads or types about the commands of a program: help, man pages, and the
// completions of three shells. All of them come from one description of the commands.
//
// # Files
//
//   - bash.go: the completion of bash
//   - fish.go: the completion of fish
//   - markdown.go: a page for the documentation
//   - program.go: the description of the commands, and the help
//   - roff.go: man pages
//   - text.go: the text of a command's help taken apart
//   - zsh.go: the completion of zsh
package manual
