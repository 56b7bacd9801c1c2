//go:build linux || darwin

package quicterm

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A sessionError is one that a client may act on.
type sessionError struct {
	code wire.Code
	text string
}

func (e *sessionError) Error() string { return e.text }

// An entry is a session that was found.
type entry struct {
	id    wire.SessionID
	path  string // of the holder's socket
	state wire.State
}

// maxSockets is how many sockets of an account are looked at: it could make any
// number of them.
const maxSockets = 2000

// socketPaths returns the sockets of the holders of an account, by session.
func (s *Server) socketPaths(uid uint32) map[wire.SessionID]string {
	paths := make(map[wire.SessionID]string)
	for _, dir := range s.base.Dirs(uid) {
		files, err := os.ReadDir(dir)
		if err != nil {
			s.log.Warn("sessions", "error", err)
			continue
		}
		for _, f := range files {
			if len(paths) >= maxSockets {
				s.log.Warn("too many sockets: not all sessions can be found", "account", uid)
				break
			}
			if id, ok := holder.ParseSocketName(f.Name()); ok {
				paths[id] = filepath.Join(dir, f.Name())
			}
		}
	}
	return paths
}

// sessions returns the sessions of an account that are visible to a client, the
// latest to change its phase first. Holders that do not answer are left out.
func (s *Server) sessions(uid uint32, open *wire.Open) []entry {
	return visible(s.ask(uid, open, s.socketPaths(uid)))
}

func visible(entries []entry) []entry {
	return slices.DeleteFunc(entries, func(e entry) bool { return !e.state.Visible })
}

// maxAsks is how many holders are asked at once.
const maxAsks = 64

// ask asks the holders at some sockets for their state.
func (s *Server) ask(uid uint32, open *wire.Open, paths map[wire.SessionID]string) []entry {
	query, err := wire.New(&wire.Query{})
	if err != nil {
		panic(err) // it is always the same
	}
	var mu sync.Mutex
	var entries []entry
	var wg sync.WaitGroup
	room := make(chan struct{}, maxAsks)
	for id, path := range paths {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			e := entry{id: id, path: path}
			answer, err := holder.Ask(path, uid, open, query)
			if err == nil {
				err = answer.Decode(&e.state)
			}
			if err != nil {
				s.log.Debug("holder does not answer", "session", id.String(), "error", err)
				if errors.Is(err, syscall.ECONNREFUSED) {
					os.Remove(path) // nobody has listened since a crash
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			entries = append(entries, e)
		})
	}
	wg.Wait()
	slices.SortFunc(entries, func(a, b entry) int {
		if a.state.Since != b.state.Since {
			return int(max(-1, min(1, b.state.Since-a.state.Since)))
		}
		return strings.Compare(a.id.String(), b.id.String())
	})
	return entries
}

// minIDPrefix is how much of an id names a session at least.
const minIDPrefix = 4

// find returns the session of the given name or id or, without a name, the
// latest that is detached.
func (s *Server) find(uid uint32, open *wire.Open, name string) (*entry, error) {
	paths := s.socketPaths(uid)
	if id, err := wire.ParseSessionID(name); err == nil { // no other can be meant
		maps.DeleteFunc(paths, func(other wire.SessionID, _ string) bool { return other != id })
	}
	return pick(visible(s.ask(uid, open, paths)), name)
}

func pick(entries []entry, name string) (*entry, error) {
	if name == "" {
		for i, e := range entries {
			if e.state.PTY && e.state.Phase == wire.PhaseDetached {
				return &entries[i], nil
			}
		}
		if len(entries) == 0 {
			return nil, &sessionError{wire.CodeNoSession, "there is no session: qt connect opens one"}
		}
		return nil, &sessionError{wire.CodeNoSession, fmt.Sprintf("all sessions have a client: name one to take it over, the latest is %s", entries[0].state.Name)}
	}
	for i, e := range entries {
		if e.state.Name == name {
			return &entries[i], nil
		}
	}
	var found *entry
	for i, e := range entries {
		if len(name) >= minIDPrefix && strings.HasPrefix(e.id.String(), name) {
			if found != nil {
				return nil, &sessionError{wire.CodeFailed, fmt.Sprintf("more than one session has an id that begins with %s", name)}
			}
			found = &entries[i]
		}
	}
	if found == nil {
		return nil, &sessionError{wire.CodeNoSession, fmt.Sprintf("there is no session %q: qt ls shows which there are", name)}
	}
	return found, nil
}

// sessionNames are what sessions may be called.
var sessionNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$`)

// findOrCreate returns the socket of the session that a client asks for.
func (s *Server) findOrCreate(g *guest, req *wire.Attach) (string, error) {
	if req.Mode == wire.ModeAttach {
		e, err := s.find(g.account.UID, g.open(), req.Session)
		if err != nil {
			return "", err
		}
		return e.path, nil
	}
	if err := s.checkMemory(); err != nil {
		return "", err
	}
	defer s.creating.lock(g.account.UID)()
	paths := s.socketPaths(g.account.UID)
	all := s.ask(g.account.UID, g.open(), paths)
	taken := func(name string) bool {
		return slices.ContainsFunc(all, func(e entry) bool { return e.state.Name == name })
	}
	name := req.Session
	switch {
	case name == "":
		for n := 1; name == "" || taken(name); n++ {
			name = strconv.Itoa(n)
		}
	case !sessionNames.MatchString(name):
		return "", &sessionError{wire.CodeFailed, fmt.Sprintf("%q cannot be a session's name: use up to 32 letters, digits, dots, dashes and underscores", name)}
	case taken(name):
		if e, err := pick(visible(slices.Clone(all)), name); err == nil && req.Mode == wire.ModeAttachOrCreate {
			return e.path, nil
		}
		return "", &sessionError{wire.CodeFailed, fmt.Sprintf("there is a session %q already", name)}
	}
	// One that does not answer counts as well.
	if most := s.cfg.Settings.MaxSessionsPerUser; len(paths) >= most {
		return "", &sessionError{wire.CodeFailed, fmt.Sprintf("%s has %d sessions already, and max_sessions_per_user is %d: end one with qt kill", g.account.Name, len(paths), most)}
	}
	return s.create(g, req, name)
}

// checkMemory refuses new sessions while the output of all takes too much.
func (s *Server) checkMemory() error {
	most := int64(s.cfg.Settings.MaxBufferTotal.Bytes)
	if most == 0 {
		return nil
	}
	var mu sync.Mutex
	var total int64
	var wg sync.WaitGroup
	for _, uid := range s.accounts() {
		wg.Go(func() {
			entries := s.ask(uid, &wire.Open{}, s.socketPaths(uid))
			mu.Lock()
			defer mu.Unlock()
			for _, e := range entries {
				total += int64(min(e.state.Memory, uint64(s.cfg.Settings.BufferSize.Bytes))) // whatever it claims
			}
		})
	}
	wg.Wait()
	if total >= most {
		return &sessionError{wire.CodeFailed, fmt.Sprintf("sessions on this server keep %d MiB of output, and max_buffer_total is %v", total>>20, s.cfg.Settings.MaxBufferTotal)}
	}
	return nil
}

// accounts returns the user ids that may have sessions here.
func (s *Server) accounts() []uint32 {
	if !s.anybody {
		return []uint32{s.self.UID}
	}
	var uids []uint32
	dirs, err := os.ReadDir(s.base.System())
	if err != nil {
		s.log.Warn("sessions", "error", err)
	}
	for _, d := range dirs {
		if uid, err := strconv.ParseUint(d.Name(), 10, 32); err == nil {
			uids = append(uids, uint32(uid))
		}
	}
	return uids
}

// create starts a holder and returns its socket.
func (s *Server) create(g *guest, req *wire.Attach, name string) (string, error) {
	spec, err := s.spec(g, req, name)
	if err != nil {
		return "", err
	}
	dir, err := s.base.Make(g.account.UID)
	if err != nil {
		return "", fmt.Errorf("directory for sockets: %w", err)
	}
	credential, err := g.account.Credential()
	if err != nil {
		return "", err
	}
	args := s.cfg.HolderArgs
	if credential != nil { // our log is none of its
		args = append(slices.Clone(args), holder.LogFlag, filepath.Join(dir, "holders.log"))
	}
	pid, err := holder.Start(g.conn.Context(), spec, credential, args...)
	if pid != 0 {
		s.children.add(pid)
	}
	if err != nil {
		return "", err
	}
	g.log.Info("session started", "session", name, "id", spec.ID.String(), "account", g.account.Name)
	return filepath.Join(dir, holder.SocketName(spec.ID)), nil
}

// resume asks the holder of a session to take a carrier. What is wrong is for
// the log: to the client, no session and a wrong proof look alike.
func (s *Server) resume(req *wire.Resume, m wire.Message) (wire.Message, *carrier.Unix, error) {
	if !s.anybody && req.UID != s.self.UID {
		return m, nil, fmt.Errorf("resume of a session of user id %d", req.UID)
	}
	for _, dir := range s.base.Dirs(req.UID) {
		path := filepath.Join(dir, holder.SocketName(req.ID))
		answer, c, err := holder.Carry(path, req.UID, &wire.Open{}, m)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			continue
		}
		return answer, c, err
	}
	return m, nil, fmt.Errorf("resume of a session that does not exist, of user id %d", req.UID)
}
