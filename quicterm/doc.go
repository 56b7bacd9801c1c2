// Package quicterm is the overview of a terminal session that survives changes of network,
// outages and restarts. The code is in the packages below it:
//
//   - [client] opens sessions on a server and keeps them connected; [terminal] shows one.
//   - [monitor] decides who gets in, and starts and finds the holders of sessions.
//   - [server] talks to clients, and connects those that monitor lets in with their holders.
//   - [holder] owns the program of one session, in a process of its own.
//
// # The way of a key
//
// Type.method names are as in the code; names that begin with a small letter are not exported.
// Between the processes, a frame travels on the stream of a carrier (here). Only where the path loses packets, and all
// unacknowledged frames fit into one packet, they travel as datagrams, as drawn below.
//
//	qt      1 read      terminal.keyboard.read       raw bytes of the terminal
//	                    terminal.escapeFilter.filter takes out the escapes, such as ~.
//	                    terminal.keyboard.send       one pass of the keys: log, draw, send
//	        2 log       client.Session.TryWrite      one frame, or more of over 16 KiB
//	                    buffer.Ring.Append           gives it its number and checksum, once
//	                    session.Endpoint.Appended    the log has grown
//	            draw    terminal.painter.repaint     draws what the key will show
//	        3 schedule  client.Session.Flush
//	                    driver.Driver.Wake           wakes only the lane that is due, which it
//	                    session.Endpoint.SendTime    asks the endpoint for
//	        4 send      driver.Driver.writeStream
//	                    session.Endpoint.Stream      the frames that were not sent, and an ack if it is due
//	                    quic.Conn.Write              QUIC repeats what is lost
//	                          |
//	                       network
//	                          |
//	qtd     5 relay     server.conn.relay
//	                    server.copyStream            copies, parses nothing
//	                          |
//	                     unix sockets
//	                          |
//	holder  6 receive   driver.Driver.readStream     parses the frames, checks the checksums
//	                    session.Endpoint.Receive     handles acks, drops duplicates
//	                    buffer.ReorderWindow.Offer   reorder window: keeps frames that come early
//	                    session.Endpoint.deliver     appends them to the consumer's queue, in order
//	        7 input     holder.Holder.inputLoop      takes one frame (session.Endpoint.Take)
//	                    holder.Holder.give           writes it to the terminal of the program
//	                    session.Endpoint.Consume     allows the sender to forget it
//
// # The way of its echo
//
// The terminal's line discipline or the program itself answers:
//
//	holder  1 read      holder.clients.wait          waits while enough output is on its way to
//	                                                 a connected client: Ctrl-C stays fast
//	                    holder.Holder.readOutput     reads the output of the program
//	        2 log       holder.Holder.appendLocked
//	                    buffer.Ring.Append           if the ring is full, the oldest frames leave
//	        3 schedule  session.Endpoint.Appended    as 3 above, for the client that receives
//	        4 send      session.Endpoint.Stream      as 4 above; with the ack of the key
//	                    holder.hints.noteLocked      and with what the kernel knows of the terminal
//	qtd     5 relay     server.copyStream
//	qt      6 receive   session.Endpoint.Receive     as 6 above; the ack may wait up to 600 ms
//	                                                 for later keys (session.Config.DelayAcks)
//	        7 output    client.Session.deliver       takes all frames that have arrived
//	                    client.Session.writeOutput   one write for all
//	                    client.hints.pop             what the kernel knows, in its place
//	        8 show      terminal.display.Write       puts our own text between control sequences
//	                    terminal.painter.show        erases before the output what it has drawn
//
// # Where packets are lost
//
// The same stages by datagrams: each one has all unacknowledged frames, so that any that arrives is enough.
//
//	4 send      driver.Driver.writeDatagrams, session.Endpoint.Datagram, quic.Conn.SendDatagram
//	            as many copies within a round trip as the loss needs, then repeated until acknowledged
//	5 relay     server.copyDatagrams, unixsock.Conn.SendDatagram
//	6 receive   driver.Driver.readDatagrams
//
// # Beside the data
//
// The session's gate (package gate) is one mutex for the ring, the endpoint and the driver of an end. Outside of it,
// client.roamer reports what happens to the paths to migrate.Manager, which decides when to dial which candidate and
// when to close a carrier. A new carrier begins with a proof (server.conn.resume, holder.Holder.resumeLocked) and
// continues where the acks say.
//
// The protocol is specified in wire/SPEC.md.
//
// [client]: https://pkg.go.dev/github.com/quicterm/quicterm/quicterm/client
// [terminal]: https://pkg.go.dev/github.com/quicterm/quicterm/quicterm/terminal
// [monitor]: https://pkg.go.dev/github.com/quicterm/quicterm/quicterm/monitor
// [server]: https://pkg.go.dev/github.com/quicterm/quicterm/quicterm/server
// [holder]: https://pkg.go.dev/github.com/quicterm/quicterm/quicterm/holder
package quicterm
