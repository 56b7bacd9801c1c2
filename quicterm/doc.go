// Package quicterm is a terminal session that stays: a [Client] opens it on a
// [Server], over QUIC, and from then on no change of network, no outage and no
// restart of either ends it or loses a byte of it.
//
// A client connects to a server and attaches to a session, new or not:
//
//	client := quicterm.NewClient(quicterm.ClientConfig{...})
//	s, err := client.Attach(ctx, &wire.Attach{PTY: true, ...}, quicterm.Streams{...})
//	...
//	go io.Copy(s, os.Stdin)
//	status, err := s.Run(ctx)
//
// [Session.Run] keeps the session connected over whatever the network does and
// returns when the program has ended, somebody else took over, or the session
// is gone.
//
// The protocol is specified in wire/SPEC.md.
package quicterm
