// Package server is the half of the daemon that talks to clients: it authenticates those that connect
// over QUIC or TCP, and relays the bytes of them and of the holders of their sessions, without
// interpreting them. It has no rights of its own: package monitor decides, signs, and reaches the
// holders. Sessions live on when the daemon ends: they belong to their holders.
//
// A connection takes this way:
//
//	unauthenticated.go  limits on connections without a login, address validation
//	conn.go             first message: Hello or Resume
//	authenticate.go     Hello to the request
//	request.go          List, Describe, Kill, Clear, Rename, Revoke, Attach
//	resume.go           Resume
//	recheck.go          whether what let a client in still does
//	relay.go            frames, until the client or the holder ends the carrier
//
// Beside it:
//
//	local.go            clients over ssh
//	attachments.go      the clients that are connected
//	path.go             the addresses of a connection, and how they and its round trips change
//	metrics.go          the counts
//	daemon.go           both halves in one process
package server
