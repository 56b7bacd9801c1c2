//go:build linux || darwin

package sshd

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// printed are items that versions of sshd, also of distributions, print with -T and others do not know.
var printed = strings.Fields(`
	challengeresponseauthentication channeltimeout debianbanner gssapidelegatecredentials gssapikexalgorithms
	gssapikeyexchange gssapistorecredentialsonrekey hostbasedacceptedkeytypes kbdinteractiveauthentication
	kerberosgetafstoken logverbose pamservicename persourcepenalties persourcepenaltyexemptlist
	pubkeyacceptedalgorithms pubkeyacceptedkeytypes pubkeyauthoptions refuseconnection requiredrsasize
	securitykeyprovider sshdauthpath sshdsessionpath unusedconnectiontimeout useblacklist useblocklist usepam
	useprivilegeseparation xauthlocation`)

// The page about logins says of each item what becomes of it, and what it says fits what the policy
// obeys. An item that only the installed sshd knows does not fail the test: it may be newer.
func TestTable(t *testing.T) {
	page, err := os.ReadFile("../../../docs/logins.md")
	if err != nil {
		t.Fatal(err)
	}
	what := make(map[string]string) // by the item's name in lower case
	var names []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\w+) \| ([a-z ]+)\| (.*)\|$`).FindAllStringSubmatch(string(page), -1) {
		name := strings.ToLower(row[1])
		if what[name] != "" {
			t.Errorf("two rows of %s", row[1])
		}
		what[name] = strings.TrimSpace(row[2])
		names = append(names, name)
		if own := ownNames[name]; (own != "") != (what[name] == "setting") || own != "" && !strings.Contains(row[3], "`"+own+"`") {
			t.Errorf("%s is said to be %s, %s; its setting is %q", row[1], what[name], row[3], own)
		}
	}
	if !slices.IsSorted(names) {
		t.Error("the rows are not in the order of the alphabet")
	}
	// Match and Include are applied by sshd; a port is asked about, and no rule.
	for _, name := range names {
		p := newPolicy()
		p.set(name, "1") // an error says that it is read
		obeyed := len(p.rules) > 0 || p.set(name, "1") != nil || slices.Contains([]string{"include", "match", "port"}, name)
		if obeyed == (what[name] == "not applicable") {
			t.Errorf("%s is said to be %s, and obeyed is %t", name, what[name], obeyed)
		}
	}
	for name := range ownNames {
		if what[name] == "" {
			t.Errorf("there is no row of %s", name)
		}
	}
	for _, name := range printed {
		if what[name] == "" {
			t.Errorf("there is no row of %s", name)
		}
	}
	file := new(Daemon).find()
	if file == "" {
		t.Skip("there is no sshd")
	}
	out, err := exec.Command(file, "-T", "-f", "/dev/null", "-h", hostKey(t)).Output()
	if err != nil {
		t.Skip(err) // it may lack a directory that only root makes
	}
	for line := range strings.Lines(string(out)) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); what[name] == "" {
			t.Logf("this sshd prints %s, of which there is no row", name)
		}
	}
}

// hostKey makes a private key, without which some versions of sshd print nothing.
func hostKey(t *testing.T) string {
	t.Helper()
	file := t.TempDir() + "/key"
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	return file
}
