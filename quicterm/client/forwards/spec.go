// Package forwards is the client's end of forwarding: it listens, opens the side pipe when a connection first needs it,
// and asks the server for the connections, as -L, -R and -D and ssh's configuration say.
package forwards

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/quicterm/quicterm/quicterm/forward/permit"
)

// A Kind is what a forward does.
type Kind byte

const (
	Local   Kind = 'L' // this machine listens, the server connects
	Remote  Kind = 'R' // the server listens, this machine connects
	Dynamic Kind = 'D' // this machine listens, and each connection says by SOCKS where the server connects to
	Agent   Kind = 'A' // the server listens for its sessions, this machine connects to the ssh agent
)

// there reports whether the server listens.
func (k Kind) there() bool { return k == Remote || k == Agent }

// An Address is a host and port, or the path of a unix socket.
type Address struct {
	Host string
	Port uint16
	Path string
	UDP  bool // in place of TCP
}

func (a Address) String() string {
	if a.Path != "" {
		return a.Path
	}
	s := permit.Join(a.Host, a.Port)
	if a.UDP {
		s = udpPrefix + s
	}
	return s
}

// udpPrefix is in front of a forward of datagrams.
const udpPrefix = "udp/"

// network returns the arguments of a dialer or a listener.
func (a Address) network() (network, address string) {
	if a.Path != "" {
		return "unix", a.Path
	}
	host := a.Host
	if host == "*" {
		host = ""
	}
	network = "tcp"
	if a.UDP {
		network = "udp"
	}
	return network, net.JoinHostPort(host, strconv.Itoa(int(a.Port)))
}

// A Spec is a forward.
type Spec struct {
	Kind   Kind
	Listen Address // its host is localhost if none was given
	Target Address // zero if each connection says where it goes: of Dynamic, and of Remote with a port alone

	offer *offer // of an Agent
}

var errForm = errors.New("write it as [bind:]port:host:port, with the path of a unix socket in the place of either end")

// Parse returns a forward that is written as for ssh.
func Parse(kind Kind, text string) (Spec, error) {
	spec := Spec{Kind: kind}
	addresses, udp := strings.CutPrefix(text, udpPrefix)
	parts, err := split(addresses)
	fail := func(err error) (Spec, error) {
		if udp && err == errForm {
			err = errors.New("write it as udp/[bind:]port:host:port")
		}
		return spec, fmt.Errorf("-%c %s: %w", kind, text, err)
	}
	switch {
	case err != nil:
		return fail(err)
	case udp && kind != Local:
		return fail(errors.New("UDP is forwarded by -L alone"))
	case udp && slices.ContainsFunc(parts, isPath):
		return fail(errForm)
	}
	dynamic := kind == Dynamic || kind == Remote && len(parts) <= 2 && !isPath(parts[0]) && !isPath(parts[len(parts)-1])
	if dynamic {
		if len(parts) > 2 {
			return fail(errors.New("write it as [bind:]port"))
		}
		spec.Listen, err = address(parts, true)
	} else {
		n := 2 // parts of the target
		if isPath(parts[len(parts)-1]) {
			n = 1
		}
		if len(parts) <= n {
			return fail(errForm)
		}
		spec.Listen, err = address(parts[:len(parts)-n], true)
		if err == nil {
			spec.Target, err = address(parts[len(parts)-n:], false)
		}
	}
	if err == nil && spec.Listen.Port == 0 && spec.Listen.Path == "" && kind != Remote {
		err = errors.New("a port is a number from 1 to 65535")
	}
	if err != nil {
		return fail(err)
	}
	spec.Listen.UDP, spec.Target.UDP = udp, udp
	return spec, nil
}

func isPath(part string) bool { return strings.Contains(part, "/") }

// split splits at colons that are not within brackets.
func split(text string) (parts []string, err error) {
	for text != "" {
		part := ""
		if inner, ok := strings.CutPrefix(text, "["); ok {
			part, text, ok = strings.Cut(inner, "]")
			if !ok || text != "" && text[0] != ':' {
				return nil, errForm
			}
			parts = append(parts, part)
			text = strings.TrimPrefix(text, ":")
			continue
		}
		part, rest, more := strings.Cut(text, ":")
		parts = append(parts, part)
		if more && rest == "" {
			return nil, errForm
		}
		text = rest
	}
	if len(parts) == 0 || len(parts) > 4 {
		return nil, errForm
	}
	return parts, nil
}

// address returns the address of one or two parts. Without a host, it is localhost.
func address(parts []string, listens bool) (Address, error) {
	last := parts[len(parts)-1]
	switch {
	case len(parts) == 1 && isPath(last):
		return Address{Path: last}, nil
	case len(parts) > 2, !listens && (len(parts) != 2 || parts[0] == ""):
		return Address{}, errForm
	}
	a := Address{Host: "localhost"}
	if len(parts) == 2 {
		if a.Host = parts[0]; a.Host == "" {
			a.Host = "*"
		}
	}
	port, err := strconv.ParseUint(last, 10, 16)
	if err != nil || port == 0 && !listens {
		return a, errors.New("a port is a number from 1 to 65535")
	}
	a.Port = uint16(port)
	return a, nil
}
