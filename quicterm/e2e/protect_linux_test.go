package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The daemon of root is protected when memory is short. Sessions are not: their programs
// could take any memory, and others would be ended for it.
func TestProtectionIsNotInherited(t *testing.T) {
	h := newHost(t)
	h.Start()
	adjustment := func(pid int) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	if got := adjustment(h.Daemon.Process.Pid); got != "-500" {
		t.Skipf("the daemon is not protected: oom_score_adj is %s", got)
	}
	x := h.Shell(h.Addr)
	x.Run("cat /proc/self/oom_score_adj", `\n0\r`)
	for _, pid := range h.Children() {
		if got := adjustment(pid); got != "0" {
			t.Errorf("oom_score_adj of a holder is %s", got)
		}
	}
}
