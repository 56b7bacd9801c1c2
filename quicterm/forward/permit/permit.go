// Package permit says what a login may forward: to which targets the server connects for it, and where it listens. The
// rules are those of sshd and of the options of a key. The monitor combines them, and `qtd forward` obeys them. It is
// pure: it opens no connection and resolves no name.
package permit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	// Command is the hidden command of qtd that forwards, as the program of a side pipe.
	Command = "forward"

	// Variable is the variable of the environment in which it gets its rules.
	Variable = "QUICTERM_FORWARD"
)

// MaxBytes bounds the rules of a login, as they are encoded: one string of an environment has 128 KiB in Linux.
const MaxBytes = 64 << 10

// Rules say what a login may forward. Without any, it may forward all, and listeners are reached from the server alone.
type Rules struct {
	// These refuse all of a kind: connections and listeners by TCP, and by unix sockets.
	NoDial, NoListen, NoDialSocket, NoListenSocket bool `json:",omitempty"`

	NoAgent bool `json:",omitempty"` // nor the ssh agent of the client

	// Of each list, one pattern must match: a key and sshd_config have one each. A list that is empty matches nothing.
	Dials, Listens []List `json:",omitempty"`

	// Gateway is GatewayPorts: "" for listeners that are reached from the server alone, "yes" for listeners that
	// everybody reaches, and "clientspecified".
	Gateway string `json:",omitempty"`

	// Mask is StreamLocalBindMask, zero for the usual one, and Unlink StreamLocalBindUnlink.
	Mask   fs.FileMode `json:",omitempty"`
	Unlink bool        `json:",omitempty"`
}

// A List has patterns in the form host:port.
type List []string

// None refuses everything.
func None() Rules {
	return Rules{NoDial: true, NoListen: true, NoDialSocket: true, NoListenSocket: true, NoAgent: true}
}

// Refuse takes everything from rules that permits connections or listeners.
func (r *Rules) Refuse() {
	r.NoDial, r.NoListen, r.NoDialSocket, r.NoListenSocket = true, true, true, true
}

// Nothing reports whether the rules refuse everything.
func (r *Rules) Nothing() bool {
	return r.NoDial && r.NoListen && r.NoDialSocket && r.NoListenSocket && r.NoAgent
}

// And returns what is left of rules by others. Gateway and the modes of sockets are those of the others.
func (r Rules) And(other Rules) Rules {
	other.NoDial = other.NoDial || r.NoDial
	other.NoListen = other.NoListen || r.NoListen
	other.NoDialSocket = other.NoDialSocket || r.NoDialSocket
	other.NoListenSocket = other.NoListenSocket || r.NoListenSocket
	other.NoAgent = other.NoAgent || r.NoAgent
	other.Dials = slices.Concat(r.Dials, other.Dials)
	other.Listens = slices.Concat(r.Listens, other.Listens)
	return other
}

// Encode returns the rules as a text.
func (r Rules) Encode() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // there is nothing in it that cannot be encoded
	}
	return string(text)
}

// Decode returns the rules of a text.
func Decode(text string) (Rules, error) {
	var r Rules
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || d.More() || text[0] != '{' || len(text) > MaxBytes {
		return None(), errors.New("there are no rules for what may be forwarded")
	}
	return r, nil
}

// Check returns why a pattern is malformed, or nil. Without a host, a pattern of listeners is for all hosts.
func Check(pattern string, listens bool) error {
	_, port, err := split(pattern, listens)
	if err != nil {
		return err
	}
	if n, err := strconv.ParseUint(port, 10, 16); port != "*" && (err != nil || n == 0) {
		return errMalformed
	}
	return nil
}

var errMalformed = errors.New("is malformed")

// split returns the host and the port of a pattern.
func split(pattern string, listens bool) (host, port string, err error) {
	i := strings.LastIndexByte(pattern, ':')
	switch {
	case i < 0 && listens:
		return "*", pattern, nil
	case i < 0, i == 0 && !listens, strings.Contains(pattern, "/"):
		return "", "", errMalformed
	}
	host = pattern[:i]
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if host, ok = strings.CutSuffix(inner, "]"); !ok {
			return "", "", errMalformed
		}
	} else if strings.Contains(host, ":") { // an address of IPv6 has brackets
		return "", "", errMalformed
	}
	return host, pattern[i+1:], nil
}

// A RefusedError is the error of what the rules do not permit.
type RefusedError struct{ What string }

func (e *RefusedError) Error() string {
	return e.What + " is not permitted: by an option of the key, or by the server's sshd_config"
}

// Dial returns why a connection to a target is refused, or nil. The name counts as it was given: sshd resolves none.
func (r *Rules) Dial(host string, port uint16) error {
	matches := func(pattern string) bool {
		h, p, err := split(pattern, false)
		return err == nil && (p == "*" || p == strconv.Itoa(int(port))) && (h == "*" || h == host)
	}
	if r.NoDial || !all(r.Dials, matches) {
		return &RefusedError{"a connection to " + Join(host, port)}
	}
	return nil
}

// Listen returns why a listener is refused, or nil.
func (r *Rules) Listen(host string, port uint16) error {
	matches := func(pattern string) bool {
		h, p, err := split(pattern, true)
		return err == nil && (p == "*" || p == strconv.Itoa(int(port))) && glob(h, strings.ToLower(host))
	}
	if r.NoListen || !all(r.Listens, matches) {
		return &RefusedError{"a listener at " + Join(host, port)}
	}
	return nil
}

// Socket returns why a connection to a unix socket, or a listener at one, is refused, or nil. What refuses the same by
// TCP refuses it, as with sshd. Patterns name no sockets: where there are some, they refuse all sockets. sshd lets who has
// permitlisten listen at any socket.
func (r *Rules) Socket(listens bool, name string) error {
	dials := !r.NoDial && !r.NoDialSocket && len(r.Dials) == 0
	if listens && (r.NoListen || r.NoListenSocket || len(r.Listens) > 0) || !listens && !dials {
		return &RefusedError{"the unix socket " + name}
	}
	return nil
}

// Agent returns why the agent of the client is refused, or nil.
func (r Rules) Agent() error {
	if r.NoAgent {
		return &RefusedError{"an ssh agent"}
	}
	return nil
}

// Bind returns the hosts at which a listener is opened for which a client has asked: "" for all addresses.
func (r *Rules) Bind(host string) []string {
	loopback := []string{"127.0.0.1", "::1"}
	switch {
	case r.Gateway == "yes", r.Gateway != "" && (host == "" || host == "*"):
		return []string{""}
	case host == "127.0.0.1" || host == "::1" || r.Gateway != "" && host != "localhost":
		return []string{host}
	}
	return loopback
}

// all reports whether a pattern of each list matches.
func all(lists []List, matches func(string) bool) bool {
	return !slices.ContainsFunc(lists, func(l List) bool { return !slices.ContainsFunc(l, matches) })
}

// glob matches as sshd does: * and ? are the only special characters.
func glob(pattern, name string) bool {
	quote := strings.NewReplacer(`\`, `\\`, "[", `\[`, "/", ":") // a name has no slash: * matches all of it
	ok, err := path.Match(quote.Replace(pattern), strings.ReplaceAll(name, "/", ":"))
	return ok && err == nil
}

// Join returns a host and a port as people write them.
func Join(host string, port uint16) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s:%d", host, port)
}
