// Package websocket carries bytes in the binary messages of a WebSocket, for browsers and for networks that let only HTTPS
// through. [Open] and [Accept] return a connection as those of package net are: the carrier of package tcp runs on
// it, with TLS inside, so that a proxy or a server of pages in between sees sealed bytes.
//
// A message has at most maxMessage bytes, in both directions. A message has no meaning: where one ends, says nothing. The
// end of the WebSocket, in whatever way, reads as [io.EOF]. Close ends the connection below, without a word to the peer.
package websocket

// maxMessage bounds a message in bytes. One has a record of TLS, of 16 KiB and a bit more, if nothing in between joins
// several.
const maxMessage = 64 << 10
