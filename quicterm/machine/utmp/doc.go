// Package utmp writes the system's records of logins, as sshd does: utmp, which who(1) reads, wtmp, which
// last(1) reads, and lastlog. The formats are those of the C library of GNU, see utmp(5) and lastlog(5).
//
//	utmp     one record for each login: it is replaced at the end, and by the next login on the terminal
//	wtmp     a record for each beginning and each end
//	lastlog  the last login of each account, in the place of its user id
//
// It promises:
//   - A file that does not exist is not made, and one that has records of another size is left alone.
//   - Other programs are locked out while a record is written, for which it waits a bounded time.
//   - The end of a login is recorded once, whoever records it, if there is a utmp.
//
// It writes nothing on systems other than Linux, and on processors other than amd64 and arm64.
package utmp

import "net/netip"

// A Recorder records logins, and their ends when these come. Any goroutine may use it.
type Recorder struct {
	Files  *Files
	Within func(write func() error) error // calls write where the files can be written, and returns its error
	Warn   func(text string, args ...any) // says why something is not recorded
}

// Files are the paths of the files. They are not followed if they are links.
type Files struct{ Utmp, Wtmp, Lastlog string }

// System returns the files of the system.
func System() *Files {
	return &Files{Utmp: "/var/run/utmp", Wtmp: "/var/log/wtmp", Lastlog: "/var/log/lastlog"}
}

// A Login is a program on a terminal.
type Login struct {
	Terminal uint32 // n of /dev/pts/n
	Process  int    // id of its first process

	// The fields below are empty in what Living returns.
	Account string
	UID     uint32
	Client  netip.Addr // invalid if it is not known

	halfEnded bool // End has written to utmp, but not to wtmp
}
