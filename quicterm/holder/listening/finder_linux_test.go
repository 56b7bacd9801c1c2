package listening

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A machine is a /proc of a test.
type machine struct {
	t        *testing.T
	dir      string
	sessions map[int]int // by process
	asked    int         // how often the session of a process was asked for
}

func newMachine(t *testing.T) (*machine, *Finder) {
	m := &machine{t: t, dir: t.TempDir(), sessions: make(map[int]int)}
	return m, &Finder{proc: m.dir, session: func(pid int) (int, error) {
		m.asked++
		if s, ok := m.sessions[pid]; ok {
			return s, nil
		}
		return 0, unix.ESRCH
	}}
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// process adds a process with the sockets that it has.
func (m *machine) process(pid, session int, inodes ...int) {
	m.sessions[pid] = session
	fd := filepath.Join(m.dir, fmt.Sprint(pid), "fd")
	m.must(os.MkdirAll(fd, 0o700))
	m.must(os.Symlink("/dev/null", filepath.Join(fd, "0")))
	for i, inode := range inodes {
		m.must(os.Symlink(fmt.Sprintf("socket:[%d]", inode), filepath.Join(fd, fmt.Sprint(i+1))))
	}
}

// table writes the rows of a table of the kernel, each as "address state inode", of a process's network.
func (m *machine) table(pid int, name string, rows ...string) {
	m.t.Helper()
	var b strings.Builder
	b.WriteString("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
	for i, row := range rows {
		f := strings.Fields(row)
		uid := os.Getuid()
		if len(f) > 3 {
			uid++
		}
		fmt.Fprintf(&b, "%4d: %s 00000000:0000 %s 00000000:00000000 00:00000000 00000000 %5d        0 %s 1 0000000000000000 100 0 0 10 0\n",
			i, f[0], f[1], uid, f[2])
	}
	dir := filepath.Join(m.dir, fmt.Sprint(pid), "net")
	m.must(os.MkdirAll(dir, 0o700))
	m.must(os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o600))
}

func want(t *testing.T, why string, got []uint16, want ...uint16) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: ports %v, want %v", why, got, want)
	}
}

// What processes of the session listen at is found, for connections of the machine, and not what others do.
func TestPorts(t *testing.T) {
	m, f := newMachine(t)
	m.process(10, 10)
	m.process(11, 10, 101, 102, 103, 104, 105, 108)
	m.process(12, 12, 106)
	m.process(13, 10, 107)
	m.table(10, "tcp", "0100007F:1F90 0A 101", "00000000:0050 0A 102", "0200A8C0:0051 0A 103", "0100007F:0052 0A 106",
		"0100007F:0053 0A 999", "0100007F:0054 0A 108 other", "0100007F:1F91 01 104", "0100007F:1F92 0A 105")
	m.table(10, "tcp6", "00000000000000000000000000000000:1F90 0A 107", "00000000000000000000000001000000:0055 0A 104",
		"0000000000000000FFFF00000100007F:0056 0A 105")
	want(t, "at first", f.Ports(10), 80, 85, 86, 8080)
	asked := m.asked
	want(t, "again", f.Ports(10), 80, 85, 86, 8080)
	if m.asked != asked {
		t.Error("the processes are looked at again, and nothing is new")
	}
	m.process(14, 10, 201)
	m.table(10, "tcp", "0100007F:0057 0A 201")
	want(t, "others", f.Ports(10), 85, 86, 87, 8080)
	m.table(10, "tcp")
	m.table(10, "tcp6")
	want(t, "none", f.Ports(10))
	want(t, "a process that is gone", f.Ports(99))
}

// A program that has begun a session of its own is one of the session that it comes from.
func TestPortsOfDaemons(t *testing.T) {
	m, f := newMachine(t)
	f.Mark = "MARK=/run/here"
	m.process(10, 10)
	for pid, variables := range map[int]string{
		20: "A=1\x00MARK=/run/here\x00B=2\x00", 21: "MARK=/run/here\x00", 22: "MARK=/run/here2\x00",
		23: "NOMARK=/run/here\x00", 24: "",
	} {
		m.process(pid, pid, pid)
		m.must(os.WriteFile(filepath.Join(m.dir, fmt.Sprint(pid), "environ"), []byte(variables), 0o600))
	}
	m.table(10, "tcp", "0100007F:0014 0A 20", "0100007F:0015 0A 21", "0100007F:0016 0A 22", "0100007F:0017 0A 23",
		"0100007F:0018 0A 24")
	want(t, "those of the session", f.Ports(10), 20, 21)
	for pid := 100; pid < 100+maxEnvironments; pid++ {
		m.process(pid, pid)
		m.must(os.WriteFile(filepath.Join(m.dir, fmt.Sprint(pid), "environ"), nil, 0o600))
	}
	f.known = nil
	want(t, "behind so many others", f.Ports(10))

	l, err := net.Listen("tcp", "127.0.0.1:0")
	m.must(err)
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	m.must(err)
	defer file.Close()
	cmd := exec.Command("sleep", "60")
	real := Finder{Mark: "MARK=" + t.TempDir()}
	cmd.Env, cmd.ExtraFiles, cmd.SysProcAttr = []string{real.Mark}, []*os.File{file}, &syscall.SysProcAttr{Setsid: true}
	m.must(cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	want(t, "one of this machine", real.Ports(os.Getpid()), uint16(l.Addr().(*net.TCPAddr).Port))
}

// A look is bounded, however much there is to see.
func TestPortsAreBounded(t *testing.T) {
	m, f := newMachine(t)
	var rows []string
	var inodes []int
	for i := range 2 * maxSockets {
		rows = append(rows, fmt.Sprintf("0100007F:%04X 0A %d", 1+i, i))
		if i < 2*MaxPorts {
			inodes = append(inodes, i)
		}
	}
	m.process(10, 10, inodes...)
	m.table(10, "tcp", rows...)
	if got := f.Ports(10); len(got) != MaxPorts || len(f.known) != maxSockets {
		t.Errorf("%d ports, %d sockets", len(got), len(f.known))
	}
	m, f = newMachine(t)
	m.process(10, 10, 7)
	for pid := 100; pid < 100+maxProcesses; pid++ { // younger
		m.sessions[pid] = 10
		m.must(os.Mkdir(filepath.Join(m.dir, fmt.Sprint(pid)), 0o700))
	}
	m.table(10, "tcp", "0100007F:0050 0A 7")
	want(t, "of the oldest of too many", f.Ports(10))
}

// The kernel's own tables are read as they are.
func TestPortsOfThisProcess(t *testing.T) {
	own := os.Getpid()
	f := Finder{proc: "/proc", session: func(pid int) (int, error) {
		if pid != own {
			return 0, unix.ESRCH
		}
		return own, nil
	}}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("not tried: %v", err) // without IPv6
			continue
		}
		want(t, address, f.Ports(own), uint16(l.Addr().(*net.TCPAddr).Port))
		l.Close()
		want(t, address+", closed", f.Ports(own))
	}
}
