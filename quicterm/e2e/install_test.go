//go:build linux || darwin

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// installer returns a function that runs qt install.
func installer(h *rig.Host, qt, config string) func(args ...string) *exec.Cmd {
	return func(args ...string) *exec.Cmd {
		cmd := exec.Command(qt, append([]string{"install", "-F", config}, args...)...)
		cmd.Env = h.Env()
		return cmd
	}
}

// wantSays runs a command, which must print one text that matches on standard error.
func wantSays(t *testing.T, cmd *exec.Cmd, want string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil || !regexp.MustCompile("^(?s)"+want+"\n$").Match(out) {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}

// copyFile copies a program. change, if it is not nil, changes its content.
func copyFile(t *testing.T, from, to string, change func([]byte) []byte) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		content = change(content)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	// A child of another test must not inherit the file: what is open for writing cannot run.
	syscall.ForkLock.RLock()
	err = os.WriteFile(to, content, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

// qt install puts qtd into a home, again and in another version. Sessions of the installed one continue.
func TestInstall(t *testing.T) {
	skipUnderRace(t)
	h := newHost(t)
	config := startSSHD(t, h, "")
	install := installer(h, filepath.Join(bin, "qt"), config)
	qtd := h.Path("home/.local/bin/qtd")
	wantSays(t, install("server"), `qt: copying qtd \S+ for \S+, \S+ MB, to server
qt: qtd \S+ on server is installed: `+qtd)
	if info, err := os.Stat(qtd); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	wantSays(t, install("server"), `qt: server has this qtd already: qtd \S+, `+qtd)

	h.Bin = filepath.Dir(qtd)
	if err := os.Symlink(filepath.Join(bin, "qt"), filepath.Join(h.Bin, "qt")); err != nil {
		t.Fatal(err)
	}
	h.Start()
	x := h.Shell(h.Addr)
	other := h.Path("other/qtd")
	copyFile(t, qtd, other, func(b []byte) []byte { return append(b, 0) })
	wantSays(t, install("--from", other, "server"), `qt: copying .*
qt: qtd \S+ on server replaces qtd \S+: `+qtd+"; sessions that run there continue")
	x.Run("echo replaced", "replaced")
	h.Shell(h.Addr).Run("echo new", "new")
	h.Bin = bin
}

// The qtd for another platform comes from the release, or is asked for.
func TestInstallPlatforms(t *testing.T) {
	skipUnderRace(t)
	h := newHost(t)
	other, machine := "arm64", "aarch64" // a name as long as that of the tests' platform
	if runtime.GOARCH == other {
		other, machine = "amd64", "x86_64"
	}
	h.Write("tools/uname", "#!/bin/sh\necho "+runtime.GOOS+" "+machine+"\n")
	if err := os.Chmod(h.Path("tools/uname"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := startSSHD(t, h, h.Path("tools"))
	copyFile(t, filepath.Join(bin, "qt"), h.Path("release/bin/qt"), nil)
	install := installer(h, h.Path("release/bin/qt"), config)
	wants := regexp.QuoteMeta(runtime.GOOS + "/" + other)
	wantError(t, install("server"), "could not install qtd on server: no qtd for "+wants+" .*, and name the file with --from")
	h.Write("note", "text")
	wantError(t, install("--from", h.Path("note"), "server"), "note is not a qtd")
	wantError(t, install("--from", h.Path("none"), "server"), "none: no such file")
	qtd := filepath.Join(bin, "qtd")
	wantError(t, install("--from", qtd, "server"), "qtd is for "+runtime.GOOS+"/"+runtime.GOARCH+", and the host is "+wants+"")

	// The release has one. It says that it is for the other processor, and this one runs it.
	rename := func(b []byte) []byte {
		return bytes.ReplaceAll(b, []byte("GOARCH="+runtime.GOARCH), []byte("GOARCH="+other))
	}
	release := h.Path("release/dist/" + runtime.GOOS + "/" + other + "/qtd")
	copyFile(t, qtd, release, rename)
	wantSays(t, install("server"), "qt: copying qtd .* for "+wants+".* is installed: .*")
	// This one, the processor does not run. The other one stays.
	copyFile(t, qtd, release, func(b []byte) []byte {
		const machine = 18 // offset of e_machine in an ELF file
		b = rename(b)
		b[machine] ^= 0xff
		return b
	})
	cmd := install("server")
	out, err := cmd.CombinedOutput()
	if err == nil || !regexp.MustCompile(`(?s)\nqt: could not install qtd on server: the copied qtd does not run there: [^\n]+\n$`).Match(out) {
		t.Errorf("%v: %q", err, out)
	}
	if out, err := exec.Command(h.Path("home/.local/bin/qtd"), "version").Output(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// What a host prints reaches the terminal only as text, and each login that cannot install
// says why.
func TestInstallHostile(t *testing.T) {
	skipUnderRace(t)
	h := newHost(t)
	h.Write("shell", `printf 'motd \033[2J\r\n'; printf '\033]2;title\007\n' >&2; eval "$SSH_ORIGINAL_COMMAND"`)
	noisy := startSSHD(t, h, "", "ForceCommand . "+h.Path("shell"))
	out, err := installer(h, filepath.Join(bin, "qt"), noisy)("server").CombinedOutput()
	if want := "?]2;title?\nqt: copying"; err != nil || !strings.HasPrefix(string(out), want) || bytes.ContainsAny(out, "\033\007\r") {
		t.Errorf("%v: %q, want %q first", err, out, want)
	}
	forced := startSSHD(t, h, "", `ForceCommand printf 'only \033[2J this\n'`)
	wantError(t, installer(h, filepath.Join(bin, "qt"), forced)("server"),
		`could not install qtd on server: the login does not run sh, but prints "only \?\[2J this"`)
	wantError(t, installer(h, filepath.Join(bin, "qt"), forced)("-l", "nobody-here", "server"),
		`could not install qtd on server: ssh to server: .*: Permission denied \(.*\)`)
}
