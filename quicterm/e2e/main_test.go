//go:build linux || darwin

// Package e2e tests the programs as people use them: real processes, terminals
// and sockets, all on the loopback interface.
package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/machine/enrolled"
)

var bin string // directory of qt and qtd

// isInside says that another process of the tests has started this one in namespaces of its own.
var isInside bool

// insideVariable is set in such a process, and emptyVariable in one that has root's startup files empty.
// The value is what entered reads.
const insideVariable, emptyVariable = "QUICTERM_E2E_INSIDE", "QUICTERM_E2E_EMPTY"

// toEnter returns an environment variable for a process with mounts of its own.
func toEnter(variable, bin string) string {
	mounts, _ := os.Readlink("/proc/self/ns/mnt")
	return variable + "=" + mounts + " " + bin
}

// entered returns the value of bin from a variable of toEnter, if this process has other mounts than the
// one that has set it. Tests in namespaces would change those of the machine otherwise.
func entered(variable string) string {
	before, dir, _ := strings.Cut(os.Getenv(variable), " ")
	if mounts, err := os.Readlink("/proc/self/ns/mnt"); err != nil || mounts == before {
		return ""
	}
	return dir
}

func TestMain(m *testing.M) {
	if os.Getenv(listenVariable) != "" {
		listenInSession()
		return
	}
	runMore()
	os.Exit(func() int {
		inside := entered(insideVariable)
		isInside = inside != ""
		if bin = cmp.Or(inside, entered(emptyVariable)); bin != "" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "qt")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		var args []string
		if raceEnabled {
			args = append(args, "-race")
			os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") // else each program lasts a second longer
		}
		if err := rig.Build(dir, args...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if status, ok := rig.WithoutStartupFiles(toEnter(emptyVariable, dir)); ok {
			return status
		}
		bin = dir
		return m.Run()
	}())
}

// runMore makes twice as many tests run at once as usual: half of the time they wait. With the race detector, they do
// not. Still more would only make each of them wait for a processor.
func runMore() {
	flag.Parse()
	given := raceEnabled
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
}

// newHost prepares a host for a test that runs beside others.
func newHost(t *testing.T) *rig.Host {
	t.Parallel()
	return newHostAlone(t)
}

// newHostAlone is newHost for a test that loads the machine, or needs all of it.
func newHostAlone(t *testing.T) *rig.Host { return rig.NewHost(t, bin) }

// skipUnderRace skips a test whose many processes run no goroutines that those of other tests do not: it shows rules,
// files or messages. With the race detector, each process costs several times as much.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("it shows rules, files or messages, and has no goroutines of its own to race")
	}
}

// spareDevices skips a test that would remove keys that somebody has enrolled in the account that runs the tests.
func spareDevices(t *testing.T) {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if keys, _ := os.ReadDir(enrolled.Dir(u.HomeDir)); len(keys) > 0 {
		t.Skipf("%s has enrolled keys, which this test would remove", u.Username)
	}
}

// accountName returns the name of the account that runs the tests.
func accountName(t *testing.T) string {
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}
