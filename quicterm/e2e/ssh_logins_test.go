//go:build linux || darwin

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// However ssh logs in, qt gets in.
func TestSSHLogins(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		prepare func(t *testing.T, s *sshHost) (env []string)
	}{
		{"agent", func(t *testing.T, s *sshHost) []string {
			socket := s.Path("agent")
			s.background(exec.Command("ssh-agent", "-D", "-a", socket), socket)
			add := exec.Command("ssh-add", "-q", s.Path("id"))
			add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
			mustOutput(t, add)
			s.remove("id")
			return []string{"SSH_AUTH_SOCK=" + socket}
		}},
		{"certificate", func(t *testing.T, s *sshHost) []string {
			s.NewKey("ca")
			s.Write("authorized_keys", "cert-authority "+s.Read("ca.pub"))
			me, err := user.Current()
			if err != nil {
				t.Fatal(err)
			}
			mustOutput(t, exec.Command("ssh-keygen", "-q", "-s", s.Path("ca"), "-I", "test", "-n", me.Username, s.Path("id.pub")))
			return nil
		}},
		{"askpass", func(t *testing.T, s *sshHost) []string {
			s.protect("open sesame")
			s.Write("askpass", "#!/bin/sh\necho open sesame\n")
			if err := os.Chmod(s.Path("askpass"), 0o700); err != nil {
				t.Fatal(err)
			}
			return []string{"SSH_ASKPASS=" + s.Path("askpass"), "SSH_ASKPASS_REQUIRE=force", "DISPLAY=none"}
		}},
		{"two jump hosts", func(t *testing.T, s *sshHost) []string {
			var jumps []string
			known := s.Read("known_hosts_ssh")
			for range 2 {
				addr, err := s.Host.SSHD("")
				if err != nil {
					t.Fatal(err)
				}
				jumps = append(jumps, addr.String())
				known += fmt.Sprintf("[127.0.0.1]:%d %s", addr.Port(), s.Read("host_key.pub"))
			}
			s.Write("known_hosts_ssh", known)
			s.SSH = append(s.SSH, "ProxyJump "+strings.Join(jumps, ","), "Host *")
			return nil
		}},
		{"master", func(t *testing.T, s *sshHost) []string {
			socket := s.Path("master")
			s.SSH = append(s.SSH, "ControlPath "+socket)
			s.background(exec.Command("ssh", "-F", s.Config(), "-M", "-N", target), socket)
			s.Write("authorized_keys", "") // nobody else gets in
			return nil
		}},
		{"session turned off", func(t *testing.T, s *sshHost) []string {
			s.SSH = append(s.SSH, "IgnoreUnknown SessionType,StdinNull,ForkAfterAuthentication",
				"SessionType none", "StdinNull yes", "ForkAfterAuthentication yes", "RemoteCommand false", "RequestTTY force")
			return nil
		}},
		{"restricted key", func(t *testing.T, s *sshHost) []string {
			s.Write("authorized_keys", "restrict "+s.Read("id.pub"))
			return nil
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newSSHHost(t)
			s.Serve()
			env := test.prepare(t, s)
			cmd := s.QT("connect", nil, "echo in")
			cmd.Env = append(cmd.Env, env...)
			wantOutput(t, cmd, "in\n")
		})
	}
}

func (s *sshHost) remove(file string) {
	if err := os.Remove(s.Path(file)); err != nil {
		s.T.Fatal(err)
	}
}

// background starts a program that makes a socket, and ends it with the test.
func (s *sshHost) background(cmd *exec.Cmd, socket string) {
	t := s.T
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("unix", socket) // the file is there before its listener
		if err == nil {
			c.Close()
			return
		} else if time.Since(start) > rig.Patience {
			t.Fatal(err)
		}
	}
}
