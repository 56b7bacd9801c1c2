//go:build linux || darwin

package monitor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/doctor"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func TestDoctorOfBuffers(t *testing.T) {
	small := "warn  buffers   net.core.rmem_max=212992: bursts of packets are lost on fast networks — sysctl -w net.core.rmem_max=7340032"
	if os.Geteuid() == 0 {
		small = "ok    buffers   net.core.rmem_max=212992, which the daemon of root may exceed"
	}
	for rmem, want := range map[string]string{
		"212992\n":  small,
		"7340032\n": "ok    buffers   UDP buffers may have 7 MiB",
		"":          "skip  buffers   the system does not say",
	} {
		dir := t.TempDir()
		if rmem != "" {
			for name, content := range map[string]string{"rmem_max": rmem, "wmem_max": "7340032\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		var r doctor.Report
		examineBuffers(&r, dir)
		if got := r[0].String(); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", rmem, got, want)
		}
	}
}

// Without an account of its user id, no settings help.
func TestDoctorWithoutAccount(t *testing.T) {
	const inside = "MONITOR_TEST_NO_ACCOUNT"
	if os.Getenv(inside) == "" {
		if os.Geteuid() != 0 || runtime.GOOS != "linux" {
			t.Skip("only root can take a user id without an account, and /proc has the program")
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
		cmd.Env, cmd.Dir = append(os.Environ(), inside+"=1"), "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: math.MaxUint32 - 7, Gid: math.MaxUint32 - 7}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	got := Test(t.Context(), Config{Settings: configs.DefaultServer()})
	if len(got) != 1 || !strings.HasPrefix(got[0].String(), "fail  account ") {
		t.Errorf("got %v", got)
	}
}

// An account's sockets that never answer take the doctor seconds, however many there are.
func TestDoctorOfSilentHolders(t *testing.T) {
	t.Parallel()
	top, err := os.MkdirTemp("", "qt") // short, for a socket's address
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(top)
	base := rundir.Base(filepath.Join(top, "run"))
	dir, err := base.Make()
	if err != nil {
		t.Fatal(err)
	}
	const sockets = 100 // of which so many are not asked at once
	for i := range sockets {
		l, err := rundir.Listen(filepath.Join(dir, socket.Name(wire.SessionID{byte(i)})))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	settings := configs.DefaultServer()
	settings.RuntimeDir, settings.StateDir, settings.SSHDPolicy = string(base), t.TempDir(), "ignore"
	e := examined(t.Context(), Config{Settings: settings})
	start := time.Now()
	e.holders(t.Context())
	if got := e.Report[len(e.Report)-1].String(); !strings.Contains(got, "sessions that do not answer: 100") {
		t.Errorf("got %s", got)
	}
	if took := time.Since(start); took > 2*censusTime {
		t.Errorf("the doctor takes %v", took)
	}
}

// The doctor looks at a daemon that does not run, with the settings that it would have.
func TestDoctorWithoutDaemon(t *testing.T) {
	settings := configs.DefaultServer()
	settings.StateDir, settings.RuntimeDir, settings.SSHDPolicy = t.TempDir(), t.TempDir(), "ignore"
	r := Test(t.Context(), Config{Settings: settings})
	if !slices.ContainsFunc(r, func(f doctor.Finding) bool { return f.ID == "hostkey" }) {
		t.Errorf("it says %+v", r)
	}
}

// The files of the page's certificate are looked at, and what is wrong with them keeps nobody out.
func TestDoctorOfPage(t *testing.T) {
	dir := t.TempDir()
	settings := configs.DefaultServer()
	settings.StateDir, settings.RuntimeDir, settings.SSHDPolicy = dir, dir+"/run", "ignore"
	settings.Web, settings.WebCertificate, settings.WebKey = ":443", dir+"/cert.pem", dir+"/key.pem"
	look := func() string {
		for _, f := range Test(t.Context(), Config{Settings: settings}) {
			if f.ID == "page" {
				return f.String()
			}
		}
		return ""
	}
	write := func(ends time.Time) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: ends}
		certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		for file, block := range map[string]*pem.Block{
			settings.WebCertificate: {Type: "CERTIFICATE", Bytes: certificate}, settings.WebKey: {Type: "PRIVATE KEY", Bytes: secret},
		} {
			if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := look(); !strings.HasPrefix(got, "warn  page      it is not served: open "+settings.WebCertificate) {
		t.Errorf("without the files: %s", got)
	}
	write(time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC))
	if got := look(); !strings.HasPrefix(got, "warn  page      the certificate in "+settings.WebCertificate+" ended on 2020-01-02") {
		t.Errorf("with an old certificate: %s", got)
	}
	write(time.Now().Add(time.Hour))
	if got := look(); !strings.HasPrefix(got, "ok    page ") {
		t.Errorf("with a good certificate: %s", got)
	}
	if err := os.WriteFile(settings.WebKey, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := look(); !strings.HasPrefix(got, "warn  page      it is not served: ") {
		t.Errorf("with half a key: %s", got)
	}
}
