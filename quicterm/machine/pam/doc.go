// Package pam starts programs within sessions that PAM opens for an account, as those of ssh are: with
// its limits, its environment, its mounts, and a session of the login manager. It needs no cgo: su(1) of
// util-linux does the work, and waits as root until the program ends.
//
//	daemon (root)
//	   \-- qtd open-login (root) ......... starts su, drops its rights, becomes qtd hold
//	         \-- su (root) ............... opens the session, waits, closes it
//	               \-- qtd run-login ..... with the account's rights, becomes the program
//
// It promises:
//   - No byte that a client or an account has chosen reaches a process of root, except the name of the
//     account: su has an empty environment, no input, and the name as its only argument that differs. What to run
//     comes over a socket from the holder to run-login, both of which have the account's rights.
//   - The holder is the parent of su. So it learns the program's status, whatever becomes of the daemon.
//   - The limits of the session hold for the program, and not for the holder.
//   - PAM may refuse the account. Then nothing was started, and [Session.Await] tells what PAM said.
//
// login(1) is not used: it ends with status 0 however the shell ends, takes no command, and hangs the
// terminal up that the holder reads.
package pam

// OpenCommand and RunCommand are the arguments that make the daemon's executable what [Open] and [Run]
// are the main functions of. SessionFlag gives a holder its session.
const (
	OpenCommand = "open-login"
	RunCommand  = "run-login"
	SessionFlag = "--login"
)

// An Unusable says why PAM cannot open sessions, although it is there. It holds until the system is changed.
type Unusable string

func (u Unusable) Error() string { return string(u) }

// An Absent says why there is nothing that could ask PAM for sessions. It holds until the system is changed.
type Absent string

func (a Absent) Error() string { return string(a) }

// A Program is what runs in a session.
type Program struct {
	Path string
	Argv []string
	Env  []string // of which what PAM has set takes the place, except for names that are the session's
	Dir  string   // / if it cannot be entered

	// Terminal makes the program's standard input its controlling terminal.
	Terminal bool
}
