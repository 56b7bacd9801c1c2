//go:build linux || darwin

package sshd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fake returns a daemon whose program is a shell script, and a function that returns the
// arguments of its runs so far, one run a line.
func fake(t *testing.T, script string) (d *Daemon, runs func() []string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	put := func(name, content string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	settings := put("settings", base)
	file := put("sshd", "#!/bin/sh\necho \"$*\" >> "+log+"\nsettings() { /bin/cat "+settings+"; }\n"+script)
	return &Daemon{Files: []string{filepath.Join(dir, "none"), file}, variables: []variable{}}, func() []string {
		t.Helper()
		content, err := os.ReadFile(log)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(content)), "\n")
	}
}

func TestAsk(t *testing.T) {
	ctx := t.Context()
	none := &Daemon{Files: []string{"/none"}}
	if p, err := none.Ask(t.Context(), login("jo", 1, "10.0.0.1"), ownNothing); p != ownNothing || err != nil {
		t.Errorf("without an sshd: %v, %v", p, err)
	}

	l := login("jo", 1, "::ffff:10.0.0.1")
	l.Server = l.Client
	d, runs := fake(t, "settings")
	for range 3 {
		if p, err := d.Ask(ctx, l, ownNothing); err != nil || len(p.Sources.Files) != 1 {
			t.Fatalf("%v, %v", p, err)
		}
	}
	if got := runs(); len(got) != 3 || got[0] != "-G -T -C user=jo,host=10.0.0.1,addr=10.0.0.1,laddr=10.0.0.1,lport=22" {
		t.Errorf("sshd was run with %q", got)
	}
	for _, name := range []string{"jo,user=root", "a b", "a\nb", "a=b", ""} {
		l := login(name, 1, "10.0.0.1")
		if p, err := d.Ask(ctx, l, ownNothing); err == nil || p != nil {
			t.Errorf("%q: %v, %v", name, p, err)
		}
	}
	if p, err := d.Ask(ctx, login("root", 0, "10.0.0.1"), ownNothing); err != nil || p.AcceptCommand(0, "") != nil {
		t.Errorf("%v, %v", p, err)
	}
	if got := runs(); len(got) != 4 {
		t.Errorf("sshd was run with %q", got)
	}
}

// An sshd before OpenSSH 9.3 does not know -G.
func TestOldSSHD(t *testing.T) {
	d, runs := fake(t, `case "$1" in -G) echo "unknown option -- G" >&2; exit 1;; esac; settings`)
	for _, user := range []string{"jo", "al"} {
		if _, err := d.Ask(t.Context(), login(user, 1, "10.0.0.1"), ownNothing); err != nil {
			t.Error(err)
		}
	}
	var options []string
	for _, run := range runs() {
		options = append(options, run[:2])
	}
	if got := strings.Join(options, " "); got != "-G -T -T" {
		t.Errorf("runs with %s", got)
	}
}

// Match blocks apply as for a login to sshd's own port, and with the client's name if UseDNS
// is set: then the address must have one that leads back to it.
func TestGlobalSettings(t *testing.T) {
	d, runs := fake(t, `settings | /bin/sed "s/port 22/port 2200/"`)
	for _, user := range []string{"jo", "al"} {
		if _, err := d.Ask(t.Context(), login(user, 1, "10.0.0.1"), ownNothing); err != nil {
			t.Error(err)
		}
	}
	got := runs()
	if len(got) != 3 || !strings.HasSuffix(got[0], "=22") || !strings.HasSuffix(got[1], "=2200") || !strings.HasSuffix(got[2], "=2200") {
		t.Errorf("runs with %q", got)
	}

	d, runs = fake(t, `settings | /bin/sed "s/usedns no/usedns yes/"`)
	if _, err := d.Ask(t.Context(), login("jo", 1, "127.0.0.1"), ownNothing); err != nil {
		t.Error(err)
	}
	if got := runs(); len(got) != 2 || !strings.Contains(got[1], "addr=127.0.0.1") {
		t.Errorf("runs with %q", got)
	}

	d, _ = fake(t, `echo x >> "$0".n; n=$(/usr/bin/wc -l < "$0".n); settings | /bin/sed "s/port 22/port $n/"`)
	if _, err := d.Ask(t.Context(), login("jo", 1, "10.0.0.1"), ownNothing); err == nil {
		t.Error("the port of each answer is another one, which is no error")
	}
}

// While the DNS does not answer, a client's name is its address, as for sshd. That refuses a
// login, but is no definite refusal if it depends on the client's name.
func TestNameServersOut(t *testing.T) {
	for setting, want := range map[string]struct{ refused, definite bool }{
		"allowusers jo":                    {},
		"allowusers al@*.example,jo":       {true, true},
		"allowusers jo@*.example":          {true, false},
		"allowusers jo@*.example al@*.com": {true, false},
		"allowusers al@*.example":          {true, true},
		"allowusers jo@192.0.2.1":          {},
		"allowusers jo@192.0.3.*":          {true, true},
		"allowusers jo@2001:db8::/32":      {true, true},
		"denyusers jo@192.0.2.0/24":        {true, true},
		"denyusers jo@*,!host.example":     {true, false},
		"denyusers jo@*.example":           {},
		"permitrootlogin no":               {},
	} {
		lines := strings.ReplaceAll(setting, " al", "\nallowusers al")
		d, _ := fake(t, `settings | /bin/sed "s/usedns no/usedns yes/"; printf "`+lines+`\n"`)
		d.resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, syscall.ENETUNREACH
		}}
		p, err := d.Ask(t.Context(), login("jo", 1, "192.0.2.1"), ownNothing)
		if (p == nil) != want.refused || (err != nil) != want.refused || errors.Is(err, ErrRefused) != want.definite {
			t.Errorf("%s: %v, %v; want %+v", setting, p, err, want)
		}
	}
}

// An sshd that does not answer well refuses all logins. The error says what it said.
func TestBrokenSSHD(t *testing.T) {
	for script, want := range map[string]string{
		"echo line 3: Bad configuration >&2; exit 255": "exit status 255: line 3: Bad configuration",
		"exit 0":                                        "prints no",
		"settings; exit 1":                              "exit status 1",
		"settings; kill -9 $$":                          "killed",
		"exec /usr/bin/yes":                             "prints more than",
		"exec /usr/bin/yes >&2":                         "prints more than",
		"echo \"port 22\nusepam perhaps\"":              "usepam",
		"/usr/bin/head -c 300000 /dev/zero >&2; exit 1": "exit status 1",
	} {
		d, runs := fake(t, script)
		p, err := d.Ask(t.Context(), login("jo", 1, "10.0.0.1"), ownNothing)
		if p != nil || err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%s: %v, %.1100v; want %q", script, p, err, want)
		}
		if n := len(runs()); n > 2 { // with -G and without
			t.Errorf("%s: %d runs for a login", script, n)
		}
	}
}

// A login whose client leaves ends its process. Until then, no source has the places of another one.
func TestHangingSSHD(t *testing.T) {
	d, runs := fake(t, `case "$*" in *user=slow*) exec /bin/sleep 60;; esac; settings`)
	from := func(source, user string) *Login {
		l := login(user, 1, "10.0.0.1")
		l.Source = source
		return l
	}
	const logins = maxRunning + 1 // some wait for the others
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	slow := make(chan error, logins)
	for range logins {
		go func() {
			_, err := d.Ask(ctx, from("hostile", "slow"), ownNothing)
			slow <- err
		}()
	}
	for start := time.Now(); len(runs()) < sourceRunning; time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatal("sshd is not run")
		}
	}
	if _, err := d.Ask(t.Context(), from("other", "quick"), ownNothing); err != nil {
		t.Error(err)
	}
	if ctx.Err() != nil || len(slow) > 0 {
		t.Error("the login of another source has waited")
	}
	cancel()
	for range logins {
		if err := <-slow; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want %v", err, context.Canceled)
		}
	}
	if n := len(runs()); n != sourceRunning+1 {
		t.Errorf("%d processes, want %d of the source and that of the other one", n, sourceRunning)
	}
}

// While the DNS does not answer, who waits for it keeps nobody from sshd.
func TestHangingDNS(t *testing.T) {
	d, _ := fake(t, `settings | /bin/sed "s/usedns no/usedns yes/"`)
	if _, err := d.Ask(t.Context(), login("jo", 1, "127.0.0.1"), ownNothing); err != nil { // now UseDNS is known
		t.Fatal(err)
	}
	asked := make(chan struct{})
	d.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case asked <- struct{}{}:
			<-ctx.Done()
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, sourceRunning)
	for range sourceRunning {
		go func() {
			_, err := d.Ask(ctx, login("jo", 1, "192.0.2.1"), ownNothing)
			ended <- err
		}()
	}
	for range sourceRunning {
		<-asked
	}
	for range sourceRunning { // of the same source
		end, ok := d.running.Try("")
		if !ok {
			t.Fatal("a login has a turn while the DNS is asked")
		}
		defer end()
	}
	cancel()
	for range sourceRunning {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want %v", err, context.Canceled)
		}
	}
}

// The answers that are kept have a bound.
func TestPoliciesAreBounded(t *testing.T) {
	d, _ := fake(t, "settings")
	d.Ask(t.Context(), login("jo", 1, "10.0.0.1"), ownNothing)
	for d.answers[question{}] = new(answer); len(d.answers) < maxAnswers; {
		d.answers[question{user: string(rune(len(d.answers)))}] = new(answer)
	}
	if _, err := d.Ask(t.Context(), login("al", 1, "10.0.0.1"), ownNothing); err != nil || len(d.answers) != 1 {
		t.Errorf("%d answers, %v", len(d.answers), err)
	}
}

// A login that waits for its turn takes the answer that another one has got meanwhile.
func TestAnswerWhileWaiting(t *testing.T) {
	d, runs := fake(t, "settings")
	l := login("ann", 2, "10.0.0.1")
	if _, err := d.Ask(t.Context(), l, ownNothing); err != nil {
		t.Fatal(err)
	}
	var ends []func()
	for range sourceRunning {
		end, err := d.running.Take(t.Context(), l.Source)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	asked := make(chan error)
	go func() {
		_, err := d.Ask(t.Context(), l, ownNothing)
		asked <- err
	}()
	d.mu.Lock()
	d.answers[question{l.User, plain(l.Client), plain(l.Server)}].asked = time.Now().Add(time.Hour)
	d.mu.Unlock()
	for _, end := range ends {
		end()
	}
	if err := <-asked; err != nil {
		t.Error(err)
	}
	if got := runs(); len(got) != 1 {
		t.Errorf("sshd was run with %q", got)
	}
}

// An answer is that of settings after each change that was made before the login.
func TestChangedSettings(t *testing.T) {
	d, runs := fake(t, "settings")
	for n := range 3 {
		if _, err := d.Ask(t.Context(), login("jo", 1, "10.0.0.1"), ownNothing); err != nil || len(runs()) != n+1 {
			t.Errorf("%v, and sshd was run with %q", err, runs())
		}
	}
}
