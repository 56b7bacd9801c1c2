// Package auth proves who is who, with what people have for ssh.
//
// A server shows that it holds its ssh host key by a TLS certificate over it,
// which the client looks up in known_hosts. A user shows that they hold a key of
// the account's authorized_keys by signing the TLS exporter of the connection
// (RFC 5705), so that the signature is worth nothing on another. On the machine
// itself a daemon gives out tickets, each good once and for a minute. A client
// that comes back proves by a secret that it is the one that the session knows.
package auth
