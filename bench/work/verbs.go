//go:build linux

package work

import (
	"fmt"
	"strings"
	"time"
)

// Verbs uses a session of its own by the commands for programs, each Times times. It yields the time of each as a
// whole process, in milliseconds, and "woken", by how much later "qt wait --reading" has ended than the program has
// begun to read.
type Verbs struct {
	ownSessions
	Times int
}

// verbPause is the time between two verbs: the daemon reads the keys of an account ten times a second, and more logins
// wait for that.
const verbPause = 200 * time.Millisecond

// Names of the session that is used, and of one whose program tells when it reads.
const (
	drivenName = "driven"
	readerName = "reader"
)

func (w Verbs) Run(j *Job) []Figure {
	c := j.Clients[0]
	qt := func(verb, flags string, args ...string) (time.Duration, string) {
		cmd := j.Host.To(c.Server, c.Port, verb, strings.Fields(flags), args...)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			j.T.Fatalf("qt %s %s %q: %v\n%s", verb, flags, args, err, out)
		}
		return time.Since(began), string(out)
	}
	qt("connect", "-d -s "+drivenName, "exec env PS1='$ ' HISTFILE= bash --norc --noprofile")
	qt("wait", "--prompt", drivenName)
	verbs := []struct{ metric, verb, flags, arg string }{
		{"qt run", "run", "", "true"},
		{"qt send", "send", "", "x"},
		{"qt send --key", "send", "--key C-u", ""},
		{"qt wait", "wait", "--reading", ""},
		{"qt tail", "tail", "--json", ""},
		{"qt peek", "peek", "", ""},
	}
	figures := make([]Figure, len(verbs), len(verbs)+1)
	j.Begin()
	for range w.Times {
		for i, v := range verbs {
			args := []string{drivenName}
			if v.arg != "" {
				args = append(args, v.arg)
			}
			figures[i].Metric, figures[i].Unit, figures[i].Portable = v.metric, "ms", true
			time.Sleep(verbPause)
			began := time.Now()
			took, _ := qt(v.verb, v.flags, args...)
			figures[i].add(took, j.since(began))
		}
	}
	woken := Figure{Metric: "woken", Unit: "ms", Portable: true}
	for n := range w.Times {
		woken.add(w.wake(j, c, n), j.since(time.Now()))
	}
	j.End()
	return append(figures, woken)
}

// wake returns how long after a program has printed its time and begun to read a wait for that has ended.
func (w Verbs) wake(j *Job, c *Client, n int) time.Duration {
	name := fmt.Sprint(readerName, n)
	program := "sleep 1; date +%s.%N; read -r x"
	start := j.Host.To(c.Server, c.Port, "connect", []string{"-d", "-s", name}, program)
	if out, err := start.CombinedOutput(); err != nil {
		j.T.Fatalf("%v\n%s", err, out)
	}
	if out, err := j.Host.To(c.Server, c.Port, "wait", []string{"--reading"}, name).CombinedOutput(); err != nil {
		j.T.Fatalf("%v\n%s", err, out)
	}
	ended := time.Now()
	out, err := j.Host.Via(j.Host.Addr, "tail", nil, name).Output()
	var seconds float64
	if _, scanErr := fmt.Sscan(string(out), &seconds); err != nil || scanErr != nil {
		j.T.Fatalf("%v, %v: %q", err, scanErr, out)
	}
	j.Host.Via(j.Host.Addr, "kill", nil, name).Run()
	return ended.Sub(time.UnixMicro(int64(seconds * 1e6)))
}
