package privsep

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/machine/confine"
	"github.com/quicterm/quicterm/quicterm/machine/keyring"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxLine is how much of a line of its log is kept, in bytes.
const maxLine = 16 << 10

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

func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "monitor")
	ours, err := socketOf(os.NewFile(uintptr(fds[0]), "network"))
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
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
			p.output.Write(printableLines(line))
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
