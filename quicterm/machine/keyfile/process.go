//go:build linux || darwin

package keyfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/keyring"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
)

// A child is a process that reads keys. It has a place, and counts for its account.
type child struct {
	reader  *Reader
	account *state
	process *os.Process
	giveUp  context.CancelCauseFunc
	slow    error // why it is given up: errHung, or errSilent if it reads what a program prints

	// Guarded by reader.mu:
	placed   bool // it has a place, or else counts as slow
	ended    bool
	answered bool // it does not count for its account any more
}

// read returns the answers to the queries of clients, in their order. A panic fails only this read.
func (c *child) read(s source, clients []*client) (verdicts []auth.Verdict, err error) {
	defer func() {
		if value := recover(); value != nil {
			verdicts, err = nil, fmt.Errorf("panic: %.500v: %.4000s", value, debug.Stack())
			if c.process == nil {
				c.end()
			}
		}
	}()
	req := &request{
		UID: s.UID, GID: s.GID, Groups: clients[0].groups, Home: s.Home, User: s.Name, Sources: clients[0].sources,
	}
	for _, client := range clients {
		req.Queries = append(req.Queries, client.queries...)
	}
	r := c.reader
	if c.slow = errHung; req.Sources.Program != nil {
		c.slow = errSilent
	}
	ctx, cancel := context.WithTimeoutCause(r.ctx, r.timeout, c.slow)
	defer cancel()
	ctx, c.giveUp = context.WithCancelCause(ctx)
	defer c.giveUp(nil)
	verdicts, err = c.ask(ctx, req, clients[0].runAs)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.slow == errHung { // a program says nothing about the file system
		c.account.hung = errors.Is(err, errHung)
		c.account.answered = c.account.answered || err == nil
	}
	if err == nil && !c.ended { // it has no file open that keeps it from ending
		c.answered = true
		c.account.children--
	}
	return verdicts, err
}

// ask starts the process and returns its answer, or kills it when ctx ends. It does not
// wait for the end of the process, whose file system may keep it from ending.
func (c *child) ask(ctx context.Context, req *request, runAs *syscall.Credential) ([]auth.Verdict, error) {
	output, program, err := run(ctx, req.Sources.Program, runAs)
	var toChild, fromChild *os.File
	if err == nil {
		defer program.end()
		defer output.Close()
		toChild, fromChild, err = c.start(output)
	}
	if err != nil {
		c.end()
		return nil, fmt.Errorf("start a process that reads keys: %w", err)
	}
	defer toChild.Close()
	defer fromChild.Close()
	defer time.AfterFunc(slowTime, c.leavePlace).Stop()
	stop := context.AfterFunc(ctx, func() {
		toChild.SetDeadline(time.Now())
		fromChild.SetDeadline(time.Now())
	})
	defer stop()
	defer c.process.Kill()
	if err := memory.Unprotect(c.process.Pid); err != nil { // before it belongs to the account
		return nil, err
	}
	if err := json.NewEncoder(toChild).Encode(req); err != nil {
		return nil, err
	}
	verdicts, err := readAnswer(fromChild, len(req.Queries))
	if err == nil {
		err = program.wait(ctx)
	}
	if errors.Is(err, ErrProgram) {
		refused := auth.Verdict{Refused: fmt.Errorf("%w: %w", auth.ErrNotAuthorized, err)}
		return slices.Repeat([]auth.Verdict{refused}, len(req.Queries)), nil
	}
	return verdicts, err
}

// start starts the process, with an empty environment and no descriptors but the ends of
// two pipes, the null device, and the output of a program. It begins with the rights of this one.
func (c *child) start(output *os.File) (toChild, fromChild *os.File, err error) {
	if len(os.Args) > 1 && os.Args[1] == Command { // else its children would start children
		return nil, nil, errors.New("the program does not call keyfile.Main for the argument " + Command)
	}
	exe, err := program()
	if err != nil {
		return nil, nil, err
	}
	stdin, toChild, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer stdin.Close()
	fromChild, stdout, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, toChild.Close())
	}
	defer stdout.Close()
	cmd := exec.Command(exe, Command)
	cmd.Args[0] = "qtd"
	cmd.Dir = "/"
	cmd.Env = []string{}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	cmd.ExtraFiles = []*os.File{output}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the daemon's terminal does not stop it
	if err := keyring.Start(cmd); err != nil {
		return nil, nil, errors.Join(err, toChild.Close(), fromChild.Close())
	}
	c.process = cmd.Process
	go func() { // for as long as the process exists: that may be for ever
		cmd.Wait()
		c.end()
	}()
	return toChild, fromChild, nil
}

// leavePlace lets another child have the place of one that reads for a long time. If too many
// do, it gives the child up.
func (c *child) leavePlace() {
	r := c.reader
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.ended {
		return
	}
	if r.slow >= r.maxSlow {
		c.giveUp(c.slow)
	}
	c.placed = false
	r.slow++
	<-r.places
}

// end stops counting a child, which has ended or was not started.
func (c *child) end() {
	r := c.reader
	r.mu.Lock()
	defer r.mu.Unlock()
	c.ended = true
	if !c.answered {
		c.account.children--
	}
	if c.placed {
		<-r.places
	} else {
		r.slow--
	}
}
