package main

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// playSame plays the world of the seed so that each run tells the same. It works in a directory.
func playSame(dir string) error {
	program, root := filepath.Join(dir, "sim.wasm"), filepath.Join(dir, "root")
	err := errors.Join(buildWasip1(program, filepath.Join(dir, "build")),
		// This is the machine: its account, and its memory.
		write(filepath.Join(root, "etc/passwd"), []byte("sim:x:1:1::/:/bin/sh\n")),
		write(filepath.Join(root, "proc/meminfo"), []byte("MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\n")))
	if err != nil {
		return err
	}
	code, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	return runWasip1(code, root)
}

// runWasip1 runs the simulation in one thread, with a clock that counts how often it was asked, and with random
// bytes that follow from the seed. Go's scheduler, maps and select draw from these, too.
func runWasip1(code []byte, root string) error {
	ctx := context.Background()
	config := wazero.NewRuntimeConfig()
	if home, err := os.UserCacheDir(); err == nil { // compiling takes longer than most worlds
		cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(home, "quicterm-sim"))
		if err != nil {
			return err
		}
		defer cache.Close(ctx)
		config = config.WithCompilationCache(cache)
	}
	r := wazero.NewRuntimeWithConfig(ctx, config)
	defer r.Close(ctx)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return err
	}
	var key [32]byte
	copy(key[:], fmt.Sprint(seed))
	clock := time.Second.Nanoseconds() // Go takes 0 for no time
	now := func() int64 {
		clock += time.Microsecond.Nanoseconds()
		return clock
	}
	_, err := r.InstantiateWithConfig(ctx, code, wazero.NewModuleConfig().
		WithArgs(append([]string{"sim"}, arguments("-seed", fmt.Sprint(seed))...)...).
		WithEnv("TMPDIR", "/").WithEnv("PWD", "/").
		WithFSConfig(wazero.NewFSConfig().WithDirMount(root, "/")).
		WithStdout(os.Stdout).WithStderr(os.Stdout).
		WithRandSource(mathrand.NewChaCha8(key)).
		WithNanotime(now, 1).
		WithWalltime(func() (int64, int32) { t := time.Unix(0, now()); return t.Unix(), int32(t.Nanosecond()) }, 1).
		WithNanosleep(func(ns int64) { clock += ns }))
	if exit := (*sys.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 0 {
		return nil
	}
	return err
}
