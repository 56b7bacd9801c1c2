package reach

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
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

	// maxState bounds the size of their file in bytes: a server takes about 250.
	maxState = 128 << 10

	reachedFile = "reached.json"
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

// remember keeps how a server was reached now, from the network of this machine. With port 0, it was not. Other clients
// read a whole file at any time; of two that change it at once, one may be forgotten.
func remember(r reached) error {
	r.Network, r.At = currentNetwork(), time.Now().UTC()
	dir, err := StateDir()
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(loadReached(), func(other reached) bool {
		return other.Server == r.Server && other.Network == r.Network
	})
	if r.Port != 0 {
		all = append(all, r)
	}
	content, err := json.Marshal(all[max(len(all)-maxReached, 0):])
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*") // for its owner alone
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, reachedFile))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// loadReached returns all that counts, the oldest first. A file that cannot be read is none.
func loadReached() []reached {
	dir, err := stateDir()
	if err != nil {
		return nil
	}
	f, err := os.Open(filepath.Join(dir, reachedFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	var all []reached
	if err := json.NewDecoder(io.LimitReader(f, maxState)).Decode(&all); err != nil {
		return nil
	}
	now := time.Now()
	return slices.DeleteFunc(all, func(r reached) bool {
		return r.Port == 0 || r.At.After(now) || now.Sub(r.At) > reachedTime
	})
}

// stateDir returns the directory for what programs keep.
func stateDir() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "quicterm"), nil
}

// StateDir returns the directory of what is remembered, which it makes, or why nothing can be.
func StateDir() (string, error) {
	dir, err := stateDir()
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	return dir, err
}

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
