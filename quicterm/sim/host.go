package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// playSame plays the world of the seed so that each run tells the same. It works in a directory. With -twice, it plays the
// world again, and compares what both runs tell.
func playSame(dir string) error {
	program := filepath.Join(dir, "sim.wasm")
	if err := buildWasip1(program, filepath.Join(dir, "build")); err != nil {
		return err
	}
	code, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	play := func(name string, out io.Writer) error {
		root := filepath.Join(dir, name)
		err := errors.Join(
			// This is the machine: its account, and its memory.
			write(filepath.Join(root, "etc/passwd"), []byte("sim:x:1:1::/:/bin/sh\n")),
			write(filepath.Join(root, "proc/meminfo"), []byte("MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\n")))
		if err != nil {
			return err
		}
		return runWasip1(code, root, out)
	}
	if !twice {
		return play("once", os.Stdout)
	}
	var first, second bytes.Buffer
	if err := errors.Join(play("once", &first), play("again", &second)); err != nil {
		return err
	}
	if first.Len() == 0 || !bytes.Equal(first.Bytes(), second.Bytes()) {
		return fmt.Errorf("the world of seed %d has told %d bytes, and then other %d bytes", seed, first.Len(), second.Len())
	}
	return nil
}

// runWasip1 runs the simulation in one thread, with a clock that counts how often it was asked, and with random
// bytes that follow from the seed. Go's scheduler, maps and select draw from these, too.
func runWasip1(code []byte, root string, out io.Writer) error {
	ctx := context.Background()
	config := wazero.NewRuntimeConfig()
	if home, err := os.UserCacheDir(); err == nil { // compiling takes longer than most worlds
		dir, err := cacheDir(filepath.Join(home, "quicterm-sim"), code)
		if err != nil {
			return err
		}
		cache, err := wazero.NewCompilationCacheWithDir(dir)
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
		WithStdout(out).WithStderr(out).
		WithRandSource(mathrand.NewChaCha8(key)).
		WithNanotime(now, 1).
		WithWalltime(func() (int64, int32) { t := time.Unix(0, now()); return t.Unix(), int32(t.Nanosecond()) }, 1).
		WithNanosleep(func(ns int64) { clock += ns }))
	if exit := (*sys.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 0 {
		return nil
	}
	return err
}

// keptBuilds is of how many builds the compiled programs are kept, each of 90 MB: some may run at the same time.
const keptBuilds = 3

// cacheDir returns the directory below root for what a program is compiled to. It removes those that were not used for the
// longest time, except for keptBuilds.
func cacheDir(root string, code []byte) (dir string, err error) {
	sum, now := sha256.Sum256(code), time.Now()
	dir = filepath.Join(root, hex.EncodeToString(sum[:16]))
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chtimes(dir, now, now)); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return "", err
	}
	var dirs []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // another process may have removed it
			dirs = append(dirs, info)
		}
	}
	slices.SortFunc(dirs, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, old := range dirs[min(keptBuilds, len(dirs)):] {
		err = errors.Join(err, os.RemoveAll(filepath.Join(root, old.Name())))
	}
	return dir, err
}
