package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const onlySFTP = "This service allows sftp connections only.\n"

// fileCases are about who may move files.
var fileCases = []policyCase{
	{name: "files-all", want: "ran\n", files: "rw"},
	{name: "files-restrict", keys: `restrict KEY`, want: "ran\n", files: "rw"},
	{name: "files-key", keys: `command="echo no" KEY`, want: "no\n"},
	{name: "files-config", config: "ForceCommand echo no", want: "no\n"},
	{name: "files-only", keys: `command="internal-sftp" KEY`, bySSH: onlySFTP, files: "rw"},
	{name: "files-read", config: "ForceCommand internal-sftp -R", bySSH: onlySFTP, files: "r"},
	{name: "files-both", config: "ForceCommand internal-sftp", keys: `command="date" KEY`, bySSH: onlySFTP, files: "rw"},
}

// Root's daemon moves files for whom the sshd of the machine does, and for nobody else.
func TestSSHDFiles(t *testing.T) {
	skipUnderRace(t)
	if !inside(t) {
		return
	}
	ownTemporary(t)
	if _, err := exec.LookPath("sftp"); err != nil {
		t.Skip(err)
	}
	h := newHost(t)
	machine(t, h)
	startFollowing(t, h)
	first := slices.IndexFunc(policyCases, func(c policyCase) bool { return c.name == fileCases[0].name })
	for i, c := range fileCases {
		if err := os.Chown("/home/"+c.name, 70000+first+i, 70000+first+i); err != nil {
			t.Fatal(err)
		}
		pipe := h.To("127.0.0.1", h.Addr.Port(), "sftp-pipe", []string{"-l", c.name, "-i", h.Path("id")})
		h.Write("pipe", "#!/bin/sh\nexec '"+strings.Join(pipe.Args, "' '")+"'\n")
		if err := os.Chmod(h.Path("pipe"), 0o700); err != nil {
			t.Fatal(err)
		}
		for by, args := range map[string][]string{
			"qt": {"-D", h.Path("pipe")},
			"ssh": {"-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
				"-o", "LogLevel=ERROR", "-o", "IdentitiesOnly=yes", "-o", "KexAlgorithms=curve25519-sha256", "-i", h.Path("id"),
				c.name + "@127.0.0.1"},
		} {
			got := ""
			var said []byte
			for what, batch := range map[string]string{"r": "get .ssh/authorized_keys /dev/null\n", "w": "mkdir new\nrmdir new\n"} {
				cmd := exec.Command("sftp", append([]string{"-q", "-b", "-"}, args...)...)
				cmd.Env, cmd.Dir, cmd.Stdin = pipe.Env, h.Dir, strings.NewReader(batch)
				out, err := cmd.CombinedOutput()
				if err == nil && what == "r" {
					got = what + got
				} else if err == nil {
					got += what
				}
				said = append(said, out...)
			}
			if got != c.files {
				t.Errorf("%s by %s: %q, want %q: %s", c.name, by, got, c.files, said)
			}
		}
	}

	cmd := h.To("127.0.0.1", h.Addr.Port(), "connect", []string{"-l", "files-only", "-i", h.Path("id")}, command)
	wantError(t, cmd, "this login may only move files: use qt cp")
	cmd = h.To("127.0.0.1", h.Addr.Port(), "sftp-pipe", []string{"-l", "files-key", "-i", h.Path("id")})
	wantError(t, cmd, "no files may be moved: the key, or the server's sshd_config, forces a command")

	// A copy gets the mode that the account's umask leaves, and what is only read is not written.
	h.Write("a", "content")
	copyAs := func(account string) *exec.Cmd {
		cmd := h.To("127.0.0.1", h.Addr.Port(), "cp", []string{"-l", account, "-i", h.Path("id")})
		cmd.Args = append(cmd.Args[:len(cmd.Args)-1], h.Path("a"), "127.0.0.1:")
		return cmd
	}
	if out, err := copyAs("files-only").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if got, err := os.ReadFile("/home/files-only/a"); string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
	if out, err := copyAs("files-read").CombinedOutput(); exitStatus(t, err) != 1 || string(out) != "qt: 127.0.0.1:a: permission denied\n" {
		t.Errorf("a login that may only read: %v, %s", err, out)
	}
}
