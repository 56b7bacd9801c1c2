// Command page makes the page: the client in WebAssembly, xterm.js and our TypeScript in a few files, compressed with brotli,
// in the folder assets of package web. It is run in its own folder, by make build. The packages that package-lock.json names
// with their hashes come from the registry of npm once.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/evanw/esbuild/pkg/api"
)

const (
	root   = "../../.."
	assets = "../assets"
	client = "./cmd/qtweb"
)

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal("page: ", err)
	}
}

func run() error {
	work, err := os.MkdirTemp("", "page")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	files := make(map[string][]byte)
	steps := []func() error{
		func() error { return packages(work) },
		func() error { return bundle(work, files) },
		func() error { return program(files) },
		func() error { return licences(work, files) },
		func() error { return index(files) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return write(files)
}

// packages installs the packages of npm, and the part of Go that runs its programs in a browser, as one of them.
func packages(work string) error {
	modules := filepath.Join(work, "node_modules")
	if err := install(modules, false); err != nil {
		return err
	}
	goroot, err := output("go", "env", "GOROOT")
	if err != nil {
		return err
	}
	support, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "lib/wasm/wasm_exec.js"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(modules, "wasm_exec.js"), support, 0o600)
}

// bundle makes the files of JavaScript and their style.
func bundle(work string, files map[string][]byte) error {
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{"page.ts", "worker.ts", "service.ts"}, Bundle: true, Outdir: ".", Format: api.FormatESModule,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, Target: api.ES2022,
		NodePaths: []string{filepath.Join(work, "node_modules")}, LogLevel: api.LogLevelWarning,
	})
	if len(result.Errors) > 0 {
		return errors.New("esbuild has failed")
	}
	for _, f := range result.OutputFiles {
		files[filepath.Base(f.Path)] = f.Contents
	}
	return nil
}

// program builds the client, beside the other programs, where the next build finds that it is up to date.
func program(files map[string][]byte) (err error) {
	const file = "bin/qtweb.wasm"
	// Without inlining, the program is a seventh smaller; only TLS's ciphers are worth that.
	flags := []string{"-trimpath", "-ldflags=-s -w", "-gcflags=all=-l", "-gcflags=vendor/...="}
	if _, err := output("go", append(append([]string{"build", "-o", file}, flags...), client)...); err != nil {
		return err
	}
	files["qtweb.wasm"], err = os.ReadFile(filepath.Join(root, file))
	return err
}

// output runs a command in the root of the repository, for the browser, and returns what it prints.
func output(name string, args ...string) ([]byte, error) {
	var complaint bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = root, &complaint
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &complaint)
	}
	return out, nil
}

// licences collects those of all that is in the page, except our own.
func licences(work string, files map[string][]byte) error {
	listed, err := output("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", client)
	if err != nil {
		return err
	}
	goroot, err := output("go", "env", "GOROOT")
	if err != nil {
		return err
	}
	folders := append(strings.Split(strings.TrimSpace(string(listed)), "\n"), "Go "+strings.TrimSpace(string(goroot)))
	npm, err := filepath.Glob(filepath.Join(work, "node_modules/@xterm/*"))
	if err != nil {
		return err
	}
	for _, folder := range npm {
		folders = append(folders, "@xterm/"+filepath.Base(folder)+" "+folder)
	}
	slices.Sort(folders)
	var text bytes.Buffer
	for _, f := range slices.Compact(folders) {
		name, folder, ok := strings.Cut(f, " ")
		if !ok {
			continue
		}
		found, _ := filepath.Glob(filepath.Join(folder, "LICENSE*"))
		if len(found) == 0 {
			return fmt.Errorf("%s has no licence", name)
		}
		licence, err := os.ReadFile(found[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "== %s\n\n%s\n\n", name, bytes.TrimSpace(licence))
	}
	files["licences.txt"] = text.Bytes()
	return nil
}

// index makes the files that name all others with what they are, so that a browser keeps them.
func index(files map[string][]byte) (err error) {
	for _, name := range []string{"index.html", "manifest.webmanifest", "icon.svg", "icon.png"} {
		if files[name], err = os.ReadFile(name); err != nil {
			return err
		}
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sum.Write(files[name])
	}
	version := hex.EncodeToString(sum.Sum(nil)[:8])
	for _, name := range []string{"index.html", "manifest.webmanifest", "service.js"} {
		if !bytes.Contains(files[name], []byte("VERSION")) {
			return fmt.Errorf("%s has no place for the version", name)
		}
		files[name] = bytes.ReplaceAll(files[name], []byte("VERSION"), []byte(version))
	}
	return nil
}

// write writes all files in the place of those of an earlier page, which has the same names.
func write(files map[string][]byte) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	total := 0
	for name, content := range files {
		wg.Go(func() {
			size, err := compress(filepath.Join(assets, name+".br"), content)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			if name != "licences.txt" {
				total += size
			}
			log.Printf("%9d of %9d bytes  %s", size, len(content), name)
		})
	}
	wg.Wait()
	log.Printf("%9d bytes to download", total)
	return failed
}

// compress writes a compressed file, unless it is there with the same content: that takes seconds for a large one.
func compress(file string, content []byte) (size int, err error) {
	if old, err := os.ReadFile(file); err == nil {
		is, err := io.ReadAll(brotli.NewReader(bytes.NewReader(old)))
		if err == nil && bytes.Equal(is, content) {
			return len(old), nil
		}
	}
	var small bytes.Buffer
	w := brotli.NewWriterOptions(&small, brotli.WriterOptions{Quality: brotli.BestCompression, LGWin: 24})
	if _, err = w.Write(content); err == nil {
		err = w.Close()
	}
	if err != nil {
		return 0, err
	}
	return small.Len(), os.WriteFile(file, small.Bytes(), 0o644)
}
