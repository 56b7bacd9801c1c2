// Package processes reaches the holders of sessions: [Holders] says what a monitor asks of them, and [Local] are those
// of this machine, each a process with the rights of its account and a unix socket. It decides nothing about who gets
// in.
package processes
