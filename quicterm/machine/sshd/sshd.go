//go:build linux || darwin

package sshd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/command"
	"github.com/quicterm/quicterm/quicterm/quota"
)

// systemFiles are the paths that sshd is installed at, the one that systems use most first.
var systemFiles = []string{"/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd", "/run/current-system/sw/bin/sshd"}

const (
	// locatedTime is how long the sshd that runs is taken for the only one: to look at all processes takes milliseconds.
	locatedTime = 5 * time.Second

	// nameTimeout bounds how long the DNS may take for a client's name. Without an answer the
	// name is the address, as for sshd.
	nameTimeout = 4 * time.Second

	// maxAnswers bounds how many answers are kept, some kilobytes each.
	maxAnswers = 512

	// maxRunning bounds how many processes run at a time, about 10 ms each, and sourceRunning those of one source. Others
	// wait, and share an answer.
	maxRunning, sourceRunning = 4, 2
)

// A Login is an attempt to log in.
type Login struct {
	User           string
	UID            uint32
	Shell          string
	Client, Server netip.Addr // of the connection
	Source         string     // who can make up any number of logins: they delay those of another source little

	// Locked reports whether the account's password is locked. Groups returns the names of
	// the account's groups. Both are called only if sshd's configuration depends on it.
	Locked func() (bool, error)
	Groups func(context.Context) ([]string, error)
}

// A Daemon is the sshd of this machine. The zero value is ready to use. It is safe for concurrent use.
type Daemon struct {
	// Files are the paths of the program, of which the first one that exists counts; nil means
	// those of the system. PATH is not used.
	Files []string

	variables []variable // nil means those of the system

	once     sync.Once
	running  *quota.Turns[string] // of sources
	revoked  revokedFiles
	resolver *net.Resolver // nil means the default one

	mu      sync.Mutex
	answers map[question]*answer
	global  global // of the last answer

	located   *Installation // that runs; see Locate
	locatedAt time.Time

	old atomic.Bool // it does not know -G
}

// A question is what an answer of sshd depends on.
type question struct {
	user           string
	client, server netip.Addr
}

type answer struct {
	policy  *Policy
	host    string // the client's name
	unnamed error  // why that is not known
	err     error
	asked   time.Time // when sshd was started
}

// Ask returns what sshd allows a login, or the own settings if no sshd is installed. The error says why the account
// does not get in; it is for the log. Ask blocks while sshd or the name service is asked, until ctx ends.
func (d *Daemon) Ask(ctx context.Context, l *Login, own *Policy) (*Policy, error) {
	policy, host, err := d.Find(ctx, l, own)
	if err != nil {
		return nil, err
	}
	if err := policy.Admit(ctx, l, host); err != nil {
		return nil, err
	}
	return policy, nil
}

// Find returns the policy that Ask judges by, and the client's name. It blocks as Ask does.
func (d *Daemon) Find(ctx context.Context, l *Login, own *Policy) (*Policy, string, error) {
	a, err := d.answer(ctx, question{l.User, plain(l.Client), plain(l.Server)}, l.Source)
	switch {
	case err != nil:
		return nil, "", err
	case a.policy == nil:
		return own, plain(l.Client).String(), nil
	}
	return a.policy, a.host, nil
}

// Locate returns the sshd of this machine with the options that say who gets in: those of the process that
// listens, otherwise those of the file that its unit or start script reads. It returns nil if none is
// installed. The error says why the options cannot be told.
func (d *Daemon) Locate() (*Installation, error) {
	d.mu.Lock()
	last, at := d.located, d.locatedAt
	d.mu.Unlock()
	if last != nil && last.runs() && time.Since(at) < locatedTime {
		return last, nil
	}
	file := d.find()
	found, err := running(d.Files)
	if err != nil {
		return nil, err
	}
	if found != nil {
		if _, err := os.Stat(found.File); err != nil { // it was replaced by a newer one
			found.File = file
		}
		if found.File == "" {
			return nil, fmt.Errorf("the program of %s is gone", found.From)
		}
		d.mu.Lock()
		d.located, d.locatedAt = found, time.Now()
		d.mu.Unlock()
		return found, nil
	}
	if file == "" {
		return nil, nil
	}
	variables := d.variables
	if variables == nil {
		variables = optionVariables
	}
	found = &Installation{File: file}
	found.Options, found.From, err = fileOptions(variables)
	return found, err
}

// Installed reports whether there is an sshd.
func (d *Daemon) Installed() bool {
	sshd, err := d.Locate()
	return sshd != nil || err != nil
}

func (d *Daemon) find() string {
	files := d.Files
	if files == nil {
		files = systemFiles
	}
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

// plain returns an address in the form in which sshd has it.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// answer returns sshd's settings for a login, and the client's name, or no settings if no sshd is installed. A Match
// block may depend on that name and on the port of the login, so that these settings must be known first: sshd is asked
// again if they are not those of the last answer.
func (d *Daemon) answer(ctx context.Context, q question, source string) (*answer, error) {
	begun := time.Now()
	d.once.Do(func() {
		d.running = quota.NewTurns[string](maxRunning, sourceRunning)
		d.answers = make(map[question]*answer)
		d.global = global{port: 22}
	})
	for range 3 { // they do not depend on the login
		d.mu.Lock()
		known := d.global
		d.mu.Unlock()
		a := &answer{host: q.client.String()}
		if known.dns { // without a turn: the DNS may not answer
			a.host, a.unnamed = d.hostName(ctx, q.client)
		}
		a, err := d.ask(ctx, q, source, begun, known, a)
		if err != nil || a != nil {
			return a, err
		}
	}
	return nil, errors.New("sshd -T: the configuration changes all the time")
}

// ask fills in the answer to a question when it is the source's turn, or returns nil if the settings that must be known
// first are others. Logins that wait share one answer: it is that of an sshd which was started after each of them began,
// and so knows each change that was made before.
func (d *Daemon) ask(
	ctx context.Context, q question, source string, begun time.Time, known global, a *answer,
) (*answer, error) {
	end, err := d.running.Take(ctx, source)
	if err != nil {
		return nil, fmt.Errorf("sshd: %w", err)
	}
	defer func() { command.WhenEnded(a.err, end) }()
	d.mu.Lock()
	shared := d.answers[q]
	d.mu.Unlock()
	if shared != nil && shared.asked.After(begun) {
		return shared, shared.err
	}
	a.asked = time.Now()
	a.policy, a.err = d.settings(ctx, q, known.port, a)
	if ctx.Err() != nil { // that is not sshd's fault
		return nil, fmt.Errorf("sshd: %w", context.Cause(ctx))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.policy != nil && a.policy.global != known {
		d.global = a.policy.global
		return nil, nil
	}
	if len(d.answers) >= maxAnswers {
		clear(d.answers)
	}
	d.answers[q] = a
	return a, a.err
}

// settings asks sshd for its settings for a login to a port. It returns none if no sshd is installed.
func (d *Daemon) settings(ctx context.Context, q question, port int, client *answer) (*Policy, error) {
	sshd, err := d.Locate()
	switch {
	case err != nil:
		return nil, fmt.Errorf("sshd's configuration is not known: %w; correct that, or set sshd_policy", err)
	case sshd == nil:
		return nil, nil
	case !askable(q.user):
		return nil, fmt.Errorf("sshd cannot be asked about the name %q", q.user)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, command.Patience, fmt.Errorf("no answer within %v", command.Patience))
	defer cancel()
	login := fmt.Sprintf("user=%s,host=%s,addr=%v,laddr=%v,lport=%d", q.user, client.host, q.client, q.server, port)
	out, err := d.print(ctx, sshd, login)
	if err != nil {
		return nil, fmt.Errorf("sshd's configuration is not known: %w; see that sshd -T works, or set sshd_policy", err)
	}
	policy, err := Parse(out)
	if err != nil {
		return nil, fmt.Errorf("sshd -T: %w", err)
	}
	policy.revoked, policy.unnamed = &d.revoked, client.unnamed
	return policy, nil
}

// askable reports whether the syntax of sshd -C has room for the name of an account or a host.
func askable(name string) bool { return name != "" && !strings.ContainsAny(name, "\t\n\f\r ,=") }

// print returns what sshd prints of its settings for a login. With -G, since OpenSSH 9.3, it
// needs neither its host keys nor the directory of a running sshd, and is faster.
func (d *Daemon) print(ctx context.Context, sshd *Installation, login string) ([]byte, error) {
	args := append([]string{"-G", "-T", "-C", login}, sshd.Options...)
	if !d.old.Load() {
		if out, err := run(ctx, sshd.File, args...); err == nil || ctx.Err() != nil {
			return out, err
		}
	}
	out, err := run(ctx, sshd.File, args[1:]...)
	if err != nil && makeMissing(err) {
		out, err = run(ctx, sshd.File, args[1:]...)
	}
	d.old.Store(err == nil)
	return out, err
}

// makeMissing makes the directory that an sshd complains about which was not started since the last boot, as its start
// script does. It reports whether it has.
func makeMissing(complaint error) bool {
	missing := regexp.MustCompile(`Missing privilege separation directory: (/(?:var/)?run/[a-z]+)`)
	found := missing.FindStringSubmatch(complaint.Error())
	return found != nil && os.Mkdir(found[1], 0o755) == nil
}

// run returns what a process prints. The error has what it says.
func run(ctx context.Context, file string, args ...string) ([]byte, error) {
	out, complaint, err := command.Run(ctx, nil, file, args...)
	if err != nil {
		endsLine := func(r rune) bool { return r == '\r' || r == '\n' }
		lines := strings.Join(strings.FieldsFunc(string(complaint), endsLine), "; ")
		return nil, fmt.Errorf("%s: %w: %.500s", file, err, lines)
	}
	return out, nil
}

// hostName returns the client's name in the DNS, as sshd has it with UseDNS: one that leads back to the address.
// Without such a name it returns the address. The error says why it is not known whether there is a name.
func (d *Daemon) hostName(ctx context.Context, client netip.Addr) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	found, err := d.resolver.LookupAddr(ctx, client.String())
	if err != nil || len(found) == 0 {
		return client.String(), outage(err)
	}
	name := strings.ToLower(strings.TrimSuffix(found[0], "."))
	if _, err := netip.ParseAddr(name); err == nil || !askable(name) {
		return client.String(), nil // it pretends to be something else
	}
	addrs, err := d.resolver.LookupNetIP(ctx, "ip", name)
	if err != nil || !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return plain(a) == client }) {
		return client.String(), outage(err)
	}
	return name, nil
}

// outage returns the error of a lookup in the DNS, unless it says that there is no such name.
func outage(err error) error {
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return nil
	}
	return err
}
