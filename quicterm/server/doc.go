// Package server is the daemon: it authenticates clients that connect over QUIC or TCP,
// finds or starts the holder of the session that a client asks for, and relays the
// bytes of both, without interpreting them. Sessions live on when the daemon ends:
// they belong to their holders.
//
// A connection takes this way:
//
//	grants.go, local.go the socket for processes of this machine: grants, and clients over ssh
//	unauthenticated.go  limits on connections without a login, address validation
//	conn.go             first message: Hello or Resume
//	authenticate.go     Hello to the request
//	request.go          List, Kill, Attach
//	resume.go           Resume
//	rights.go           whether what let a client in still does
//	withdrawals.go      what is known to do so no more
//	revoke.go           Revoke
//	find.go, create.go  the session that an Attach names
//	relay.go            frames, until the client or the holder ends the carrier
//
// # Log
//
// Each key of a log line has one meaning, here and in a holder:
//
//	session     name of a session
//	id          first 8 hexadecimal digits of a session's id
//	account     name of an account
//	uid         number of an account
//	pid         number of a process
//	client      address and port of a client, or "ssh"; account@address:port after its login,
//	            without the port in a holder
//	role        of a client in a session, as a number: see wire.Role
//	proof       what authenticated a client: "token", "ssh", or the fingerprint of its key
//	software    name and version of a client
//	address     address and port that the daemon listens on
//	protocol    "udp" or "tcp"
//	serves      account that the daemon serves, or "all accounts"
//	file        path of a file
//	signal      name of a signal
//	status      exit status of a program
//	frames      number of frames
//	bytes       number of bytes
//	stack       stack of a goroutine that panicked
//	suppressed  number of lines before this one that were not logged
//	error       an error
//	reason      why something happens, in words
package server
