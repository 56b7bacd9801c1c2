// Package netmon reports how packets leave this machine, and when that may have changed. It only asks the operating
// system: it sends no packet, and does not know whether a route leads to its destination.
//
//   - [Watch] reports changes of the network, and wake-ups from sleep.
//   - [Lookup] returns the interface and the local address that packets to an
//     address use.
//   - [Interfaces] lists the interfaces that may lead to another network.
//   - [Bind] binds a socket to an interface.
package netmon
