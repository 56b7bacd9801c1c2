//go:build linux || darwin

// Package holder keeps one session: it owns the program with its terminal or pipes,
// the log of its output, and the state of its clients. A holder is a process of its own,
// which outlives the daemon that started it. Daemons reach it at a unix socket and
// relay what clients send.
//
// It promises:
//   - A client that was away gets all output since, in order, once. What has left the
//     ring because it was full is reported exactly.
//   - A program on a terminal never waits for a client that is not connected, only watches, or
//     has asked to skip. A program on pipes does, until it is hung up: none of its output is lost.
//   - The holder knows what is on the screen of a terminal (emulator.go). A client that attaches,
//     or for which the ring has lost output, gets the screen as it is. What goes wrong there costs no
//     output.
//   - The ring shrinks when the machine is short of memory, the oldest output of a terminal
//     first (pressure.go, fit).
//   - There is one writer, and those that share its role. Another client takes their place only by
//     Attach. Clients that watch change nothing (members.go tells the writers of them).
//   - A session ends when its program has and a client knows, when a limit (detached_ttl,
//     PipeTTL, ExitedTTL, hiddenTTL) is reached, or when a client kills it. The client is told why.
//
// It does not authenticate clients: the daemon does. It checks that a daemon runs as
// root or as its own account, and the proof of a client that resumes.
//
// # Goroutines
//
//	 program                                                       clients
//	+--------+ stdout, stderr  readOutput (1 or 2) --> ring --> driver, per carrier -->
//	|        |                                      gate  \--> emulator
//	|        | stdin           inputLoop <------- endpoint <-- driver, per carrier <--
//	+--------+
//	   SSH_AUTH_SOCK: package agent, which is told whose agent is behind it
//	   end: programLoop       presence: limitLoop      daemons: Serve, one per connection
//	   modes of the terminal, progress of the program: hints.loop
//
// The gate guards all state. Every goroutine and timer of a session ends before Run
// returns; Serve waits for its connections.
//
// The keys of log lines are listed in docs/operate.md.
package holder
