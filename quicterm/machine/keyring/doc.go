// Package keyring gives processes a session keyring of their own (session-keyring(7)). Without one, each process
// that a daemon starts possesses the keys of the login that started the daemon, whatever its account.
package keyring
