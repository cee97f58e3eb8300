// Package manual writes the texts that help an operator with the commands of a program: help, man pages, and completions for
// three shells. All are generated from one description of the commands. The package is pure.
//
// # Files
//
// Read program.go first.
//
//   - program.go: the description of the commands, and the help
//   - text.go: a command's help text, parsed
//   - roff.go: man pages
//   - markdown.go: a page for the documentation
//   - bash.go: completion for bash
//   - fish.go: completion for fish
//   - zsh.go: completion for zsh
package manual
