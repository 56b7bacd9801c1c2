//go:build linux

// Package measure owns what a measurement uses: a [T] ends at the first failure and
// cleans up at its end, or when a signal ends the program. Beside it are what processes
// cost and how busy the machine is.
package measure

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/quicterm/quicterm/bench/rig"
)

// T is one measurement. It implements rig.T.
type T struct {
	Bin string // folder of qt and qtd

	group  *Group
	name   string
	failed error

	mu       sync.Mutex // held while cleanups run
	cleanups []func()
	ended    bool // by a signal
}

var _ rig.T = (*T)(nil)

// stop is what Fatal panics with.
type stop struct{}

func (t *T) Helper()      {}
func (t *T) Failed() bool { return t.failed != nil }
func (t *T) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", t.name, fmt.Sprintf(format, args...))
}
func (t *T) Fatal(args ...any) {
	t.failed = fmt.Errorf("%s", fmt.Sprint(args...))
	panic(stop{})
}
func (t *T) Fatalf(format string, args ...any) { t.Fatal(fmt.Sprintf(format, args...)) }

// Cleanup registers a function that runs at the end of the measurement, the last first.
func (t *T) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		t.Guard(f)
		select {} // the program ends
	}
	t.cleanups = append(t.cleanups, f)
}

func (t *T) clean(ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = ended
	for len(t.cleanups) > 0 {
		f := t.cleanups[len(t.cleanups)-1]
		t.cleanups = t.cleanups[:len(t.cleanups)-1]
		t.Guard(f)
	}
}

// Guard calls a function that may call Fatal. A goroutine of a measurement needs it.
func (t *T) Guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			if _, ours := p.(stop); !ours {
				panic(p)
			}
		}
	}()
	f()
}

// SideBySide calls a function n times concurrently, each with a T of its own, and fails
// if one of them does.
func (t *T) SideBySide(n int, f func(t *T, i int)) {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			errs[i] = t.group.Run(fmt.Sprintf("%s, %d", t.name, i), t.Bin, func(t *T) { f(t, i) })
		})
	}
	wg.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) > 0 {
		t.Fatalf("%d of %d failed: %v", len(errs), n, errs[0])
	}
}

// A Group is all running measurements. The zero value is ready.
type Group struct {
	mu      sync.Mutex // never unlocked once a signal has come
	running []*T
	onEnd   func()
}

// Run runs a measurement and returns why it failed. Its cleanups have run by then.
func (g *Group) Run(name, bin string, f func(t *T)) error {
	t := &T{group: g, name: name, Bin: bin}
	g.mu.Lock()
	g.running = append(g.running, t)
	g.mu.Unlock()
	defer func() {
		t.clean(false)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running = slices.DeleteFunc(g.running, func(other *T) bool { return other == t })
	}()
	t.Guard(func() { f(t) })
	return t.failed
}

// OnSignal calls a function after all cleanups if a signal ends the program. nil
// removes it.
func (g *Group) OnSignal(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.onEnd = f
}

// EndOnSignal waits for a signal, cleans up all measurements and ends the program. A
// second signal ends it at once.
func (g *Group) EndOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	<-signals
	go func() {
		<-signals
		fmt.Fprintf(os.Stderr, "bench: ended before the cleanup was complete; namespaces qt-%d-* may remain\n", os.Getpid())
		os.Exit(130)
	}()
	g.mu.Lock()
	for _, t := range slices.Backward(g.running) {
		t.clean(true)
	}
	if g.onEnd != nil {
		g.onEnd()
	}
	os.Exit(130)
}
