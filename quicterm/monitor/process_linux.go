package monitor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/machine/confine"
	"github.com/quicterm/quicterm/quicterm/machine/keyring"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// ChannelFD is the descriptor of the socket to the monitor in the network half.
	ChannelFD = 3

	// shortLife is how long a network process must have lived to be started again at once. If it has
	// not, the next one waits: leastPause, twice as long each time, up to mostPause.
	shortLife             = 10 * time.Second
	leastPause, mostPause = 50 * time.Millisecond, 5 * time.Second

	// replyTime is how long the network process may take to answer the monitor.
	replyTime = 10 * time.Second

	// watchInterval is how often the network process is asked whether it answers.
	watchInterval = 30 * time.Second

	// endTime is how long the network half may take to tell clients that it ends.
	endTime = 5 * time.Second

	// lastWords bounds how long its log is read after its end. Then the pipe is empty and closed, unless the process has
	// passed it on.
	lastWords = time.Second

	// maxLine is how much of a line of its log is kept, in bytes.
	maxLine = 16 << 10

	// udpBuffer is the size of the kernel's buffers of a UDP socket, as QUIC wants it. Only root may
	// have more than the system's limit.
	udpBuffer = 7 << 20
)

// A Process is the network half in a process of its own, which has no rights, no files and no
// programs. When it ends it is started again. It implements [Network].
type Process struct {
	monitor *Monitor
	log     io.Writer // gets the lines of its log
	args    []string
	uid     uint32
	gid     uint32
	root    string

	telling sync.Mutex // held while a process is told the state or a socket

	mu      sync.Mutex
	current *channel      // or nil
	arrived chan struct{} // closed when current is set
	state   State
	sockets map[uint64]*held
	last    uint64
}

// A held is a socket that is kept while network processes come and go. It is a descriptor alone:
// with the runtime's poller, this process would wake up for each packet.
type held struct {
	purpose Purpose
	fd      int
}

// NewProcess returns the network half of a monitor. Args are further arguments of its process.
func NewProcess(ctx context.Context, m *Monitor, log io.Writer, args ...string) (*Process, error) {
	uid, gid, err := m.networkIDs(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.base.MakeSystem(); err != nil {
		return nil, err
	}
	root := m.base.System() + "/empty"
	if err := rundir.MakeSystemDir(root, 0o755); err != nil {
		return nil, fmt.Errorf("empty directory: %w", err)
	}
	return &Process{
		monitor: m, log: log, args: args, uid: uid, gid: gid, root: root,
		arrived: make(chan struct{}), sockets: make(map[uint64]*held),
	}, nil
}

// Run starts the process, and starts it again when it has ended, until ctx ends.
func (p *Process) Run(ctx context.Context) error {
	pause := time.Duration(0)
	for {
		begun := time.Now()
		err := p.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(begun) >= shortLife {
			pause = 0
		} else {
			pause = min(max(2*pause, leastPause), mostPause)
		}
		p.monitor.log.Error("the network process has ended, and is started again", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// once starts the process, and serves it until it has ended.
func (p *Process) once(ctx context.Context) error {
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	c := newChannel(ours, false, nil)
	c.handle = func(ctx context.Context, k kind, payload []byte, _ []*os.File) (any, []int, error) {
		return p.answer(ctx, c, k, payload)
	}
	cmd, log, err := p.start(theirs)
	theirs.Close()
	if err != nil {
		ours.Close()
		return err
	}
	defer p.monitor.logins.clear() // again: what was being answered may have added some
	var wg sync.WaitGroup
	wg.Go(func() { p.copyLog(log) })
	served := make(chan error, 1)
	wg.Go(func() { served <- c.run(context.WithoutCancel(ctx)) })
	exited := make(chan error, 1)
	wg.Go(func() { exited <- cmd.Wait() })
	watching, stop := context.WithCancel(ctx)
	wg.Go(func() { p.watch(watching, c) })
	defer wg.Wait()
	defer stop()
	defer p.monitor.logins.clear()
	select {
	case err = <-exited: // its calls end as its end of the channel is closed
	case err = <-served:
		err = errors.Join(err, end(cmd, exited))
	case <-ctx.Done():
		ours.CloseWrite()
		err = end(cmd, exited)
	}
	log.SetReadDeadline(time.Now().Add(lastWords))
	c.close() // before p.current is looked at: then no call of ready sets it again
	p.mu.Lock()
	if p.current == c {
		p.current, p.arrived = nil, make(chan struct{})
	}
	p.mu.Unlock()
	return err
}

// answer does what a process asks.
func (p *Process) answer(ctx context.Context, c *channel, k kind, payload []byte) (any, []int, error) {
	if k == kindReady {
		return nil, nil, p.monitor.contain(p.monitor.log, func() error { return p.ready(ctx, c) })
	}
	return p.monitor.answer(ctx, k, payload)
}

// watch ends the channel to a process that does not answer, until ctx ends.
func (p *Process) watch(ctx context.Context, c *channel) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		p.telling.Lock()
		p.mu.Lock()
		state := p.state
		p.mu.Unlock()
		tell(ctx, c, kindState, state)
		p.telling.Unlock()
	}
}

// end waits for the end of a process that has been told to end, and kills it if it takes too long.
func end(cmd *exec.Cmd, exited <-chan error) error {
	select {
	case err := <-exited:
		return err
	case <-time.After(endTime):
		cmd.Process.Kill()
		return <-exited
	}
}

// socketPair returns the two ends of a stream socket.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "network"), os.NewFile(uintptr(fds[1]), "monitor")
	defer ours.Close()
	c, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return c.(*net.UnixConn), theirs, nil
}

// passedOn are the variables of the environment that the process gets: those of Go's runtime.
var passedOn = []string{"GODEBUG", "GOMAXPROCS", "GORACE", "GOTRACEBACK", "GOCOVERDIR", "TZ"}

// start starts the process with its end of the channel, and returns its log. It gets namespaces of its
// own if the system allows that.
func (p *Process) start(channel *os.File) (*exec.Cmd, *os.File, error) {
	log, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	var cmd *exec.Cmd
	for _, flags := range confine.Namespaces {
		cmd = exec.Command("/proc/self/exe", append([]string{
			Command, "--uid", strconv.FormatUint(uint64(p.uid), 10), "--gid", strconv.FormatUint(uint64(p.gid), 10),
			"--root", p.root, "--mounts=" + strconv.FormatBool(flags != 0),
		}, p.args...)...)
		cmd.Args[0] = "qtd"
		cmd.Dir = "/"
		cmd.Env = []string{}
		for _, name := range passedOn {
			if value, ok := os.LookupEnv(name); ok {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
		}
		cmd.Stderr = theirs
		cmd.ExtraFiles = []*os.File{channel}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: flags}
		if err = keyring.Start(cmd); err == nil {
			return cmd, log, nil
		}
	}
	log.Close()
	return nil, nil, fmt.Errorf("start the network process: %w", err)
}

// copyLog passes lines of the process's log on, until that ends or is given up.
func (p *Process) copyLog(log io.ReadCloser) {
	defer log.Close()
	lines := bufio.NewReaderSize(log, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			if line[len(line)-1] != '\n' {
				line = append(line[:len(line):len(line)], '\n')
			}
			p.log.Write(printableLines(line))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// printableLines returns text of the process with each line [wire.Printable].
func printableLines(text []byte) []byte {
	var b []byte
	for line := range bytes.Lines(text) {
		b = append(append(b, wire.Printable(string(bytes.TrimSuffix(line, []byte("\n"))), len(line))...), '\n')
	}
	return b
}

// tell calls a process, which may be hostile or hang. One that does not answer is ended.
func tell(ctx context.Context, c *channel, k kind, body any, files ...int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, replyTime, errSilent)
	defer cancel()
	_, err := c.call(ctx, k, body, nil, files...)
	if errors.Is(err, errSilent) {
		c.close()
	}
	return err
}

// errSilent is the error of a process that does not answer.
var errSilent = errors.New("the network process does not answer")

// errReady is the error of a process that is ready twice, or ready and gone.
var errReady = errors.New("the network process is ready or gone already")

// ready tells a process that has started what it serves.
func (p *Process) ready(ctx context.Context, c *channel) error {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	known, sockets, state := p.current == c, maps.Clone(p.sockets), p.state
	p.mu.Unlock()
	if known {
		return errReady
	}
	if err := tell(ctx, c, kindState, state); err != nil {
		return err
	}
	for id, s := range sockets {
		if err := tell(ctx, c, kindListen, socketID{id, s.purpose}, s.fd); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.ended() {
		return errReady
	}
	p.current = c
	close(p.arrived)
	return nil
}

// await returns the channel to the process that runs, when there is one.
func (p *Process) await(ctx context.Context) (*channel, error) {
	for {
		p.mu.Lock()
		c, arrived := p.current, p.arrived
		p.mu.Unlock()
		if c != nil {
			return c, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, errChannel
		}
	}
}

// Update implements [Network].
func (p *Process) Update(state State) {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	p.state = state
	c := p.current
	p.mu.Unlock()
	if c != nil {
		tell(context.Background(), c, kindState, state) // if it fails, the next process gets it
	}
}

// Serve implements [Network]. It takes the socket over.
func (p *Process) Serve(ctx context.Context, l Listener) error {
	fd, err := descriptorOf(l.Socket)
	if unlinks, ok := l.Socket.(*net.UnixListener); ok {
		unlinks.SetUnlinkOnClose(false)
	}
	l.Socket.Close()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if l.Purpose == ForQUIC {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, udpBuffer)
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, udpBuffer)
	}
	id := p.add(ctx, &held{l.Purpose, fd})
	<-ctx.Done()
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	delete(p.sockets, id)
	c := p.current
	p.mu.Unlock()
	if c != nil {
		tell(context.WithoutCancel(ctx), c, kindUnlisten, socketID{ID: id})
	}
	return nil
}

// add adds a socket, and has the process that runs serve it.
func (p *Process) add(ctx context.Context, s *held) (id uint64) {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	p.last++
	id = p.last
	p.sockets[id] = s
	c := p.current
	p.mu.Unlock()
	if c != nil {
		if err := tell(ctx, c, kindListen, socketID{id, s.purpose}, s.fd); err != nil && ctx.Err() == nil {
			p.monitor.log.Warn("the network process does not serve a socket", "error", err)
			c.close() // another process may
		}
	}
	return id
}

// descriptorOf returns another descriptor of a socket.
func descriptorOf(s syscall.Conn) (fd int, err error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return -1, err
	}
	var dupErr error
	if err := raw.Control(func(one uintptr) { fd, dupErr = unix.FcntlInt(one, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return -1, err
	}
	return fd, os.NewSyscallError("dup", dupErr)
}

// ServeLocal implements [Network]. The connection is the process's then.
func (p *Process) ServeLocal(ctx context.Context, conn net.Conn, client *Local) {
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	err := p.serveLocal(ctx, conn, client)
	if err != nil {
		p.monitor.Leave(client.Login.ID)
		p.monitor.log.Warn("the network process does not serve a client over ssh", "error", err)
	}
}

func (p *Process) serveLocal(ctx context.Context, conn net.Conn, client *Local) error {
	c, err := p.await(ctx)
	if err != nil {
		return err
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return errors.New("a connection that is no socket cannot be handed over")
	}
	fd, err := descriptorOf(socket)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return tell(ctx, c, kindLocal, client, fd)
}

// Clients implements [Network].
func (p *Process) Clients(ctx context.Context) (*Clients, error) {
	clients := new(Clients)
	return clients, p.ask(ctx, kindClients, clients)
}

// Metrics implements [Network].
func (p *Process) Metrics(ctx context.Context) (text []byte, err error) {
	err = p.ask(ctx, kindMetrics, &text)
	return printableLines(text), err
}

func (p *Process) ask(ctx context.Context, k kind, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	c, err := p.await(ctx)
	if err == nil {
		_, err = c.call(ctx, k, nil, answer)
	}
	return err
}
