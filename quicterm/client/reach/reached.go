package reach

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/quicterm/quicterm/migrate/netmon"
)

const (
	// reachedTime is how long it counts how a server was reached. Servers and networks change.
	reachedTime = 24 * time.Hour

	// maxReached bounds how many servers are kept.
	maxReached = 200
)

// A reached says how the daemon of a server was reached without ssh, or can be if a grant is right.
type reached struct {
	Server  string    `json:"server"` // account, name and port of sshd
	Network string    `json:"network"`
	Port    uint16    `json:"port"`
	NoUDP   bool      `json:"no_udp,omitempty"`   // by TCP, because QUIC did not work
	NoLogin bool      `json:"no_login,omitempty"` // only after a login by ssh
	At      time.Time `json:"at"`

	// Key is the fingerprint of the daemon's host key, if only ssh has brought it: a daemon that serves one account has
	// one of its own, which no known_hosts file lists. The port may be another daemon's tomorrow. Then another key is
	// no reason for an alarm, but only to go by ssh again.
	Key string `json:"key,omitempty"`

	// What a login without ssh has failed with: it is tried again when something else is there.
	Method string `json:"method,omitempty"` // by which ssh has let the user in then
	Keys   string `json:"keys,omitempty"`   // a hash of the user's keys
}

// recall returns how a server was reached from the network of this machine, if it was recently.
func recall(server string) (r reached, ok bool) {
	network := currentNetwork()
	for _, r := range loadReached() {
		if r.Server == server && r.Network == network {
			return r, true
		}
	}
	return r, false
}

// remember keeps how a server was reached now, from the network of this machine. With port 0, it
// was not.
func remember(r reached) error {
	r.Network, r.At = currentNetwork(), time.Now().UTC().Truncate(time.Second)
	name, err := reachedFile()
	if err != nil {
		return err
	}
	return changeState(name, func(content []byte) ([]byte, error) {
		all := slices.DeleteFunc(parseReached(content), func(other reached) bool {
			return other.Server == r.Server && other.Network == r.Network
		})
		if r.Port != 0 {
			all = append(all, r)
		}
		return json.Marshal(all[max(len(all)-maxReached, 0):])
	})
}

// loadReached returns all that counts, the oldest first. A file that cannot be read is none.
func loadReached() []reached {
	name, err := reachedFile()
	if err != nil {
		return nil
	}
	content, err := readState(name)
	if err != nil {
		return nil
	}
	return parseReached(content)
}

func parseReached(content []byte) []reached {
	all := []reached{}
	if err := json.Unmarshal(content, &all); err != nil {
		return []reached{}
	}
	now := time.Now()
	return slices.DeleteFunc(all, func(r reached) bool {
		return r.Port == 0 || r.At.After(now) || now.Sub(r.At) > reachedTime
	})
}

// StateDir returns the directory of what is remembered, or why nothing can be.
func StateDir() (string, error) {
	file, err := reachedFile()
	if err == nil {
		err = changeState(file, func(content []byte) ([]byte, error) { return content, nil })
	}
	return filepath.Dir(file), err
}

func reachedFile() (string, error) { return stateFile("reached.json") }

// currentNetwork names the network of this machine: the interface to the internet and its prefix
// there. Two networks may have one name.
func currentNetwork() string {
	var names []string
	for _, to := range []string{"192.0.2.1", "2001:db8::1"} { // nothing is sent there
		remote := netip.AddrPortFrom(netip.MustParseAddr(to), 443)
		if route, err := netmon.Lookup(remote, ""); err == nil {
			bits := 24
			if route.Source.Is6() {
				bits = 64
			}
			prefix, _ := route.Source.Prefix(bits)
			names = append(names, fmt.Sprintf("%s %v", route.Interface, prefix))
		}
	}
	return cmp.Or(fmt.Sprint(names), "none")
}
