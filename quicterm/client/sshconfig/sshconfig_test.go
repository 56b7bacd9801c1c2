package sshconfig

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// load loads the configuration of a host from a file with some content.
func load(t *testing.T, content string, q Query) (*Host, error) {
	t.Helper()
	q.File = filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(q.File, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip(err)
	}
	return Load(t.Context(), q)
}

func TestLoad(t *testing.T) {
	t.Setenv("QT_DIR", "/var")
	t.Setenv("SSH_AUTH_SOCK", "/agent")
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	h, err := load(t, `
Host short
	HostName %h.example
	User ann
	Port 2222
	HostKeyAlias alias
	AddressFamily inet6
	BatchMode yes
	HashKnownHosts yes
	IdentitiesOnly yes
	IdentityFile ~/%r
	IdentityFile "${QT_DIR}/a key"
	IdentityFile ${QT_UNSET}/x
	IdentityFile none
	IdentityAgent ${QT_DIR}/%n-%%h
	UserKnownHostsFile ~/known /%k-%p
	GlobalKnownHostsFile none
	StrictHostKeyChecking accept-new
	RevokedHostKeys ~/revoked
	HostKeyAlgorithms ssh-ed25519,rsa-sha2-512
	CASignatureAlgorithms ssh-ed25519
	PubkeyAcceptedAlgorithms rsa-sha2-512
	RequiredRSASize 3000
	CertificateFile ~/%n-cert.pub
	ProxyJump ann@%h.one:23,ssh://two,[::1]:24
Host *
	User bob
`, Query{Host: "short"})
	if err != nil {
		t.Fatal(err)
	}
	want := &Host{
		Name: "short", Hostname: "short.example", Alias: "alias", KnownAs: "alias", User: "ann", Port: 2222, Network: "ip6", Batch: true,
		Identities: []string{home + "/ann", "/var/a key"}, IdentitiesOnly: true, Agent: "/var/short-%h", OfferedAgent: "/var/short-%h",
		KnownHosts: []string{home + "/known", "/alias-2222"}, Unknown: Accept, HashKnownHosts: true,
		RevokedHostKeys: home + "/revoked", HostKeyAlgorithms: []string{"ssh-ed25519", "rsa-sha2-512"},
		CAAlgorithms: []string{"ssh-ed25519"}, UserKeyAlgorithms: []string{"rsa-sha2-512"}, MinRSA: 3000,
		Certificates: []string{home + "/short-cert.pub"},
		Piped:        true,
	}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("got  %+v\nwant %+v", h, want)
	}
}

func TestDefaults(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "/agent")
	h, err := load(t, "", Query{Host: "Host", User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if h.User != "ann" || h.Port != 22 || h.Network != "ip" || h.Batch || h.Unknown != Ask || h.Agent != "/agent" {
		t.Errorf("got %+v", h)
	}
	for suffix, names := range map[string][]string{"/.ssh/id_ed25519": h.Identities, "/.ssh/known_hosts": h.KnownHosts[:1],
		"/etc/ssh/ssh_known_hosts": h.GlobalKnownHosts[:1]} {
		if !strings.HasSuffix(strings.Join(names, "\n")+"\n", suffix+"\n") && !strings.Contains(strings.Join(names, "\n"), suffix+"\n") {
			t.Errorf("%q has no %s", names, suffix)
		}
	}
}

// Tokens have the values that ssh gives them, for which UserKnownHostsFile is asked.
func TestTokens(t *testing.T) {
	const all = "%C:%d:%h:%i:%k:%L:%l:%n:%p:%r:%u:%%h"
	for _, alias := range []string{"", "HostKeyAlias other\n"} {
		content := alias + "Port 99\nHostName real.example\nUserKnownHostsFile " + all + "\nIdentityFile " + all + "\n"
		h, err := load(t, content, Query{Host: "typed", User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if len(h.KnownHosts) != 1 || !reflect.DeepEqual(h.Identities, h.KnownHosts) {
			t.Errorf("got %q, want %q as ssh", h.Identities, h.KnownHosts)
		}
	}
}

func TestAgent(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "/default")
	t.Setenv("OTHER_AGENT", "/other")
	for setting, want := range map[string]string{"none": "", "SSH_AUTH_SOCK": "/default", "$OTHER_AGENT": "/other",
		"${OTHER_AGENT}-2": "/other-2", "/agents/%r": "/agents/ann"} {
		h, err := load(t, "IdentityAgent "+setting+"\n", Query{Host: "h", User: "ann"})
		if err != nil || h.Agent != want {
			t.Errorf("%s: got %+v, %v; want %q", setting, h, err, want)
		}
	}
}

func TestForwardAgent(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "/default")
	t.Setenv("OTHER_AGENT", "/other")
	for config, want := range map[string]Host{
		"":                                     {OfferedAgent: "/default"},
		"ForwardAgent no":                      {OfferedAgent: "/default"},
		"ForwardAgent yes":                     {OfferedAgent: "/default", ForwardAgent: true},
		"ForwardAgent /its/own":                {OfferedAgent: "/its/own", ForwardAgent: true},
		"ForwardAgent $OTHER_AGENT":            {OfferedAgent: "/other", ForwardAgent: true},
		"ForwardAgent yes\nIdentityAgent none": {ForwardAgent: true},
		"ForwardAgent yes\nIdentityAgent /mine\nPubkeyAuthentication no": {OfferedAgent: "/mine", ForwardAgent: true},
		"ForwardAgent yes\nStrictHostKeyChecking no":                     {OfferedAgent: "/default"},
		"ForwardAgent yes\nStrictHostKeyChecking accept-new":             {OfferedAgent: "/default", ForwardAgent: true},
	} {
		h, err := load(t, config+"\n", Query{Host: "h"})
		if err != nil || h.OfferedAgent != want.OfferedAgent || h.ForwardAgent != want.ForwardAgent {
			t.Errorf("%q: got %+v, %v", config, h, err)
		}
	}
}

// ssh -G prints no quotes: a name with a space in it is known by its file.
func TestSpaceInName(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "known hosts")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := load(t, `UserKnownHostsFile "`+file+`" /second`, Query{Host: "h"})
	if err != nil || !reflect.DeepEqual(h.KnownHosts, []string{file, "/second"}) {
		t.Errorf("got %+v, %v", h, err)
	}
}

// Changes of the list of algorithms have the meaning that they have for ssh.
func TestAlgorithms(t *testing.T) {
	for arg, want := range map[string]string{"-ecdsa-*,sk-*,*-cert-v01@openssh.com": "ssh-ed25519,rsa-sha2-512,rsa-sha2-256",
		"rsa-sha2-256,ssh-ed25519": "rsa-sha2-256,ssh-ed25519"} {
		h, err := load(t, "HostKeyAlgorithms "+arg+"\n", Query{Host: "h"})
		if err != nil || strings.Join(h.HostKeyAlgorithms, ",") != want {
			t.Errorf("%s: got %+v, %v; want %s", arg, h, err, want)
		}
	}
	for arg, want := range map[string]string{"+ssh-rsa": "ssh-rsa", "^rsa-sha2-256": "rsa-sha2-256"} {
		h, err := load(t, "PubkeyAcceptedAlgorithms "+arg+"\n", Query{Host: "h"})
		if err != nil || !slices.Contains(h.UserKeyAlgorithms, want) || !slices.Contains(h.UserKeyAlgorithms, "ssh-ed25519") {
			t.Errorf("%s: got %+v, %v", arg, h, err)
		}
	}
}

// What names revoked keys must not be left out because it cannot be expanded.
func TestRevokedKeysWithoutVariable(t *testing.T) {
	h, err := load(t, "RevokedHostKeys ${QT_UNSET}/x\n", Query{Host: "h"})
	if err != nil || h.RevokedHostKeys == "" {
		t.Errorf("got %+v, %v", h, err)
	}
}

// Only later versions of ssh know RefuseConnection.
func TestRefuseConnection(t *testing.T) {
	_, err := newHost(Query{Host: "h"}, values{"refuseconnection": {"use the other one"}}, new(user.User))
	if err == nil || !strings.Contains(err.Error(), "use the other one") {
		t.Errorf("got %v", err)
	}
}

// Without an ssh program, its defaults hold, and a file cannot be named.
func TestWithoutSSH(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "/agent")
	t.Setenv("PATH", t.TempDir())
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	h, err := Load(t.Context(), Query{Host: "host"})
	if err != nil {
		t.Fatal(err)
	}
	want := &Host{
		Name: "host", Hostname: "host", Alias: "host", KnownAs: "host", User: me.Username, Port: 22, Network: "ip", Agent: "/agent", OfferedAgent: "/agent",
		GlobalKnownHosts: []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"},
		KnownHosts:       []string{me.HomeDir + "/.ssh/known_hosts", me.HomeDir + "/.ssh/known_hosts2"},
	}
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		want.Identities = append(want.Identities, me.HomeDir+"/.ssh/"+name)
		want.Certificates = append(want.Certificates, me.HomeDir+"/.ssh/"+name+"-cert.pub")
	}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("got  %+v\nwant %+v", h, want)
	}
	if h, err := Load(t.Context(), Query{Host: "host", Identities: []string{"/key"}}); err != nil || !slices.Equal(h.Identities, []string{"/key"}) {
		t.Errorf("with a key: got %+v, %v", h, err)
	}
	if _, err := Load(t.Context(), Query{Host: "host", File: "/config"}); err == nil {
		t.Error("a file is ignored")
	}
}

func TestNoPublicKeys(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "/agent")
	h, err := load(t, "PubkeyAuthentication no\n", Query{Host: "h"})
	if err != nil || h.Agent != "" || h.Identities != nil {
		t.Errorf("got %+v, %v", h, err)
	}
}

func TestPolicies(t *testing.T) {
	for content, want := range map[string]Policy{"": Ask, "StrictHostKeyChecking ask": Ask, "StrictHostKeyChecking yes": Refuse,
		"StrictHostKeyChecking no": Accept, "StrictHostKeyChecking off": Accept, "StrictHostKeyChecking accept-new": Accept,
		"BatchMode yes": Refuse, "BatchMode yes\nStrictHostKeyChecking accept-new": Accept} {
		h, err := load(t, content+"\n", Query{Host: "h"})
		if err != nil || h.Unknown != want {
			t.Errorf("%q: got %+v, %v; want %v", content, h, err, want)
		}
	}
}

func TestRejected(t *testing.T) {
	if _, err := load(t, "Port 99999\n", Query{Host: "h"}); err == nil {
		t.Error("a port that is none is accepted")
	}
	if _, err := Load(t.Context(), Query{Host: "h", File: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a named file that does not exist is accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, Query{Host: "h"}); err != context.Canceled {
		t.Errorf("canceled: got %v", err)
	}
}

func TestForwards(t *testing.T) {
	h, err := load(t, `
Host x
	LocalForward 8080 localhost:80
	LocalForward [::1]:8081 [fe80::1]:81
	LocalForward /tmp/near /tmp/far
	RemoteForward 9000 localhost:90
	RemoteForward 0.0.0.0:9001
	DynamicForward 1080
	PermitRemoteOpen a:1 b:*
	ExitOnForwardFailure yes
`, Query{Host: "x"})
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]string{
		{"L", "8080:[localhost]:80"}, {"L", "[::1]:8081:[fe80::1]:81"}, {"L", "/tmp/near:/tmp/far"},
		{"R", "9000:[localhost]:90"}, {"R", "[0.0.0.0]:9001"}, {"D", "1080"},
	}
	if !slices.Equal(h.Forwards, want) || !h.StrictForwards || h.NoForwards || !slices.Equal(h.PermitRemoteOpen, []string{"a:1", "b:*"}) {
		t.Errorf("%q, %+v; want %q", h.Forwards, h, want)
	}
	h, err = load(t, "ClearAllForwardings yes\nPermitRemoteOpen none\n", Query{Host: "x"})
	if err != nil || !h.NoForwards || h.PermitRemoteOpen == nil || len(h.PermitRemoteOpen) > 0 {
		t.Errorf("%+v, %v", h, err)
	}
}
