// Package access decides who gets in to a daemon: which accounts, from where, by which keys, certificates and tokens,
// and whether a client that is in keeps its access.
//
//   - [Decider] asks the machine's sshd or the daemon's own settings, and reads keys in the rights of their account.
//   - [Signatures] makes each signature of a client count once.
//   - [Rights] keeps the results of checks, and what was withdrawn, over restarts of the daemon.
//
// It promises that what cannot be known is no refusal of a client that is in, and no admission of one that is not: a
// refusal is a [privsep.Withdrawn], or wraps sshd.ErrRefused; other errors say nothing. It starts no session, talks
// to no client and knows no holder.
package access
