// Package listening finds the TCP ports at which the processes of a session listen, as Linux tells by its /proc. It
// looks at what the account may see, and nowhere for long.
package listening

// MaxPorts bounds the ports that are found: more would be no news to a person, and do not fit into a notice.
const MaxPorts = 40
