package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/web/link"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An enrolling is a machine with root's daemon and the accounts anna and otto, whose homes only this test sees.
type enrolling struct {
	*rig.Host
	t       *testing.T
	enrolls int // keys so far
}

// A keyPair is a key with its file, the key of authorized_keys or one that is to be enrolled.
type keyPair struct {
	ssh.Signer
	file string
}

// enrollingMachine makes this process's machine such a one.
func enrollingMachine(t *testing.T) *enrolling {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ownTemporary(t)
	h := &enrolling{Host: newHost(t), t: t}
	h.Identities = nil
	check(unix.Mount("tmpfs", "/home", "tmpfs", 0, ""))
	for _, dir := range []string{"/home", "/run", bin, filepath.Join(bin, "qt"), filepath.Join(bin, "qtd"), h.Dir} {
		check(os.Chmod(dir, 0o755))
	}
	rig.IP(t, "link", "set", "lo", "up")
	ownEtc(t)
	passwd, group, shadow := "root:x:0:0::/root:/bin/sh\n", "root:x:0:\n", "root:*:1::::::\n"
	for i, name := range []string{"anna", "otto"} {
		uid := 70_000 + i
		passwd += fmt.Sprintf("%s:x:%d:%d::/home/%s:/bin/sh\n", name, uid, uid, name)
		group += fmt.Sprintf("%s:x:%d:\n", name, uid)
		shadow += name + ":*:19000:0:99999:7:::\n"
		check(os.MkdirAll("/home/"+name+"/.ssh", 0o700))
		check(os.WriteFile(h.keysOf(name), ssh.MarshalAuthorizedKey(h.Key), 0o600))
		for _, dir := range []string{"", "/.ssh", "/.ssh/authorized_keys"} {
			check(os.Chown("/home/"+name+dir, uid, uid))
		}
	}
	check(os.WriteFile("/etc/passwd", []byte(passwd), 0o644))
	check(os.WriteFile("/etc/group", []byte(group), 0o644))
	check(os.WriteFile("/etc/shadow", []byte(shadow), 0o600))
	h.Settings["sshd_policy"], h.Settings["runtime_dir"] = `"ignore"`, `""`
	h.Settings["authorized_keys_files"] = `["%h/.ssh/authorized_keys"]`
	h.Start()
	h.KnowName("127.0.0.1", h.Addr.Port(), h.Path("host_key.pub"))
	return h
}

func (h *enrolling) keysOf(account string) string {
	return "/home/" + account + "/.ssh/authorized_keys"
}

// as returns a client of an account that logs in by a key.
func (h *enrolling) as(account string, signer ssh.Signer) *client.Client {
	c := client.New(client.Config{
		User: account, Keys: []*auth.UserKey{auth.NewUserKey(signer, "")},
		Resolve:   func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{h.Addr}, nil },
		CheckHost: func(ssh.PublicKey) error { return nil },
	})
	h.t.Cleanup(func() { c.Close() })
	return c
}

// key returns the key in a file.
func (h *enrolling) key(file string) keyPair {
	h.t.Helper()
	signer, err := ssh.ParsePrivateKey([]byte(h.Read(file)))
	if err != nil {
		h.t.Fatal(err)
	}
	return keyPair{signer, file}
}

// owner returns the key of authorized_keys.
func (h *enrolling) owner() keyPair { return h.key("id") }

// enroll makes a client enroll a new key, and returns it.
func (h *enrolling) enroll(c *client.Client, req wire.Enroll) keyPair {
	h.t.Helper()
	h.enrolls++
	k := fmt.Sprint("key", h.enrolls)
	req.Key = h.NewKey(k).Marshal()
	if _, err := c.Enroll(h.t.Context(), &req); err != nil {
		h.t.Fatalf("enroll a %s: %v", req.Kind, err)
	}
	return h.key(k)
}

// wantLogin checks whether a key gets in.
func (h *enrolling) wantLogin(why, account string, signer ssh.Signer, in bool) {
	h.t.Helper()
	_, _, err := h.as(account, signer).List(h.t.Context())
	if in != (err == nil) {
		h.t.Errorf("%s: %v", why, err)
	}
}

func fileOf(account string, signer ssh.Signer) string {
	sum := sha256.Sum256(signer.PublicKey().Marshal())
	return "/home/" + account + "/.config/quicterm/keys/" + hex.EncodeToString(sum[:])
}

// A link lets one login in, which enrolls one device. The device lets in until the key of the login that has made the link
// is removed, restricted to its addresses, or revoked; it enrolls nobody.
func TestEnrolledDevice(t *testing.T) {
	if !insideWith(t, "ip") {
		return
	}
	h := enrollingMachine(t)
	owner := h.as("anna", h.owner())
	device := func() keyPair {
		t.Helper()
		l := h.as("anna", h.enroll(owner, wire.Enroll{Kind: auth.KindLink, Name: "a link"}))
		d := h.enroll(l, wire.Enroll{Kind: auth.KindDevice, Name: "phone"})
		for _, kind := range []string{auth.KindDevice, auth.KindLink, auth.KindShare} {
			other := link.NewSeed().Signer().PublicKey().Marshal()
			if _, err := l.Enroll(t.Context(), &wire.Enroll{Kind: kind, Key: other, Name: "second", Session: "s", Seconds: 9}); err == nil {
				t.Errorf("a link enrolls a second key, a %s", kind)
			}
		}
		return d
	}
	used := h.enroll(owner, wire.Enroll{Kind: auth.KindLink, Name: "a link"})
	h.wantLogin("a link", "anna", used, true)
	h.wantLogin("a link that was used", "anna", used, false)
	h.wantLogin("a link for another account", "otto", h.enroll(owner, wire.Enroll{Kind: auth.KindLink, Name: "a link"}), false)

	// A link that is removed after its login enrolls nothing.
	for what, remove := range map[string]func(k keyPair) error{
		"revoked": func(k keyPair) error { return h.revoke(ssh.FingerprintSHA256(k.PublicKey())).Run() },
		"removed": func(k keyPair) error { return os.Remove(fileOf("anna", k) + ".spent") },
	} {
		k := h.enroll(owner, wire.Enroll{Kind: auth.KindLink, Name: "a link"})
		l := h.as("anna", k)
		if _, _, err := l.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := remove(k); err != nil {
			t.Fatal(err)
		}
		late := link.NewSeed().Signer()
		req := &wire.Enroll{Kind: auth.KindDevice, Key: late.PublicKey().Marshal(), Name: "late"}
		if _, err := l.Enroll(t.Context(), req); err == nil {
			t.Errorf("a link that was %s enrolls a device", what)
		}
		h.wantLogin("the device of a link that was "+what, "anna", late, false)
	}

	d := device()
	h.wantLogin("a device", "anna", d, true)
	for _, kind := range []string{auth.KindDevice, auth.KindLink, auth.KindShare} {
		req := &wire.Enroll{Kind: kind, Key: used.PublicKey().Marshal(), Name: "x", Session: "s", Seconds: 9}
		if _, err := h.as("anna", d).Enroll(t.Context(), req); err == nil || !strings.Contains(err.Error(), "enrolls no") {
			t.Errorf("a device enrolls a %s: %v", kind, err)
		}
	}

	// The file of a device in the directory of another account lets nobody in there, whoever owns it.
	content, err := os.ReadFile(fileOf("anna", d))
	if err != nil {
		t.Fatal(err)
	}
	h.enroll(h.as("otto", h.owner()), wire.Enroll{Kind: auth.KindLink, Name: "makes the directory"})
	if err := os.WriteFile(fileOf("otto", d), content, 0o600); err != nil {
		t.Fatal(err)
	}
	h.wantLogin("a stolen file that root owns", "otto", d, false)
	if err := os.Chown(fileOf("otto", d), 70_000, 70_000); err != nil {
		t.Fatal(err)
	}
	h.wantLogin("a stolen file", "otto", d, false)

	// What becomes of the key that has enrolled it, at once and without a word to the device.
	key := string(ssh.MarshalAuthorizedKey(h.Key))
	for what, keys := range map[string]string{
		"removed": "", "from elsewhere": `from="192.0.2.0/24" ` + key, "expired": `expiry-time="20200101" ` + key,
	} {
		h.authorize(keys)
		h.wantLogin("a device whose issuer is "+what, "anna", d, false)
		h.authorize(key)
		h.wantLogin("a device whose issuer is back", "anna", d, true)
	}
	h.authorize(`command="echo forced" ` + key)
	wantOutput(t, h.by(d, "connect", "echo ran"), "forced\n")
	if _, err := h.as("anna", h.owner()).Enroll(t.Context(), &wire.Enroll{Kind: auth.KindLink, Key: used.PublicKey().Marshal(), Name: "x"}); err == nil {
		t.Error("a key with a command enrolls a link")
	}
	h.authorize(key)

	// An account that may not add keys by itself has no devices.
	if err := os.Chown(h.keysOf("anna"), 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(h.keysOf("anna"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.wantLogin("a device where the account adds no keys", "anna", d, false)
	_, err = h.as("anna", h.owner()).Enroll(t.Context(), &wire.Enroll{Kind: auth.KindDevice, Key: h.NewKey("off").Marshal(), Name: "x"})
	if err == nil || !strings.Contains(err.Error(), "are off") {
		t.Errorf("a device where the account adds no keys is enrolled: %v", err)
	}
	if err := os.Chown(h.keysOf("anna"), 70_000, 70_000); err != nil {
		t.Fatal(err)
	}

	// A session of the device ends with it.
	s := rig.Open(t, h.by(d, "connect"))
	s.Run("echo in''side", "inside")
	out, err := h.by(h.owner(), "devices").CombinedOutput()
	if err != nil || !regexp.MustCompile(`phone +device .*SHA256:`).Match(out) {
		t.Errorf("qt devices: %v\n%s", err, out)
	}
	if out, err := h.revoke("phone").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("1 client has lost access, and enrolled keys that were removed: 1")) {
		t.Errorf("qt revoke phone: %v\n%s", err, out)
	}
	s.Expect("access was withdrawn")
	s.Exit()
	h.wantLogin("a device that was revoked", "anna", d, false)

	// A device ends with the key that has enrolled it, wherever that is revoked.
	d = device()
	s = rig.Open(t, h.by(d, "connect"))
	s.Run("echo in''side", "inside")
	if out, err := h.revoke(ssh.FingerprintSHA256(h.Key)).CombinedOutput(); err != nil {
		t.Errorf("qt revoke: %v\n%s", err, out)
	}
	s.Expect("access was withdrawn")
	s.Exit()
	h.wantLogin("a device whose issuer was revoked", "anna", d, false)
}

// authorize writes anna's authorized_keys.
func (h *enrolling) authorize(keys string) {
	h.t.Helper()
	if err := os.WriteFile(h.keysOf("anna"), []byte(keys), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// by returns a command of qt at anna's account, by a key. Its flags are before the host.
func (h *enrolling) by(k keyPair, command string, args ...string) *exec.Cmd {
	h.t.Helper()
	words := strings.Fields(command)
	flags := append([]string{"-l", "anna", "-i", h.Path(k.file)}, words[1:]...)
	return h.To("127.0.0.1", h.Addr.Port(), words[0], flags, args...)
}

// revoke returns a command that revokes.
func (h *enrolling) revoke(what string) *exec.Cmd {
	h.t.Helper()
	return h.by(h.owner(), "revoke "+what)
}

// A guest sees one session from its screen on, and does nothing else. The writer is told of it, and it is gone when the
// share is.
func TestGuest(t *testing.T) {
	if !insideWith(t, "ip") {
		return
	}
	h := enrollingMachine(t)
	s := rig.Open(t, h.by(h.owner(), "connect -s mine"))
	other := rig.Open(t, h.by(h.owner(), "connect -s other"))
	other.Run("echo the ot''her", "the other")
	s.Run("seq -f 'gone%.0f' 100; echo on the scr''een", "on the screen")
	owner := h.as("anna", h.owner())
	share := func(types, once bool, seconds uint32) keyPair {
		t.Helper()
		return h.enroll(owner, wire.Enroll{
			Kind: auth.KindShare, Name: "a friend", Session: "mine", Types: types, Once: once, Seconds: seconds,
		})
	}
	guest := share(false, false, 3600)

	// All requests but the one attach.
	for what, ask := range map[string]func(c *client.Client) error{
		"list":     func(c *client.Client) error { _, _, err := c.List(t.Context()); return err },
		"kill":     func(c *client.Client) error { return c.Kill(t.Context(), "mine")[0] },
		"rename":   func(c *client.Client) error { return c.Rename(t.Context(), "mine", "yours") },
		"clear":    func(c *client.Client) error { _, err := c.Clear(t.Context(), "mine"); return err },
		"revoke":   func(c *client.Client) error { _, err := c.Revoke(t.Context(), nil); return err },
		"describe": func(c *client.Client) error { _, _, err := c.Describe(t.Context()); return err },
		"keys":     func(c *client.Client) error { _, err := c.Keys(t.Context()); return err },
		"enroll": func(c *client.Client) error {
			_, err := c.Enroll(t.Context(), &wire.Enroll{Kind: auth.KindDevice, Key: link.NewSeed().Signer().PublicKey().Marshal(), Name: "x"})
			return err
		},
	} {
		for _, k := range []keyPair{guest, share(true, false, 3600)} {
			if err := ask(h.as("anna", k)); err == nil || !strings.Contains(err.Error(), "and no further") {
				t.Errorf("a guest may %s: %v", what, err)
			}
		}
	}
	for command, refusal := range map[string]string{
		"connect": "the share is for watching", "attach": "the share is for watching", "attach --share": "the share is for watching",
		"peek": "no further|the share is for watching",
	} {
		var args []string
		if command != "connect" {
			args = append(args, "mine")
		}
		x := rig.Open(t, h.by(guest, command, args...))
		x.Expect(refusal)
		if x.Exit() == 0 {
			t.Errorf("a guest may %s", command)
		}
	}

	// A guest begins at the screen, of the session of its share whichever it asks for.
	g := rig.Open(t, h.by(guest, "watch", "other"))
	g.Expect("on the screen")
	s.Expect("guest a friend@127.0.0.1")
	s.Run("echo pre''sent", "present")
	g.Expect("present")
	g.Send("echo in''truder\r")
	s.Run("echo af''ter", "after")
	g.Expect("after")
	for _, absent := range []string{"gone1\r", "the other", "intruder"} {
		if strings.Contains(g.Out.String(), absent) {
			t.Errorf("the guest sees %q", absent)
		}
	}

	// It is gone when the share ends, at once or with its time.
	out, err := h.by(h.owner(), "shares").CombinedOutput()
	if err != nil || !regexp.MustCompile(`a friend +mine +watch`).Match(out) {
		t.Errorf("qt shares: %v\n%s", err, out)
	}
	if out, err := h.by(h.owner(), "shares --end "+ssh.FingerprintSHA256(guest.PublicKey())[:14]).CombinedOutput(); err != nil {
		t.Errorf("qt shares --end: %v\n%s", err, out)
	}
	g.Expect("access was withdrawn")
	g.Exit()
	h.wantRefused("after the end of the share", guest)

	typing := share(true, true, 3600)
	g = rig.Open(t, h.by(typing, "attach --share", "mine"))
	g.Expect("present")
	g.Send("echo by the gu''est\r")
	s.Expect("by the guest")
	h.wantRefused("a second guest of one", typing)
	g.Send("~.")
	g.Exit()

	past := share(false, false, 3600)
	content, err := os.ReadFile(fileOf("anna", past))
	if err != nil {
		t.Fatal(err)
	}
	content = regexp.MustCompile(`expiry-time="[^"]*"`).ReplaceAll(content, []byte(`expiry-time="20200101Z"`))
	if err := os.WriteFile(fileOf("anna", past), content, 0o600); err != nil {
		t.Fatal(err)
	}
	h.wantRefused("a share that has expired", past)

	// The command makes a link to the same.
	cmd := h.by(h.owner(), "share --type --url https://server.example", "mine")
	var warned bytes.Buffer
	cmd.Stderr = &warned
	printed, err := cmd.Output()
	page, fragment, _ := strings.Cut(strings.TrimSpace(string(printed)), "#")
	l, linkErr := link.Parse(fragment)
	if err != nil || linkErr != nil || page != "https://server.example/" || l.User != "anna" || l.Share == nil || !l.Share.Types {
		t.Fatalf("qt share: %v, %v: %s%s", err, linkErr, printed, &warned)
	}
	if !strings.Contains(warned.String(), "can do anything that this account can, also after the share ends") {
		t.Errorf("qt share --type does not warn: %s", &warned)
	}
	if _, _, err := h.as("anna", l.Seed.Signer()).List(t.Context()); err == nil || !strings.Contains(err.Error(), "no further") {
		t.Errorf("the link of qt share is none of a guest: %v", err)
	}
	for flags, want := range map[string]string{
		"share --url http://server.example/": "https alone", "share --for 0s": "a second at least",
		"share --for 1000h --url https://server.example/": "30 days", "share": "name it with --url",
	} {
		wantError(t, h.by(h.owner(), flags, "mine"), want)
	}
}

// wantRefused checks that a guest does not get in.
func (h *enrolling) wantRefused(why string, k keyPair) {
	h.t.Helper()
	x := rig.Open(h.t, h.by(k, "watch", "mine"))
	x.Expect("permission denied")
	if x.Exit() == 0 {
		h.t.Errorf("%s, it gets in", why)
	}
}
