package operator

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"

	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/edge/config"
	"aldis/internal/edge/keyfile"
	"aldis/internal/operator/cli"
)

const xmppAbout = `usage: gateway xmpp user add|password NAME [-c FILE] [--password-file FILE]
       gateway xmpp user remove NAME [-c FILE]
       gateway xmpp user list [-c FILE]

Change who may log in where the gateway is the XMPP server of the LAN (xmpp.listen). NAME is what stands before the @.

  add       make a user
  password  give a user another password. Whoever is logged in stays so
  remove    take a user away, with contacts, messages that wait, and archive. The user's clients are disconnected
  list      show the names

A running gateway takes a change within a second. The password is asked on the terminal, or is the first line of a file. The file
xmpp.users has keys that can check a password, and no passwords.
`

func xmppCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("xmpp", flag.ContinueOnError)
	file := fs.String("c", cli.DefaultConfig, "configuration `file`; only xmpp.users is read from it")
	password := fs.String("password-file", "", "`file` whose first line is the password")
	rest, code, done := cli.Parse(fs, args, 3, xmppAbout, stdout, stderr)
	if done {
		return code
	}
	want := map[string]int{"add": 3, "password": 3, "remove": 3, "list": 2}
	if len(rest) < 2 || rest[0] != "user" || want[rest[1]] != len(rest) || *password != "" && rest[1] != "add" && rest[1] != "password" {
		fmt.Fprintf(stderr, "gateway xmpp: say user add NAME, user password NAME, user remove NAME or user list\n\n%s", xmppAbout)
		return cli.ExitUsage
	}
	if err := xmppUser(rest[1], rest[2:], *file, *password, stdout, stderr); err != nil {
		return cli.Fail(stderr, "xmpp user "+rest[1], err)
	}
	return cli.ExitGood
}

func xmppUser(verb string, names []string, file, password string, stdout, stderr io.Writer) error {
	users, err := config.XMPPUsers(file)
	if err != nil {
		return err
	}
	all, err := keyfile.LoadAccounts(users)
	if errors.Is(err, fs.ErrNotExist) && verb == "add" {
		all, err = server.Accounts{}, nil
	}
	if err != nil {
		return err
	}
	if verb == "list" {
		for _, name := range all.Names() {
			fmt.Fprintln(stdout, name)
		}
		return nil
	}
	name, ok := stanza.Local(names[0])
	if !ok {
		return fmt.Errorf("%q is no name of a user: letters, digits and signs, without a space or any of \" & ' / : < > @", names[0])
	}
	switch _, there := all[name]; {
	case there && verb == "add":
		return fmt.Errorf("%s is there already; gateway xmpp user password %s gives another password", name, name)
	case !there && verb != "add":
		return fmt.Errorf("there is no user %s; gateway xmpp user list shows all", name)
	case verb != "add":
	case len(all) >= server.MaxAccounts:
		return fmt.Errorf("there are %d users already, the most that a site may have", len(all))
	}
	if verb == "remove" {
		delete(all, name)
	} else {
		text, err := askPassword(password, stderr)
		if err != nil {
			return err
		}
		if all[name], err = keyfile.NewAccount(string(text)); err != nil {
			return err
		}
	}
	if err := keyfile.SaveAccounts(users, all); err != nil {
		return err
	}
	done := map[string]string{"add": "is new", "password": "has another password", "remove": "is removed"}
	fmt.Fprintf(stdout, "%s %s: %s\n", name, done[verb], users)
	return nil
}

// askPassword reads a password: the first line of a file, or typed twice.
func askPassword(file string, stderr io.Writer) ([]byte, error) {
	if file != "" {
		return passphraseIn(file)
	}
	if !cli.IsTerminal(os.Stdin) {
		return nil, errors.New("standard input is no terminal to ask for the password: say --password-file FILE")
	}
	in := bufio.NewReaderSize(os.Stdin, cli.MostPassphrase)
	text, err := cli.Typed(in, os.Stdin, stderr, "password: ")
	if err != nil {
		return nil, err
	}
	again, err := cli.Typed(in, os.Stdin, stderr, "the same again: ")
	if err == nil && !bytes.Equal(text, again) {
		err = errors.New("the two passwords differ")
	}
	return text, err
}
