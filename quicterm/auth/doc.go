// Package auth proves the identity of servers, users and clients, with the keys and files of ssh.
//
//   - A server proves that it holds its ssh host key by a TLS certificate over it, which
//     the client looks up in known_hosts.
//   - A user proves to hold a key in the account's authorized_keys, or one with a certificate by an
//     authority that is trusted for the account, by a signature over the TLS exporter of the
//     connection (RFC 5705), which is worth nothing on another one.
//   - A user of the server's machine gets a one-time token from the daemon.
//   - A client that resumes proves that it knows the secret of its attachment.
package auth
