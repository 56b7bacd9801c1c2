//go:build linux || darwin

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/doctor"
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
