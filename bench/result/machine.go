package result

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// A Machine is where something was measured.
type Machine struct {
	CPU    string `json:"cpu,omitempty"`
	Cores  int    `json:"cores"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel,omitempty"`
	Go     string `json:"go"`
}

// ThisMachine returns what is known of this machine.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(release))
	}
	info, _ := os.ReadFile("/proc/cpuinfo") // other systems have none
	for line := range strings.Lines(string(info)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			m.CPU = strings.Join(strings.Fields(value), " ")
			break
		}
	}
	return m
}

// String describes the machine for people.
func (m Machine) String() string {
	parts := []string{m.CPU, fmt.Sprintf("%d cores", m.Cores), strings.TrimSpace(m.OS + " " + m.Kernel), m.Arch, m.Go}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// Commit returns the commit that is checked out in the folder of the process, with
// "+" behind it if what is measured differs from it, or "" if git does not say.
func Commit() string {
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return ""
	}
	commit := strings.TrimSpace(string(out))
	changed := exec.Command("git", "diff", "--quiet", "HEAD", "--", ":(top)", ":(top,exclude)README.md",
		":(top,exclude)bench/README.md", ":(top,exclude)bench/results")
	if changed.Run() != nil {
		commit += "+"
	}
	return commit
}
