package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wasip1 is the system of the deterministic simulation. Overlays make the product take it for a Linux on which no
// system call works, but for those of files. So the product has no line for wasip1.
var wasip1 = []string{"GOOS=wasip1", "GOARCH=wasm"}

// linux is the Linux of which the product's files are taken, on a processor for which none of them is special.
var linux = []string{"GOOS=linux", "GOARCH=riscv64", "CGO_ENABLED=0"}

// stubs has what wasip1 lacks of Linux.
const stubs = "quicterm/sim/testdata/wasip1"

// buildWasip1 builds the simulation with the files of the product that are Linux's. It works in a directory.
func buildWasip1(program, dir string) error {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	std := filepath.Join(strings.TrimSpace(string(out)), "src", "syscall")
	mod, err := replaceModules(dir, std)
	if err != nil {
		return err
	}
	overlay, err := overlayFiles(dir, mod, std)
	if err != nil {
		return err
	}
	return build(program, wasip1, "-trimpath", "-modfile", mod, "-overlay", overlay)
}

func goList(env []string, flags ...string) ([]goPackage, error) {
	cmd := exec.Command("go", append([]string{"list", "-e", "-json"}, flags...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var all []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

type goPackage struct {
	Dir, ImportPath string
	Module          *struct {
		Main bool
		Dir  string
	}
	GoFiles []string
}

// buildLine is what a file says of the systems that it is for.
var buildLine = regexp.MustCompile(`(?m)^//go:build .*$`)

// replaceModules writes modules that build for wasip1 as for Linux into a directory, and returns a go.mod that uses them.
func replaceModules(dir, std string) (string, error) {
	packages, err := goList(linux, "-deps", "-test", "./quicterm/sim")
	if err != nil {
		return "", err
	}
	find := func(path string) goPackage {
		return packages[slices.IndexFunc(packages, func(p goPackage) bool { return p.ImportPath == path })]
	}
	table, err := os.ReadFile(filepath.Join(std, "tables_wasip1.go"))
	if err != nil {
		return "", err
	}
	unix := find("golang.org/x/sys/unix")
	sys, pty, dbus := filepath.Join(dir, "sys"), filepath.Join(dir, "pty"), filepath.Join(dir, "dbus")
	errs := []error{
		os.CopyFS(filepath.Join(sys, "cpu"), os.DirFS(filepath.Join(unix.Module.Dir, "cpu"))),
		copyFile(filepath.Join(sys, "go.mod"), filepath.Join(unix.Module.Dir, "go.mod")),
		os.CopyFS(dbus, os.DirFS(find("github.com/godbus/dbus/v5").Dir)),
		copyFile(filepath.Join(dbus, "transport_wasip1.go"), filepath.Join(stubs, "dbus.go")),
		write(filepath.Join(pty, "go.mod"), []byte("module github.com/creack/pty\n")),
		copyFile(filepath.Join(pty, "pty.go"), filepath.Join(stubs, "pty.go")),
		copyFile(filepath.Join(sys, "unix", "stubs.go"), filepath.Join(stubs, "unix.go")),
	}
	for _, name := range unix.GoFiles {
		if strings.HasSuffix(name, "_gc.go") { // all of it is in the stubs
			continue
		}
		b, err := os.ReadFile(filepath.Join(unix.Dir, name))
		b = buildLine.ReplaceAll(b, nil)
		// What is written in assembly, or in the runtime, is in the stubs.
		b = regexp.MustCompile(`(?m)^(//go:(?:linkname|noescape).*|func [^{\n]*)$`).ReplaceAll(b, nil)
		// The numbers of errors are those of wasip1, as the standard library tells them.
		for _, e := range regexp.MustCompile(`\t(E\w+) +Errno`).FindAllSubmatch(table, -1) {
			name := string(e[1])
			b = regexp.MustCompile(`(?m)^\t`+name+` +=.*$`).ReplaceAll(b, []byte("\t"+name+" = syscall."+name))
		}
		errs = append(errs, err, write(filepath.Join(sys, "unix", strings.TrimSuffix(name, ".go")+"_of.go"), b))
	}
	mod, err := os.ReadFile("go.mod")
	for module, in := range map[string]string{
		"golang.org/x/sys": sys, "github.com/creack/pty": pty, "github.com/godbus/dbus/v5": dbus,
	} {
		mod = fmt.Appendf(mod, "replace %s => %s\n", module, in)
	}
	errs = append(errs, err, write(filepath.Join(dir, "sim.mod"), mod), copyFile(filepath.Join(dir, "sim.sum"), "go.sum"))
	return filepath.Join(dir, "sim.mod"), errors.Join(errs...)
}

// syscallEdits give types of package syscall what they have on Linux.
var syscallEdits = []struct{ file, was, is string }{
	{"syscall_wasip1.go", "type SysProcAttr struct {\n}", ""},
	{"syscall_wasip1.go", "type Signal uint8", "type Signal int"},
	{"fs_wasip1.go", "	Gid uint32\n}", "	Gid uint32\n	Rdev uint64\n	Mtim, Ctim Timespec\n}"},
}

// overlayFiles writes an overlay in which the files of the product are Linux's, and package syscall has Linux's names.
func overlayFiles(dir, mod, std string) (string, error) {
	replace := make(map[string]string)
	paths, want, err := files(linux, "-deps", "-test", "./quicterm/sim")
	if err != nil {
		return "", err
	}
	_, had, err := files(wasip1, append([]string{"-modfile", mod}, paths...)...)
	if err != nil {
		return "", err
	}
	for file := range had {
		if !want[file] {
			replace[file] = "" // it is not there
		}
	}
	for file := range want {
		if had[file] {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		copied := filepath.Join(dir, fmt.Sprintf("file%d.go", len(replace)))
		if err := write(copied, buildLine.ReplaceAll(b, nil)); err != nil {
			return "", err
		}
		// Go takes what stands before .go for the name of a system.
		replace[strings.Replace(file, "_linux.go", "_linux_.go", 1)] = copied
	}
	var errs []error
	for _, e := range syscallEdits {
		file, changed := filepath.Join(std, e.file), filepath.Join(dir, e.file)
		if replace[file] != "" {
			file = changed
		}
		b, err := os.ReadFile(file)
		if err == nil && bytes.Count(b, []byte(e.was)) != 1 {
			err = fmt.Errorf("%s has the text %q not once", file, e.was)
		}
		errs = append(errs, err, write(changed, bytes.Replace(b, []byte(e.was), []byte(e.is), 1)))
		replace[filepath.Join(std, e.file)] = changed
	}
	stub, err := filepath.Abs(filepath.Join(stubs, "syscall.go"))
	replace[filepath.Join(std, "linux_wasip1.go")] = stub
	overlay := filepath.Join(dir, "overlay.json")
	list, _ := json.Marshal(map[string]map[string]string{"Replace": replace})
	return overlay, errors.Join(append(errs, err, write(overlay, list))...)
}

// files returns the packages of the product that go list lists, and their files on a system, but for this program's.
func files(env []string, flags ...string) (paths []string, names map[string]bool, err error) {
	packages, err := goList(env, flags...)
	names = make(map[string]bool)
	for _, p := range packages {
		if p.Module == nil || !p.Module.Main {
			continue
		}
		if !strings.Contains(p.ImportPath, " ") && !strings.HasSuffix(p.ImportPath, ".test") {
			paths = append(paths, p.ImportPath)
		}
		for _, name := range p.GoFiles {
			isProgram := strings.HasSuffix(p.Dir, "/sim") && !strings.HasSuffix(name, "_test.go")
			if !filepath.IsAbs(name) && !isProgram {
				names[filepath.Join(p.Dir, name)] = true
			}
		}
	}
	return paths, names, err
}

func write(name string, b []byte) error {
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, b, 0o600))
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	return errors.Join(err, write(to, b))
}
