package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// passwordHash is that of "open sesame".
const passwordHash = "$6$quicterm$CfxDe1C371H82Cksc0F/aSe8ujtEGy9GpUWUeLXaM8mhMm0fw6TJcHQFOqA9uLL5zpEcazoVdcJ9U6k5L0DQW0"

// servePasswords makes a host into whose root account a password lets, inside a test that has its
// own mounts. It takes the user's key away.
func servePasswords(t *testing.T) *sshHost {
	t.Helper()
	rig.IP(t, "link", "set", "lo", "up")
	ownTemporary(t)
	ownEtc(t)
	if err := os.WriteFile("/etc/shadow", []byte("root:"+passwordHash+":19000:0:99999:7:::\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSSHHost(t)
	s.remove("id")
	s.Serve("PasswordAuthentication yes")
	return s
}

// What ssh says of a wrong password comes before it asks again.
func TestSSHPassword(t *testing.T) {
	if !inside(t) {
		return
	}
	s := servePasswords(t)
	for range 5 {
		x := rig.Open(t, s.QT("connect", []string{"-l", "root", "--bootstrap", "ssh"}, "echo let in"))
		x.Expect(`password: `)
		x.Send("wrong\r")
		x.Expect(`^\r\nPermission denied, please try again\.\r\n\S+ password: `)
		x.Send("open sesame\r")
		x.Expect(`^\r\nlet in\r\n`)
		x.Exit()
	}
	y := rig.Open(t, s.QT("install", []string{"-l", "root"}))
	y.Expect(`password: `)
	y.Send("wrong\r")
	y.Expect(`^\r\nPermission denied, please try again\.\r\n\S+ password: `)
	y.Send("\x03")
	y.Expect(`^\r\nqt: ended by SIGINT\r\n`)
	if status := y.Exit(); status != 130 {
		t.Errorf("exit status %d after Ctrl-C", status)
	}

	// A host without qtd has one login more, which the session uses too.
	if err := os.MkdirAll("/etc/quicterm", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/etc/quicterm/qtd.toml", []byte(s.Read("qtd.toml")), 0o644); err != nil {
		t.Fatal(err)
	}
	s.remove("remote/qtd")
	y = rig.Open(t, s.QT("connect", []string{"-l", "root", "-t"}, "echo let in; sleep 1"))
	y.Expect(`password: `)
	y.Send("open sesame\r")
	y.Expect(`^\r\nqtd is not installed on target.* \(yes/no\)\? `)
	y.Send("yes\r")
	y.Expect(`password: `)
	y.Send("open sesame\r")
	y.Expect(`^\r\nqt: copying .*\r\nqt: .* is installed: .*\r\n`)
	y.Expect(`let in\r\n`)
	y.Exit()
	if left, err := filepath.Glob("/tmp/qt-ssh-*"); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}
