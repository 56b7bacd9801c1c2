package sshconfig

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page about ssh's options says of each option that this ssh has what becomes of it, and
// what it says fits the options that are read.
func TestTable(t *testing.T) {
	page, err := os.ReadFile("../../../docs/ssh_config.md")
	if err != nil {
		t.Fatal(err)
	}
	table, how := make(map[string]string), make(map[string]string) // by the option's name in lower case
	var names []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\w+) \| ([a-z ]*)\| (.*)\|$`).FindAllStringSubmatch(string(page), -1) {
		name := strings.ToLower(row[1])
		if table[name] != "" {
			t.Errorf("two rows of %s", row[1])
		}
		table[name], how[name] = strings.TrimSpace(row[2]), row[3]
		names = append(names, name)
	}
	delete(table, "option") // the heading
	if names = names[1:]; !slices.IsSorted(names) {
		t.Error("the rows are not in the order of the alphabet")
	}
	source, err := os.ReadFile("host.go")
	if err != nil {
		t.Fatal(err)
	}
	var options []string
	for _, found := range regexp.MustCompile(`\bv(?:\.\w+\(|\[)"(\w+)"`).FindAllSubmatch(source, -1) {
		options = append(options, string(found[1]))
	}
	// What tells how ssh reaches the host, which qt has to know.
	ofSSH := []string{"proxycommand", "proxyjump", "proxyusefdpass", "controlpath"}
	for name, what := range table {
		read := slices.Contains(options, name)
		switch what {
		case "honoured":
			if !read && !strings.Contains(how[name], "`ssh -G`") {
				t.Errorf("%s is said to be honoured, and is not read", name)
			}
		case "by ssh", "refused", "not applicable":
			if read && !slices.Contains(ofSSH, name) {
				t.Errorf("%s is said to be %s, and is read", name, what)
			}
		default:
			t.Errorf("%s: %q is no verdict", name, what)
		}
	}
	for _, name := range options {
		if table[name] == "" {
			t.Errorf("%s is read, and has no row", name)
		}
	}
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip(err)
	}
	// Options that are not printed unless they are set.
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("LocalForward 1 h:2\nRemoteForward 3 h:4\nDynamicForward 5\nProxyCommand x\nSetEnv A=b\nSendEnv A\n"+
		"CertificateFile x\nRevokedHostKeys x\nKnownHostsCommand /x\nRemoteCommand x\nLocalCommand x\nPKCS11Provider /x\nControlPath x\n"+
		"BindAddress ::1\nBindInterface lo\nPreferredAuthentications password\nHostKeyAlias x\nIdentityAgent x\nIgnoreUnknown x\nKbdInteractiveDevices x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := ask(t.Context(), Query{Host: "h", File: config})
	if err != nil || len(v) < 50 {
		t.Fatalf("%d options, %v", len(v), err)
	}
	for name := range v {
		if table[name] == "" {
			t.Errorf("ssh has an option %s, which has no row", name)
		}
	}
}
