package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/rig"
)

// Root's daemon records logins with terminals as sshd does, with PAM and without: the system's programs
// show account, terminal and client, and the end, also if the daemon did not run then.
func TestLoginRecords(t *testing.T) {
	if !inside(t) {
		return
	}
	h := pamHost(t)
	for _, program := range []string{"who", "last", "lastlog"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	if err := unix.Mount("tmpfs", "/var/log", "tmpfs", 0, "mode=755"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile("/run/utmp", nil, 0o664),
		os.WriteFile("/var/log/wtmp", nil, 0o664), os.WriteFile("/var/log/lastlog", nil, 0o664)); err != nil {
		t.Fatal(err)
	}
	show := func(args ...string) string {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
		return string(out)
	}
	await := func(want string, args ...string) {
		t.Helper()
		awaitState(t, fmt.Sprintf("%q to print %s: %s", args, want, show(args...)), func() bool {
			return regexp.MustCompile(want).MatchString(show(args...))
		})
	}
	h.Settings["login_records"] = `"on"`
	ended := 0
	for _, login := range []string{"pam", "direct"} {
		if login == "direct" {
			withoutSu(t)
		}
		h.Start()
		h.KnowName("127.0.0.1", h.Addr.Port(), h.Path("host_key.pub"))
		wantOutput(t, h.To("127.0.0.1", h.Addr.Port(), "connect", []string{"-l", "ann"}, "echo no terminal"), "no terminal\n")
		for _, outlives := range []bool{true, false} {
			x := rig.Open(t, h.To("127.0.0.1", h.Addr.Port(), "connect", []string{"-l", "ann"}))
			x.Expect(`\$ `)
			x.Send("echo pid=$$ $(tty)\r")
			ids := x.Expect(`pid=(\d+) /dev/(pts/\d+)\r`)
			x.Expect(`\$ `)
			line := `ann\s+` + ids[2] + `\s+`
			await(`^`+line+`.*\(127\.0\.0\.1\)\n$`, "who", "/run/utmp")
			// last takes a process for gone whose login uid of the audit system is not set, as in containers.
			await(`(?m)^`+line+`127\.0\.0\.1 .*(still logged in|gone - no logout)`, "last", "-f", "/var/log/wtmp")
			await(`(?m)^`+line+`127\.0\.0\.1 `, "lastlog", "-u", "ann")
			if outlives {
				h.Stop(syscall.SIGKILL)
			}
			var pid int
			fmt.Sscan(ids[1], &pid)
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if outlives {
				h.Start()
			}
			x.Exit()
			await(`^$`, "who", "/run/utmp")
			ended++
			// last shows one that ends in this second as running.
			over := regexp.MustCompile(`(?m)^ann\s+pts/\d+\s+127\.0\.0\.1 .* - .*\(00:\d\d\)$`)
			awaitState(t, fmt.Sprintf("last to show the ends of %d logins", ended), func() bool {
				out := show("last", "-f", "/var/log/wtmp")
				return strings.Count(out, "ann ") == ended && len(over.FindAllString(out, -1)) == ended
			})
		}
		h.Stop(syscall.SIGTERM)
	}
}
