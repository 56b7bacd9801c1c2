//go:build js

// Command qtweb is the client of a page: qt in WebAssembly, on terminals that the page shows, one for each tab. It runs in a
// worker, and has no other way to the network than WebSockets to where the page is from.
//
// It talks to the page in objects. Those with a tab, a number that the page chooses, are about the session in it. The page
// sends
//
//	start    once: which host to connect to (start in host.go)
//	list     true: the sessions are wanted
//	forget   true: this device shall log in no more
//	network  "changed" or "woke"
//	attach   with a tab: {session, size, follows}, its name or id; a new session if it is empty. A terminal that follows
//	         has the session's size, and one that exists keeps it; size is for a new one
//	keys     with a tab: what is typed, a string
//	size     with a tab: [columns, rows]; of a terminal that follows: for the session while it has this terminal's size, or
//	         [0, 0] to give that back
//	take     with a tab that follows: true, to give the session that size
//	shown    with a tab: how many bytes of output the terminal has taken
//	copy     with a tab: {session, files}, files of this device for the directory of the session, an array of File
//	paste    with a tab: a File, whose path on the server is wanted
//	stop     with a tab: true, to copy no more
//	leave    with a tab: true; the session continues
//
// and gets
//
//	ready      the program runs: its version
//	host       the answer to start (tell in enter.go)
//	failed     the other answer to start: why there is no host, in words
//	sessions   the answer to list: an array (describe in list.go)
//	unlisted   the other answer to list: {text, denied}, why, in words, and whether the login was refused
//	forgotten  the answer to forget: why not, in words, or nothing
//	attached   with a tab: {id, name, created} of its session
//	output     with a tab: bytes for the terminal
//	sizing     with a tab that follows: {size, own, client}: the session's size from here in the output on, and whose it is
//	link       with a tab: {state, since} of the connection; since is in milliseconds, as Date has it
//	waits      with a tab: true, the program waits for input, for some seconds already
//	ports      with a tab: an array of the ports at which processes of the session listen, if this client may forward them
//	copying    with a tab: how far copy or paste is, in words
//	copied     with a tab: {text, path, failed}, the answer to copy or paste: in words what has become of the files, and the
//	           path of what was pasted, as a shell reads it
//	ended      with a tab: {text, status}: why the session is over for this client; with the status if its program has ended
package main

import (
	"context"

	"github.com/quicterm/quicterm/quicterm/version"
)

func main() {
	p := newPage()
	p.post("ready", version.String())
	h, err := connect(context.Background(), <-p.starts, &p.network)
	if err != nil {
		p.post("failed", err.Error())
		select {} // the page may still send something
	}
	p.post("host", h.tell())
	for do := range p.requests {
		go do(h)
	}
}
