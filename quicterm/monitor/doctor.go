//go:build linux || darwin

package monitor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/doctor"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/monitor/keys"
	"github.com/quicterm/quicterm/quicterm/monitor/ports"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
)

// Doctor looks at what a daemon of this account needs of the machine, ports, keys, directories and limits, and at the
// holders that run. running is the address of the daemon that runs, or the zero value. It makes nothing, except the
// directory that sshd -T needs, and starts sshd -T and su, to see whether PAM opens sessions.
func Doctor(ctx context.Context, cfg Config, running netip.AddrPort) doctor.Report {
	e := examined(ctx, cfg)
	if e.Monitor != nil {
		e.ports(ctx, running)
		examineBuffers(&e.Report, "/proc/sys/net/core")
		e.limits()
		e.login(ctx)
		e.holders(ctx)
	}
	return e.Report
}

// Test looks at what keeps a daemon with these settings from starting, and at what makes it refuse every login.
// It starts sshd -T, and not su, which would delay each start.
func Test(ctx context.Context, cfg Config) doctor.Report { return examined(ctx, cfg).Report }

// An examination looks at the machine as a daemon would.
type examination struct {
	*Monitor // nil if the account or the settings have none
	doctor.Report
}

// examined returns what Test has found.
func examined(ctx context.Context, cfg Config) *examination {
	e := new(examination)
	s, err := look(ctx, cfg) // it reads no keys: there is nothing to close
	if err == nil {
		s.Sessions, err = newSessions(s.localHolders(cfg.Local), s.settings, s.log, s.panics)
	}
	switch {
	case s == nil:
		e.Add("account", doctor.Fail, "give the user id an account", "%v", err)
		return e
	case err != nil:
		e.Add("settings", doctor.Fail, "correct the file", "%v", err)
		return e
	}
	e.Monitor = s
	e.keys()
	e.page()
	e.dirs()
	e.sshd(ctx)
	return e
}

// page tells whether the page has a certificate, if it is to have one. Without it, the daemon does all else.
func (e *examination) page() {
	file, key := e.settings().WebCertificate, e.settings().WebKey
	if file == "" {
		return
	}
	switch until, err := keys.CheckWeb(file, key); {
	case err != nil:
		e.Add("page", doctor.Warn, "correct web_certificate and web_key, or the files", "it is not served: %v", err)
	case time.Now().After(until):
		e.Add("page", doctor.Warn, "renew it", "the certificate in %s ended on %s", file, until.Format(time.DateOnly))
	default:
		e.Add("page", doctor.OK, "", "the certificate in %s is good until %s", file, until.Format(time.DateOnly))
	}
}

// sshd tells whether sshd says what it lets in. If it does not, no login is accepted.
func (e *examination) sshd(ctx context.Context) {
	const todo = `correct it, or set sshd_policy = "ignore" if this machine's sshd has another purpose`
	switch {
	case !e.all:
		return
	case !e.access.FollowsSSHD():
		e.Add("sshd", doctor.OK, "", `its configuration is not obeyed: sshd_policy = "ignore"`)
		return
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	policy, sshd, err := e.access.Find(ctx, e.self, loopback, loopback)
	if err == nil && sshd == nil {
		e.Add("sshd", doctor.OK, "", "none is installed: the settings say who gets in")
		return
	}
	if err == nil {
		err = policy.CheckPatterns()
	}
	if err != nil {
		e.Add("sshd", doctor.Fail, todo, "no login is accepted: %v", err)
		return
	}
	e.Add("sshd", doctor.OK, "", "%v says who gets in", sshd)
}

// ports tells who has the ports, as far as the system says.
func (e *examination) ports(ctx context.Context, running netip.AddrPort) {
	addresses := e.settings().Listen
	if isGranted(e.settings(), running) {
		addresses = []string{":" + strconv.Itoa(int(running.Port()))}
	}
	var open, missing, taken []string
	for _, address := range addresses {
		_, number, _ := strings.Cut(address[strings.LastIndexByte(address, ']')+1:], ":")
		port, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			continue // the line settings has it
		}
		for _, protocol := range []string{"udp", "tcp"} {
			none := true
			for _, t := range ports.Takers(protocol, uint16(port)) {
				none = false
				if !running.IsValid() || t.UID != e.self.UID && t.UID != 0 {
					taken = append(taken, t.String())
				}
			}
			if none {
				missing = append(missing, protocol+" "+address)
			} else {
				open = append(open, protocol+" "+address)
			}
		}
	}
	var blocked error
	if running.IsValid() && len(missing)+len(taken) == 0 {
		blocked = dialTCP(ctx, running)
	}
	const other = "end that process, or name another port in listen"
	switch {
	case runtime.GOOS != "linux":
		e.Add("ports", doctor.Skip, "", "this system does not say who has a port")
	case len(taken) > 0:
		e.Add("ports", doctor.Fail, other, "taken: %s", strings.Join(taken, "; "))
	case blocked != nil:
		e.Add("ports", doctor.Fail, "let it through: clients come by TCP where a network drops UDP",
			"a firewall or a rule of this machine keeps TCP from the daemon: %v", blocked)
	case running.IsValid() && len(missing) > 0:
		e.Add("ports", doctor.Fail, "restart the daemon: it has other settings, or its log says why",
			"the daemon does not listen at %s", strings.Join(missing, ", "))
	case len(missing) > 0:
		e.Add("ports", doctor.OK, "", "free: %s", strings.Join(missing, ", "))
	default:
		e.Add("ports", doctor.OK, "", "open: %s", strings.Join(open, ", "))
	}
}

// dialTCP returns why a connection over TCP does not reach a daemon of this machine.
func dialTCP(ctx context.Context, a netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, promptTime)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", a.String())
	if err == nil {
		c.Close()
	}
	return err
}

// isGranted reports whether the daemon that runs has another port than the settings name: that of
// one that was started by a grant.
func isGranted(settings *configs.Server, running netip.AddrPort) bool {
	if !ports.IsGranted(running.Port()) {
		return false
	}
	for _, address := range settings.Listen {
		if strings.HasSuffix(address, ":"+strconv.Itoa(int(running.Port()))) {
			return false
		}
	}
	return true
}

func (e *examination) keys() {
	files, optional := e.settings().HostKey, len(e.settings().HostKey) == 0
	if optional {
		if e.all {
			files = keys.SSHHostKeys
		}
		if state, err := e.stateDir(); err == nil {
			files = append(files[:len(files):len(files)], filepath.Join(state, "host_key"))
		}
	}
	var good []string
	for _, file := range files {
		_, err := auth.LoadHostKey(file)
		if optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			e.Add("hostkey", doctor.Fail,
				"correct host_key, make the key again (ssh-keygen -A), or run qtd as its owner", "%v", err)
			return
		}
		if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
			e.Add("hostkey", doctor.Fail, "chmod 600 "+file+", and make a new key if others may have read it",
				"%s has mode %04o: other accounts can use it or read it", file, info.Mode().Perm())
			return
		}
		good = append(good, file)
	}
	if len(good) == 0 {
		e.Add("hostkey", doctor.OK, "", "there is none, and the daemon makes one when it starts")
		return
	}
	e.Add("hostkey", doctor.OK, "", "%s", strings.Join(good, ", "))
}

func (e *examination) dirs() {
	state, err := e.stateDir()
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(state)
	}
	writeErr := err
	if err == nil && info.IsDir() {
		writeErr = doctor.TryWrite(state)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Add("state", doctor.OK, "", "%s does not exist, and the daemon makes it", state)
	case err != nil:
		e.Add("state", doctor.Fail, "set state_dir to a directory of this account", "%v", err)
	case !info.IsDir():
		e.Add("state", doctor.Fail, "remove it, or set state_dir", "%s is no directory", state)
	case errors.Is(writeErr, fs.ErrPermission):
		e.Add("state", doctor.Fail, "give it to this account, or set state_dir", "%s cannot be written", state)
	case writeErr != nil: // of a full disk
		e.Add("state", doctor.Fail, "make room, or set state_dir to a directory of another file system", "%v", writeErr)
	case info.Mode().Perm()&0o077 != 0:
		e.Add("state", doctor.Warn, "chmod 700 "+state,
			"%s has mode %04o: others may read names in it", state, info.Mode().Perm())
	default:
		e.Add("state", doctor.OK, "", "%s", state)
	}
	err = e.base.Unsafe(e.self.UID)
	dirs := e.base.Dirs(e.self.UID)
	if e.all && err == nil {
		var root *os.Root
		if root, err = rundir.Open(e.base.System()); err == nil {
			root.Close()
			dirs = []string{e.base.System()}
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		e.Add("runtime", doctor.Fail, "mend its owner and mode, or remove it: the daemon makes it again", "%v", err)
	} else if len(dirs) > 0 {
		e.Add("runtime", doctor.OK, "", "%s", strings.Join(dirs, ", "))
	} else {
		e.Add("runtime", doctor.OK, "", "there is no directory of sockets yet, and the daemon makes it")
	}
}

// wantedBuffer is the size in bytes of the socket buffers that QUIC asks for, so that a burst of
// packets is not dropped while the daemon does something else.
const wantedBuffer = 7 << 20

// examineBuffers looks at how large the buffers of sockets may be. The daemon of root may exceed that.
func examineBuffers(r *doctor.Report, dir string) {
	var small []string
	known := false
	for _, name := range []string{"rmem_max", "wmem_max"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		n, numberErr := strconv.ParseUint(string(bytes.TrimSpace(content)), 10, 64)
		if err != nil || numberErr != nil {
			continue
		}
		if known = true; n < wantedBuffer {
			small = append(small, fmt.Sprintf("net.core.%s=%d", name, n))
		}
	}
	switch {
	case !known:
		r.Add("buffers", doctor.Skip, "", "the system does not say how large UDP buffers may be")
	case len(small) > 0 && os.Geteuid() != 0:
		r.Add("buffers", doctor.Warn,
			fmt.Sprintf("sysctl -w net.core.rmem_max=%d net.core.wmem_max=%d", wantedBuffer, wantedBuffer),
			"%s: bursts of packets are lost on fast networks", strings.Join(small, ", "))
	case len(small) > 0:
		r.Add("buffers", doctor.OK, "", "%s, which the daemon of root may exceed", strings.Join(small, ", "))
	default:
		r.Add("buffers", doctor.OK, "", "UDP buffers may have %d MiB", wantedBuffer>>20)
	}
}

// filesPerSession is how many descriptors the daemon needs for a session with two clients on two connections each.
const filesPerSession = 12

func (e *examination) limits() {
	found := fmt.Sprintf("max_sessions_per_user %d, buffer_size %v, max_buffer_total %v",
		e.settings().MaxSessionsPerUser, e.settings().BufferSize, e.settings().MaxBufferTotal)
	var files syscall.Rlimit
	need := uint64(filesPerSession * e.settings().MaxSessionsPerUser)
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && uint64(files.Max) < need {
		e.Add("limits", doctor.Warn, fmt.Sprintf("raise LimitNOFILE= of the unit, or ulimit -n, to %d", need),
			"a process may open %d files, and %d sessions need %d", files.Max, e.settings().MaxSessionsPerUser, need)
		return
	}
	limit := e.memory.limit
	if state, err := memory.Read(); err == nil && uint64(limit) > state.Total {
		e.Add("limits", doctor.Warn, "lower max_buffer_total",
			"%s: more than the %d MiB that this machine has", found, state.Total>>20)
		return
	}
	e.Add("limits", doctor.OK, "", "%s (%d MiB)", found, limit>>20)
}

func (e *examination) login(ctx context.Context) {
	_, words, state := processes.HowSessionsStart(ctx, e.all, nil)
	todo := ""
	if state != doctor.OK {
		todo = "correct that: PAM's rules for su are in /etc/pam.d/su"
	}
	e.Add("login", state, todo, "%s", words)
	account := e.self.UID
	if e.all {
		account = math.MaxUint32 // any but root
	}
	if closed := nologin(e.all, account); closed != nil {
		e.Add("login", doctor.Fail, "remove that file, or wait until the system has started",
			"nologin(5) lets only root in: %s", closed.Text)
	}
}

func (e *examination) holders(ctx context.Context) {
	all, silent := e.inspectAll(ctx)
	versions := make(map[string]int)
	for _, one := range all {
		versions[one.report.Software]++
	}
	var lines []string
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		lines = append(lines, fmt.Sprintf("%d of %s", versions[version], version))
	}
	found := strings.Join(lines, ", ")
	switch {
	case silent > 0:
		e.Add("holders", doctor.Warn, "look at their processes: they are stopped, or wait for a file system or for memory",
			"sessions that do not answer: %d; others: %s", silent, cmp.Or(found, "none"))
	case len(versions) > 1 || len(versions) == 1 && versions[e.software] == 0:
		e.Add("holders", doctor.OK, "", "%s; the daemon serves other versions until their sessions end", found)
	default:
		e.Add("holders", doctor.OK, "", "%s", cmp.Or(found, "no session"))
	}
}
