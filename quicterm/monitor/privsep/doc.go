// Package privsep lets the two halves of root's daemon on Linux be two processes, as in OpenSSH's privilege separation.
// It has the calls of both, and decides nothing. [Calls] is their table.
//
// The process without rights, a [Process] to its monitor, is started with a socket to it, and has a [Remote] at the
// other end. It may be taken over: the monitor's end bounds what it sends and how many calls it makes, takes no
// descriptor from it, ends it when it does not read or answer, and makes its texts printable.
//
// The process may end at any time: it is started again, with the same sockets and keys. Clients that type notice within
// a round trip, by a stateless reset, and resume.
//
// On other systems both halves are in one process, and [Calls] are calls of functions.
//
// By file, each uses those before it: messages.go, encoding.go and frames_linux.go say what travels, calls.go and
// table.go which calls there are, channel_linux.go how one is answered; host.go, process_linux.go, start_linux.go and
// network_linux.go are the monitor's end, and remote_linux.go is the other one.
package privsep
