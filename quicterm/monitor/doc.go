// Package monitor is the half of the daemon that has its rights: it lets clients in as package access decides, signs
// with the host keys, and starts and reaches the holders of sessions. The other half, package server, talks
// to clients: QUIC, TLS, TCP and the messages on them. Of root's daemon on Linux that is a process of
// its own, without rights, as in OpenSSH's privilege separation; elsewhere both are in one process, and
// the server calls the methods of a [Monitor] directly.
//
//	clients      network process              monitor (root)                holders
//	        QUIC  no files, no programs,        host keys, accounts, sshd's   one a session,
//	       <---> no rights; package      <---> policy, tokens, logins,  <---> with the rights of
//	        TCP   server                 calls  sockets                       its account
//	                  ^                                                        ^
//	                  +------------ bytes of sessions, by descriptors ---------+
//
// Who has what:
//
//   - The network process has the connections of clients, their TLS keys, the keys of TLS tickets and
//     of QUIC's resets, the limits of clients without a login, the clients that are attached, and a
//     descriptor to the holder of each. It looks at first messages, decodes what clients send, and has
//     the timers that look at logins again.
//   - The monitor has the private host keys, the tokens, what each login was allowed, what is known of
//     lost rights, the limits of accounts, the sockets that it listens on, the lock, the sockets for grants
//     and for operators, and all that starts processes: holders, readers of authorized_keys, sshd -T.
//
// A taken-over network process has the sessions that it relays, sees the logins that come while it
// is taken over, can make the daemon deaf, and can send UDP packets from the daemon's ports to any
// address. docs/security.md lists what else is not held. It gets nothing else:
//
//   - [Monitor.Sign] signs a handshake of a TLS 1.3 server, and nothing else.
//   - [Monitor.Prove] checks the user's signature itself. A signature counts once.
//   - All that a login may do is asked with its id, of 16 random bytes, and the monitor decides from what
//     it has verified then. Requests that change something end 40 s after the proof.
//   - A holder trusts the daemon. So it is the monitor that connects, tells the rights of the login,
//     sends the client's request and reads the answer: then the connection is a carrier of frames, on
//     which a holder takes no request, and only then its descriptor is handed over. [Monitor.Resume]
//     passes on one message of fixed size, whose proof the holder checks.
//   - The monitor keeps a descriptor of each such connection. It ends the connection when the network
//     process says that the client has gone, and when the client has lost its access: if the network
//     process does not ask for that, the monitor looks itself.
//
// Package privsep has the calls between the two, and how they travel; package access decides who gets in, package keys
// has the secret keys, package ports opens the sockets, and package processes reaches the holders.
//
// What is parsed with the daemon's rights: these calls, as bounded CBOR; the public keys and the
// signature of a login, as OpenSSH's monitor does; the message of a process of this machine that asks
// for a grant (1 KiB); and answers of holders and of readers of keys, which are bounded and of the
// account. No message of a client is, and no file of an account.
//
// By file:
//
//	grants.go                  the socket for processes of this machine: grants, and clients over ssh
//	login.go                   Offer, Prove, Redeem: which keys an account accepts, and who has proven one
//	requests.go                List, Describe, Pass, Revoke, Attach, Resume
//	recheck.go                 asks whether what let a client in still does, and ends what it let in if not
//	sessions.go                finds, asks, follows and counts sessions: census.go, ask.go, find.go
//	create.go                  the session that an Attach names
//	control.go, operator.go    status, metrics, drain, end and revoke, for operators
//	network.go                 the table of what the network half may ask
//
// docs/operate.md lists the keys of the log's lines, here and in a holder, and the events.
package monitor
