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
// Beside it:
//
//	attachments.go      the clients that are connected
//	census.go           what all sessions tell, and their ends
//	control.go          status, metrics and drain, for operators
//
// docs/operate.md lists the keys of the log's lines, here and in a holder, and the events.
package server
