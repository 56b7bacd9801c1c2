package auth

import (
	"strings"
	"testing"
)

// Who may move files, and by which flags, is what sshd says.
func TestFiles(t *testing.T) {
	guest := &Enrolled{Kind: KindShare, Name: "g", Session: strings.Repeat("0", 32)}
	for _, test := range []struct {
		allowed Permissions
		flags   string
		err     string
	}{
		{allowed: Permissions{}},
		{allowed: Permissions{NoPTY: true, SFTP: "/usr/lib/openssh/sftp-server"}},
		{allowed: Permissions{SFTP: "internal-sftp -f AUTH -lINFO -e"}},
		{allowed: Permissions{SFTP: "internal-sftp -Reu 027"}, flags: "-R -u 027"},
		{allowed: Permissions{SFTP: "/x/sftp-server -d /srv -u077"}, flags: "-d /srv -u 077"},
		{allowed: Permissions{SFTP: "internal-sftp -R", Command: "internal-sftp -u 022"}, flags: "-u 022"},
		{allowed: Permissions{Command: "internal-sftp"}},
		{allowed: Permissions{Command: "internal-sftp-2"}, err: "forces a command"},
		{allowed: Permissions{Command: "date"}, err: "forces a command"},
		{allowed: Permissions{Command: "internal-sftp", SFTP: NoSFTP}, err: "no Subsystem sftp"},
		{allowed: Permissions{SFTP: NoSFTP}, err: "no Subsystem sftp"},
		{allowed: Permissions{Enrolled: guest}, err: "guest"},
		{allowed: Permissions{SFTP: "/usr/bin/wrapper"}, err: `"/usr/bin/wrapper", which quicterm does not support`},
		{allowed: Permissions{SFTP: "internal-sftp -P write"}, err: `"-P"`},
		{allowed: Permissions{SFTP: "internal-sftp -d /home/%u"}, err: `"-d"`},
		{allowed: Permissions{SFTP: "internal-sftp -u"}, err: `"-u"`},
		{allowed: Permissions{SFTP: "internal-sftp - x"}, err: `"-"`},
		{allowed: Permissions{SFTP: `internal-sftp -d "a b"`}, err: "does not support"},
	} {
		flags, err := test.allowed.Files()
		if strings.Join(flags, " ") != test.flags || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%+v: %q, %v; want %q, %q", test.allowed, flags, err, test.flags, test.err)
		}
	}
}
