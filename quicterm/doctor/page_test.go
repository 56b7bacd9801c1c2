package doctor

import (
	"os"
	"regexp"
	"testing"
)

// The page on troubleshooting shows a line of each check, and none that does not exist.
func TestPage(t *testing.T) {
	ids := map[string]bool{ // of this machine, and of the server's
		"settings": false, "state": false,
		"daemon": false, "sshd": false, "ports": false, "runtime": false, "buffers": false, "login": false, "holders": false,
	}
	for _, f := range good().Report() {
		ids[f.ID] = false
	}
	page, err := os.ReadFile("../../docs/troubleshoot.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:ok|warn|fail|skip) +([a-z]+) `).FindAllSubmatch(page, -1) {
		if _, exists := ids[string(m[1])]; !exists {
			t.Errorf("no doctor has a check %s", m[1])
		}
		ids[string(m[1])] = true
	}
	for id, shown := range ids {
		if !shown {
			t.Errorf("the page has no line of the check %s", id)
		}
	}
}
