package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/pipe"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// options are those of ssh that a carrier needs. Everything else is as the user has configured it.
var options = []string{
	"-T", "-x", "-a", "-e", "none",
	"-o", "RemoteCommand=none", "-o", "PermitLocalCommand=no", "-o", "Tunnel=no",
	"-o", "ClearAllForwardings=yes", // they would end with the carrier, and fail with the next one
	"-o", "ControlMaster=no", // others would end with the carrier; a master that runs is used
	"-o", "LogLevel=VERBOSE", // tells when the user is logged in
}

// connectTimeout bounds the time in which a server has to answer. Through a proxy, that has all
// that a jump host asks the user in it.
const connectTimeout = "ConnectTimeout=15"

// noMaster makes ssh log in itself, instead of using another ssh's connection.
const noMaster = "ControlPath=none"

// SSH makes carriers by the ssh program: it logs in as it always does, and runs qtd on the server, whose standard
// streams are the carrier. Several goroutines may use it. After its use, Close ends all carriers.
type SSH struct {
	Host string            // as the user named it, for messages
	Name string            // as ssh's configuration has it; empty for any
	Args []string          // of ssh, which say how to reach the host: options and, last, the host
	Pipe bool              // a proxy leads there, to which ssh talks by a pipe
	Say  func(line string) // shows what ssh says while it may ask the user something
	Log  *slog.Logger

	// Addresses returns those of sshd. It is nil if ssh does not connect to them itself, but through a proxy or by
	// another ssh.
	Addresses func(ctx context.Context) ([]netip.AddrPort, error)

	// Dialog opens a terminal for an ssh process that may ask the user something. If it is nil or
	// fails, ssh has none.
	Dialog func() (Dialog, error)

	wait, silence time.Duration // in place of grantTime, and of silentTime and batchTime, for tests

	mu       sync.Mutex
	port     uint16        // of the daemon, 0 if there was no grant yet
	key      ssh.PublicKey // of the daemon
	needs    string        // what the last login without the user has lacked
	attempts int           // logins without the user
	logins   map[*process]bool
	closed   bool
}

// Dial returns a carrier. Its first Write starts the login that leads to it, and does not wait for
// that: it may block only if it writes very much. If there is no grant, Read returns a [StartError],
// which says in one line what is wrong.
//
// If ask is false, ssh asks the user for nothing, and fails if it had to.
func (s *SSH) Dial(_ context.Context, ask bool) (carrier.Carrier, error) {
	program, err := exec.LookPath("ssh")
	if err != nil {
		return nil, ErrNoSSH
	}
	args := options
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.logins == nil {
		s.logins = make(map[*process]bool)
	}
	if !ask || !s.Pipe {
		args = append(args[:len(args):len(args)], "-o", connectTimeout)
	}
	if !ask {
		args = append(args[:len(args):len(args)], "-o", "BatchMode=yes")
		if s.attempts%2 == 1 { // the master may be one whose connection is dead
			args = append(args, "-o", noMaster)
		}
		s.attempts++
	}
	args = append(args[:len(args):len(args)], s.Args...)
	p := newProcess(s, ask, append([]string{program}, args...))
	s.logins[p] = true
	return pipe.New(p), nil
}

// Close ends all carriers and waits for their processes.
func (s *SSH) Close() {
	s.mu.Lock()
	s.closed = true
	all := slices.Collect(maps.Keys(s.logins))
	s.mu.Unlock()
	for _, l := range all {
		l.Close()
	}
	for _, l := range all {
		<-l.ended
	}
}

// Port returns the port of the daemon, by UDP and TCP. It is 0 before the first login.
func (s *SSH) Port() uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.port
}

// Key returns the host key that the daemon has by its last grant, or nil before the first login.
func (s *SSH) Key() ssh.PublicKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// CheckHost accepts the host key that the daemon has by its last grant.
func (s *SSH) CheckHost(key ssh.PublicKey) error {
	if granted := s.Key(); granted == nil || !bytes.Equal(key.Marshal(), granted.Marshal()) {
		return errors.New("the daemon has another key than its grant says")
	}
	return nil
}

// Needs says what the last login that was not to ask the user has needed of him, or nothing.
func (s *SSH) Needs() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.needs
}

// learn takes what a grant says of the daemon. If ask is true, the terminal is not the program's yet,
// and the user is shown the grant's warning.
func (s *SSH) learn(g *wire.Grant, ask bool) error {
	if g.Protocol != "" && g.Protocol != wire.ALPN {
		return &VersionError{Host: s.Host, Software: g.Software}
	}
	address, key, err := parse(g)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Host, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.port, s.key, s.needs = address.Port(), key, ""
	if ask && g.Warning != "" && s.Say != nil {
		s.Say("qt: " + s.Host + ": " + g.Warning)
	}
	return nil
}
