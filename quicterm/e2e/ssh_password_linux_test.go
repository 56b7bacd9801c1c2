package e2e

import (
	"os"
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
	skipUnderRace(t)
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
}
