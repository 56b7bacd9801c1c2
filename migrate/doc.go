// Package migrate decides how a client keeps in touch with its server: when a
// path is believed to work, when it is in doubt, over which interfaces and to
// which addresses to dial anew then, and which connection to keep. It is a pure
// machine: it has no socket, no goroutine and no clock, only events that come in
// and actions that go out.
package migrate
