package bootstrap

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxTail is how many of the last lines that ssh says are kept.
	maxTail = 3
)

// A process is an ssh process, and the stream of the carrier that it is.
type process struct {
	ssh  *SSH
	ask  bool
	args []string // of ssh, the program before them, without the command

	once sync.Once // begins or ends the process; guards what follows
	cmd  *exec.Cmd
	in   *os.File // its standard input, nil if there is no process
	out  *os.File // its standard output
	errs Dialog   // its standard error, and its terminal if it may ask
	rd   *bufio.Reader

	opened  bool            // the first bytes were written
	login   context.Context // ends when the stream has begun or the login has failed
	decided func()          // ends that
	err     error           // why it failed, or nil; valid then
	exited  chan struct{}   // closed when the process has ended
	said    chan struct{}   // closed when all that it says was read
	ended   chan struct{}   // closed when all goroutines and the process have ended
	stop    func()

	mu       sync.Mutex
	limit    *time.Timer // nil once the stream has begun or the login has failed
	answer   *time.Timer // stops the process unless the daemon answers; nil before the grant
	timeout  error       // why a timer has stopped the process, or nil
	heard    bool        // ssh has said or asked something
	loggedIn bool        // what is said now comes from the server
	tail     []string    // the last lines that tell why it ends
}

// newProcess returns a process that its first Write starts: the arguments have what is written.
func newProcess(s *SSH, ask bool, args []string) *process {
	p := &process{
		ssh: s, ask: ask, args: args,
		exited: make(chan struct{}), said: make(chan struct{}), ended: make(chan struct{}),
	}
	p.login, p.decided = context.WithCancel(context.Background())
	p.stop = sync.OnceFunc(p.end)
	return p
}

// start starts ssh. The remote command has the first bytes of the stream, or none.
func (p *process) start(first []byte) (err error) {
	s := p.ssh
	p.cmd = exec.Command(p.args[0], append(p.args[1:], remoteCommand(first))...)
	if p.errs, err = s.openErrors(p.ask); err != nil {
		return fmt.Errorf("ssh: %w", err)
	}
	p.errs.Attach(p.cmd)
	var files [4]*os.File
	for i := 0; i < 4 && err == nil; i += 2 {
		files[i], files[i+1], err = os.Pipe()
	}
	p.cmd.Stdin, p.cmd.Stdout = files[0], files[3]
	if err == nil {
		err = p.cmd.Start()
	}
	files[0].Close()
	files[3].Close()
	if err != nil {
		files[1].Close()
		files[2].Close()
		p.errs.Close()
		return fmt.Errorf("ssh: %w", err)
	}
	p.in, p.out = files[1], files[2]
	p.rd = bufio.NewReaderSize(p.out, maxLine)
	limit, reason := batchTime, tooLong
	if p.ask {
		limit = silentTime
	} else if slices.Contains(p.args, noMaster) {
		reason = maybeTouch // ConnectTimeout, which is shorter, is for all that comes before
	}
	p.limit = p.stopAfter(cmp.Or(s.silence, limit), &LoginError{s.Host, reason})
	go func() {
		defer close(p.exited)
		p.cmd.Wait()
	}()
	go func() {
		defer close(p.said)
		p.errs.Relay(p.hear)
	}()
	knocked := make(chan struct{})
	go func() {
		defer close(knocked)
		p.endIfUnanswered()
	}()
	go func() {
		defer close(p.ended)
		p.await()
		<-knocked
		<-p.exited
		p.awaitRest()
		p.errs.Close() // ends Relay
		<-p.said
		s.forget(p)
	}()
	return nil
}

// endIfUnanswered stops a process that may ask if its server does not answer. One that has said or asked something has
// an answer. It returns when that is known, or the login is over.
func (p *process) endIfUnanswered() {
	if !p.ask {
		return
	}
	err := p.ssh.unanswered(p.login)
	p.mu.Lock()
	silent := err != nil && !p.heard && !p.loggedIn && p.limit != nil
	if silent {
		p.timeout = err
	}
	p.mu.Unlock()
	if silent {
		p.stop()
	}
}

// fail ends a process that was not started.
func (p *process) fail(err error) {
	p.err = &StartError{err}
	p.decided()
	close(p.ended)
	p.ssh.forget(p)
}

func (s *SSH) forget(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.logins, p)
}

// stopAfter stops the process after a time, for a reason.
func (p *process) stopAfter(d time.Duration, reason error) *time.Timer {
	return time.AfterFunc(d, func() {
		p.mu.Lock()
		p.timeout = reason
		p.mu.Unlock()
		p.stop()
	})
}

// await reads the grant. The stream begins behind it.
func (p *process) await() {
	defer p.decided()
	text, prefix, err := find(p.rd, linePrefix, missingLine, openPrefix)
	if err == nil && prefix == linePrefix {
		var grant *wire.Grant
		if grant, err = parseGrant(text); err == nil {
			err = p.ssh.learn(grant, p.ask)
		}
	} else {
		err = p.explain(prefix, err)
	}
	p.mu.Lock()
	p.limit.Stop()
	p.limit = nil
	if err == nil {
		p.answer = p.stopAfter(cmp.Or(p.ssh.wait, answerTime), errSilent)
	}
	p.mu.Unlock()
	p.errs.Mute()
	if err != nil {
		p.err = &StartError{err}
		p.ssh.failed(p.ask, err)
		p.stop()
	}
}

// failed keeps what a login that was not to ask the user has needed of him.
func (s *SSH) failed(ask bool, err error) {
	var login *LoginError
	if ask || !errors.As(err, &login) || !login.NeedsUser() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needs = login.Reason
}

// explain returns why there is no grant: another line came, with a prefix, or an error.
func (p *process) explain(prefix string, err error) error {
	host := p.ssh.Host
	if prefix != "" {
		return noGrant(host, prefix)
	}
	var missing *noGrantError
	if !errors.As(err, &missing) {
		return err
	}
	if errors.Is(err, errNoise) {
		return fmt.Errorf("%s: %w", host, errNoise)
	}
	select {
	case <-p.exited:
	case <-time.After(endTime): // ssh has closed its output alone
		p.stop()
		<-p.exited
	}
	p.awaitRest()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timeout != nil {
		return p.timeout
	}
	status := p.cmd.ProcessState.ExitCode()
	if status < 0 && p.loggedIn { // what is said is the server's
		return &LoginError{host, "ssh was ended: " + p.cmd.ProcessState.String()}
	}
	if status < 0 || status == 255 {
		return loginError(host, p.tail)
	}
	return programError(host, status, p.tail, missing.last)
}

// awaitRest waits until all is read that ssh says, when it has ended.
func (p *process) awaitRest() {
	select {
	case <-p.said:
	case <-time.After(restTime):
	}
}

// hear takes a line that ssh says, or a program on the server, or an empty one for a question.
// Lines that tell why it ends are kept, the others shown if they are not.
func (p *process) hear(line string, shown bool) {
	line = wire.Printable(line, maxShown)
	p.mu.Lock()
	if p.ask && !p.loggedIn && p.limit != nil && !p.heard {
		p.heard = true
		p.limit.Reset(askTime)
	}
	p.mu.Unlock()
	switch {
	case strings.HasPrefix(line, authenticated):
		if p.ssh.isOurs(line) {
			p.takeLogin()
		}
		return
	case strings.HasPrefix(line, "Bytes per second: "):
		return
	}
	// Another program may not have ended its line before ssh sums up.
	line, _, _ = strings.Cut(line, "Transferred: sent ")
	if line == "" {
		return
	}
	if p.login.Err() != nil { // the terminal is another program's now
		p.ssh.Log.Debug("ssh says", "line", line)
		return
	}
	p.mu.Lock()
	keep := p.loggedIn || isLastWord(line)
	if keep {
		if len(p.tail) == maxTail {
			p.tail = p.tail[1:]
		}
		p.tail = append(p.tail, line)
	}
	p.mu.Unlock()
	if keep || shown || !p.ask || p.ssh.Say == nil {
		p.ssh.Log.Debug("ssh says", "line", line)
		return
	}
	p.ssh.Say(line)
}

// takeLogin records that the user is logged in.
func (p *process) takeLogin() {
	p.errs.Mute()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loggedIn, p.tail = true, nil
	if p.limit != nil {
		p.limit.Stop()
		p.limit = p.stopAfter(cmp.Or(p.ssh.wait, grantTime), silentError(p.ssh.Host))
	}
}

// authenticated begins the line by which ssh says that the user is logged in.
const authenticated = "Authenticated to "

// isOurs reports whether such a line is of the login to the host, and not of one to a jump host:
// that is another ssh process, which logs if the user's configuration says so.
func (s *SSH) isOurs(line string) bool {
	name, how, _ := strings.Cut(strings.TrimPrefix(line, authenticated), " ")
	return !s.Pipe || strings.EqualFold(name, s.Name) && strings.HasPrefix(how, "(via proxy)")
}

// Write implements [pipe.Stream].
func (p *process) Write(b []byte) (int, error) {
	first := !p.opened
	p.opened = true
	data := b
	if first {
		p.once.Do(func() {
			if err := p.start(b); err != nil {
				p.fail(err)
			}
		})
		if p.in == nil {
			return 0, p.err
		}
		data = OpenLine(b)
	} else if <-p.login.Done(); p.err != nil {
		return 0, p.err
	}
	if _, err := p.in.Write(data); err != nil {
		<-p.login.Done()
		return 0, errors.Join(p.err, err)
	}
	return len(b), nil
}

// Read implements [pipe.Stream].
func (p *process) Read(b []byte) (int, error) {
	<-p.login.Done()
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.rd.Read(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer.Stop()
	if err != nil && p.timeout != nil {
		err = p.timeout
	}
	return n, err
}

// Close implements [pipe.Stream]. It does not wait for the process.
func (p *process) Close() error {
	p.once.Do(func() { p.fail(errClosed) })
	if p.in != nil {
		p.stop()
	}
	return nil
}

// end makes the process end. After it, the user's terminal is for something else.
func (p *process) end() {
	p.errs.Mute()
	interrupt(p.cmd.Process)
	p.in.Close()
	p.out.Close()
	go func() {
		select {
		case <-p.exited:
		case <-time.After(endTime):
			p.cmd.Process.Kill()
		}
	}()
}
