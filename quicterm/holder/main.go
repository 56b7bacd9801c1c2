//go:build linux || darwin

package holder

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/agent"
	"github.com/quicterm/quicterm/quicterm/holder/description"
	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/holder/program"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/machine/enrolled"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/machine/pam"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Main is the main function of a holder's process, which package spawn has started. It returns when
// the session is over. software is the name and version that daemons are told. If login, the value of
// [pam.SessionFlag], is not empty, the program runs in that session of PAM.
func Main(log *slog.Logger, software, login string) error {
	// The heap is small and changes little: memory matters more than the time of the
	// garbage collector.
	debug.SetGCPercent(30)
	// The program gets these signals even if the daemon ignored them, and none of them
	// ends or stops us.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	syscall.Umask(0o022)
	reply := os.NewFile(spawn.ReplyFD, "reply")
	var opened *pam.Session
	var err error
	if login != "" {
		opened, err = pam.Adopt(login, log)
	}
	launch, readErr := spawn.ReadLaunch()
	err = cmp.Or(err, readErr)
	switch {
	case err != nil:
	case launch.Keys != nil:
		return replyTask(reply, func() (wire.Body, error) { return enrolled.Do(launch.Keys) })
	case launch.Persist != nil && launch.Persist.Task != wire.PersistKeep:
		return replyTask(reply, func() (wire.Body, error) { return persist.Answer(launch, log) })
	}
	var h *Holder
	var s *socket.Socket
	var ofClients *agent.Agent
	if err == nil {
		h, s, ofClients, err = begin(launch, opened, log)
	}
	if err != nil {
		return errors.Join(err, wire.Send(reply, &wire.Error{Text: err.Error()}))
	}
	// What a session needs is short, and waits for others: a second processor costs more time to wake up
	// than it saves.
	runtime.GOMAXPROCS(1)
	h.software = software
	h.keepOnTerm()
	if err := wire.Send(reply, new(wire.Started)); err != nil {
		log.Warn("daemon is gone before the session has started", "error", err)
	}
	reply.Close()
	var wg sync.WaitGroup
	wg.Go(func() { h.Serve(s) })
	if ofClients != nil {
		wg.Go(ofClients.Serve)
		wg.Go(func() { h.keep(ofClients.Socket.Restore) })
	}
	h.Run()
	s.Close()
	ofClients.Close()
	wg.Wait()
	h.Forget() // while this process lives, the record counts as that of a session that lives
	h.calls.sender.Wait()
	return nil
}

// OpenLogin is the main function of a process of root that becomes a holder: see [pam.Open]. It returns
// only on errors, which the daemon is told.
func OpenLogin(args []string) error {
	spawn.CloseInherited(spawn.SocketFD + 1)
	err := pam.Open(args, spawn.ReplyFD, spawn.SocketFD)
	return errors.Join(err, wire.Send(os.NewFile(spawn.ReplyFD, "reply"), &wire.Error{Text: err.Error()}))
}

// replyTask does what this process was started for, and ends.
func replyTask(reply *os.File, do func() (wire.Body, error)) error {
	spawn.CloseInherited(spawn.ReplyFD + 1)
	answer, err := do()
	if err != nil {
		answer = &wire.Error{Text: err.Error()}
	}
	return errors.Join(err, wire.Send(reply, answer))
}

// keepOnTerm keeps the session on disk when the system stops this process, before that ends it.
func (h *Holder) keepOnTerm() {
	if h.keeper == nil {
		return
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		<-term
		h.gate.Lock()
		h.life.stopping = !h.life.exited
		h.gate.Unlock()
		h.keeper.WriteLast()
		signal.Reset(syscall.SIGTERM)
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}()
}

// begin starts the program. The agent is nil if it has none.
func begin(
	launch *wire.Launch, login *pam.Session, log *slog.Logger,
) (h *Holder, s *socket.Socket, ofClients *agent.Agent, err error) {
	s, err = spawn.OpenSocket(launch)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make socket: %w", err)
	}
	launch.Env = append(launch.Env, wire.SocketVariable+"="+s.Path())
	if err = spawn.FreeStdin(); err != nil {
		err = fmt.Errorf("free standard input: %w", err)
	} else if login != nil {
		err = login.Await(time.Now().Add(loginTime))
	}
	var described *description.Folder
	if err == nil {
		var unusable error
		if described, unusable = description.Provide(launch); unusable != nil {
			log.Warn("the client's description of its terminal cannot be used", "error", unusable)
		}
	}
	var p *program.Process
	if launch.Side != 0 && err == nil {
		launch.Path, err = spawn.Executable()
		launch.Env = append(launch.Env, agent.BaseVariable+"="+launch.Base)
	}
	if launch.Agent && err == nil {
		var noAgent error
		if ofClients, noAgent = agent.Listen(rundir.Base(launch.Base), launch.ID); noAgent != nil {
			log.Warn("session has no ssh agent", "error", noAgent)
		} else {
			launch.Env = append(launch.Env, "SSH_AUTH_SOCK="+ofClients.Path)
		}
	}
	if err == nil {
		p, err = program.Start(launch, login)
	}
	if err != nil {
		described.Remove()
		s.Close()
		ofClients.Close()
		return nil, nil, nil, err
	}
	h = New(*launch, p, log)
	if ofClients != nil {
		h.offer = ofClients.Offer
	}
	h.description = described
	// A limit for when the collector falls behind, well above what the ring and the usual
	// garbage take.
	debug.SetMemoryLimit(int64(launch.Buffer)*3/2 + 64<<20)
	h.FitMemory(memory.Read)
	return h, s, ofClients, nil
}
