package rights

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Protection is one restriction of the process, or says why it is not active.
type Protection struct {
	Name   string `json:"name"` // one of those below
	Active bool   `json:"active"`
	Lacks  string `json:"lacks,omitempty"` // why it is not active, in words
}

// Names of protections.
const (
	NoNewPrivileges = "no new privileges"
	NoCore          = "no core dumps"
	Files           = "only its own files (Landlock)"
	Neighbours      = "no signals to other processes (Landlock)"
	Calls           = "a filter of system calls (seccomp)"
	Memory          = "keys in memory that is not swapped"
)

// Missing names the protections that are not active, each with its reason.
func Missing(list []Protection) (missing []string) {
	for _, p := range list {
		if !p.Active {
			missing = append(missing, p.Name+": "+p.Lacks)
		}
	}
	return missing
}

// marker tells the second stage which protections the first did not get. Its value begins with the process id: a marker of
// another process does not count.
const marker = "ALDIS_RIGHTS"

// Enter is the first stage: it gives up all rights that n does not name, and executes the program again. In the second stage it
// returns the active protections. The caller has the process's first thread: otherwise the process forgets that it ends with its parent
// (PR_SET_PDEATHSIG). If it cannot keep access to the files of n, it gives up no files, so that the code that opens
// them reports why. An error means that the program cannot go on.
func Enter(n Needs) ([]Protection, error) {
	if list, ok := entered(); ok {
		return list, nil
	}
	runtime.LockOSThread() // execve(2) keeps the restrictions of this thread
	list := []Protection{
		protection(NoNewPrivileges, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)),
		protection(NoCore, noCore()),
	}
	files, neighbours := restrict(n)
	list = append(list, protection(Files, files), protection(Neighbours, neighbours))
	var said []string
	for _, p := range list {
		said = append(said, p.Lacks)
	}
	os.Setenv(marker, strconv.Itoa(os.Getpid())+"\n"+strings.Join(said, "\n"))
	err := syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	return nil, fmt.Errorf("the program cannot be executed again with fewer rights: %w", err)
}

// entered reads the first stage's result; false: this is the first stage.
func entered() (list []Protection, ok bool) {
	said := strings.Split(os.Getenv(marker), "\n")
	os.Unsetenv(marker)
	names := []string{NoNewPrivileges, NoCore, Files, Neighbours}
	if said[0] != strconv.Itoa(os.Getpid()) || len(said) != 1+len(names) {
		return nil, false
	}
	for i, name := range names {
		list = append(list, Protection{name, said[1+i] == "", said[1+i]})
	}
	return list, true
}

func protection(name string, err error) Protection {
	if err != nil {
		return Protection{Name: name, Lacks: strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	return Protection{Name: name, Active: true}
}

// noCore lowers the limit of core dumps for good. With a limit of 0 a program that the kernel pipes dumps to still gets them;
// with 1 it does not, and a file of one octet is never written (core(5)).
func noCore() error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_CORE, &now); err != nil {
		return err
	}
	now.Max = min(now.Max, 1)
	now.Cur = now.Max
	return syscall.Setrlimit(unix.RLIMIT_CORE, &now)
}
