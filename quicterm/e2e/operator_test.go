//go:build linux || darwin

package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The daemon's account sees all sessions, ends them and takes access, and the people at their clients are told by
// whom, and why.
func TestOperator(t *testing.T) {
	spareDevices(t)
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	y := h.Shell(h.Addr, "-s", "other")
	qtd := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(filepath.Join(bin, "qtd"), append(args, "--config", h.Path("qtd.toml"))...).CombinedOutput()
		if err != nil {
			t.Fatalf("qtd %s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	var sessions []struct{ ID, Name, Account string }
	list := func(args ...string) {
		t.Helper()
		sessions = nil
		if err := json.Unmarshal([]byte(qtd(append([]string{"ls", "--json"}, args...)...)), &sessions); err != nil {
			t.Fatal(err)
		}
	}
	if list("--outdated"); len(sessions) != 0 {
		t.Errorf("the daemon's own version is outdated: %+v", sessions)
	}
	list()
	if len(sessions) != 2 || sessions[0].Name != "other" || sessions[1].Name != "work" || sessions[0].Account != accountName(t) {
		t.Fatalf("got %+v", sessions)
	}
	if text := qtd("ls"); !regexp.MustCompile(accountName(t) + ` +work +` + sessions[1].ID[:8] + ` +attached `).MatchString(text) {
		t.Errorf("got\n%s", text)
	}
	for args, want := range map[string]string{
		"end ffffffffffff": "no such session", "end": "name sessions",
		"revoke no-such-account": "qtd: no-such-account: no such account\n",
		"revoke":                 "qtd: wrong number of arguments, 0: use qtd revoke ACCOUNT|KEY", "serve x": "qtd: wrong number of arguments, 1: use qtd serve", "revoke SHA256:x": "not the fingerprint", "revoke ./none.pub": "no such file",
	} {
		cmd := exec.Command(filepath.Join(bin, "qtd"), append(strings.Fields(args), "--config", h.Path("qtd.toml"))...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("qtd %s: %v, %s; want %q", args, err, out, want)
		}
	}

	x.Send("trap 'echo saved; sleep 1' HUP\r")
	x.Run("echo trap''ped", "trapped")
	if text := qtd("end", sessions[1].ID[:8], "--reason", "kernel update"); !strings.Contains(text, "work of "+accountName(t)+" ends") {
		t.Errorf("got %q", text)
	}
	x.Expect("this session is being ended by " + accountName(t) + ": kernel update")
	x.Expect("session work on .* was ended by " + accountName(t) + ": kernel update")
	x.Exit()
	h.Log.Await(t, 0, regexp.MustCompile(`event=kill asked_by=\d+ account=\S+ uid=\d+ session=work id=`+sessions[1].ID[:8]+` reason="kernel update"`))

	if text := qtd("revoke", h.Path("id.pub")); text != "1 client has lost access\n" {
		t.Errorf("got %q", text)
	}
	y.Expect("qt: access was withdrawn: " + accountName(t) + " has revoked it")
	y.Exit()
	h.Log.Await(t, 0, regexp.MustCompile(`asked_by=\d+ event=revoke revoked=SHA256:\S+ clients=1`))
	if text := qtd("revoke", accountName(t)); text != "0 clients have lost access\n" {
		t.Errorf("got %q", text)
	}
}
