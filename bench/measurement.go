//go:build linux

package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/quicterm/quicterm/bench/rig"
)

// A measurement is what something is measured with. It is a rig.T: what fails ends
// it, and its cleanups run at its end, or when the person ends the program.
type measurement struct {
	all    *measurements
	name   string
	bin    string
	failed error

	mu       sync.Mutex // held while cleanups run
	cleanups []func()
	ended    bool // by a signal
}

// errStop is what Fatal panics with.
type errStop struct{}

func (m *measurement) Helper()      {}
func (m *measurement) Failed() bool { return m.failed != nil }
func (m *measurement) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", m.name, fmt.Sprintf(format, args...))
}
func (m *measurement) Fatal(args ...any) {
	m.failed = fmt.Errorf("%s", fmt.Sprint(args...))
	panic(errStop{})
}
func (m *measurement) Fatalf(format string, args ...any) { m.Fatal(fmt.Sprintf(format, args...)) }

func (m *measurement) Cleanup(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		m.guard(f)
		select {} // the program ends
	}
	m.cleanups = append(m.cleanups, f)
}

// clean runs the cleanups that have not run yet, the last first.
func (m *measurement) clean(ended bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = ended
	for len(m.cleanups) > 0 {
		f := m.cleanups[len(m.cleanups)-1]
		m.cleanups = m.cleanups[:len(m.cleanups)-1]
		m.guard(f)
	}
}

// guard calls what may end the measurement by Fatal.
func (m *measurement) guard(f func()) {
	defer func() {
		if stop := recover(); stop != nil {
			if _, ours := stop.(errStop); !ours {
				panic(stop)
			}
		}
	}()
	f()
}

// host returns a host whose daemon is started.
func (m *measurement) host(settings map[string]string) *rig.Host {
	h := rig.NewHost(m, m.bin)
	for key, value := range settings {
		h.Settings[key] = value
	}
	h.Start()
	return h
}

// measurements are those that go on.
type measurements struct {
	mu      sync.Mutex // held for good once a signal has come
	running []*measurement
	dirs    []string
	ended   func() // says what is left, once a signal has come and all is cleaned up
}

// run measures with a new measurement, and returns why it failed.
func (all *measurements) run(name, bin string, measure func(m *measurement)) error {
	m := &measurement{all: all, name: name, bin: bin}
	all.mu.Lock()
	all.running = append(all.running, m)
	all.mu.Unlock()
	defer func() {
		m.clean(false)
		all.mu.Lock()
		defer all.mu.Unlock()
		all.running = slices.DeleteFunc(all.running, func(other *measurement) bool { return other == m })
	}()
	m.guard(func() { measure(m) })
	return m.failed
}

// removeOnSignal has a folder removed when a signal ends the program.
func (all *measurements) removeOnSignal(dir string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.dirs = append(all.dirs, dir)
}

// onSignal has something said when a signal ends the program.
func (all *measurements) onSignal(say func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.ended = say
}

// endOnSignal waits for a signal, runs the cleanups of all measurements, and ends
// the program. A second signal ends it at once.
func (all *measurements) endOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	<-signals
	go func() {
		<-signals
		fmt.Fprintf(os.Stderr, "bench: ended before all was cleaned up; namespaces qt-%d-* may be left\n", os.Getpid())
		os.Exit(130)
	}()
	all.mu.Lock()
	for _, m := range slices.Backward(all.running) {
		m.clean(true)
	}
	for _, dir := range all.dirs {
		os.RemoveAll(dir)
	}
	if all.ended != nil {
		all.ended()
	}
	os.Exit(130)
}
