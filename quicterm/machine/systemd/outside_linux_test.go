package systemd

import (
	"os"
	"strconv"
	"testing"
)

// A process is a service if its manager has started it, and not if its parent is one. Managers before
// version 248 tell that by the watchdog only.
func TestIsService(t *testing.T) {
	own := strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		exec, watchdog string
		want           bool
	}{
		{"", "", false}, {own, "", true}, {"", own, true}, {own, own, true}, {"1", "", false}, {"", "1", false}, {"1", own, false},
	} {
		for name, value := range map[string]string{"SYSTEMD_EXEC_PID": c.exec, "WATCHDOG_PID": c.watchdog} {
			t.Setenv(name, value)
			if value == "" {
				os.Unsetenv(name)
			}
		}
		if got := isService(); got != c.want {
			t.Errorf("SYSTEMD_EXEC_PID=%s WATCHDOG_PID=%s: %v, want %v", c.exec, c.watchdog, got, c.want)
		}
	}
}
