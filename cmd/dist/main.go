// Command dist makes a release of the commit that is checked out: static programs for all systems,
// archives, packages, checksums, and manifests for package managers.
//
//	go run ./cmd/dist DIR
//	go run ./cmd/dist -deb VERSION -bin DIR DIR
//
// The second makes only a package for this machine, of programs that are built.
//
// The same commit and the same version of Go give the same bytes, on any machine and in any
// directory: the programs are built in a clone, and all times are that of the commit.
package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/version"
)

// A release is what is made of a commit.
type release struct {
	src     string    // a clone of the commit
	out     string    // directory of the results
	share   string    // directory with man and completions
	tag     string    // version as Go has it: v1.2.3, or a pseudo-version
	version string    // the same for packages: 1.2.3, or 1.2.4-git20060102150405
	date    time.Time // of the commit
}

// A target is a platform that programs are built for.
type target struct {
	os, arch string
	daemon   bool // qtd runs there too
}

var targets = []target{
	{"linux", "amd64", true},
	{"linux", "arm64", true},
	{"linux", "arm", true}, // version 7
	{"darwin", "amd64", true},
	{"darwin", "arm64", true},
	{"windows", "amd64", false},
	{"android", "arm64", false},
	{"freebsd", "amd64", false},
}

var here = target{os: runtime.GOOS, arch: runtime.GOARCH}

func (t target) String() string { return t.os + "_" + t.arch }

func (t target) programs() []string {
	switch {
	case t.os == "windows":
		return []string{"qt.exe"}
	case t.daemon:
		return []string{"qt", "qtd"}
	}
	return []string{"qt"}
}

func main() {
	deb := flag.String("deb", "", "make only the deb of these `versions`, separated by commas")
	bin := flag.String("bin", "", "`directory` of the programs for it")
	flag.Parse()
	if flag.NArg() != 1 || (*deb == "") != (*bin == "") {
		fmt.Fprintln(os.Stderr, "usage: dist [-deb VERSIONS -bin DIR] DIR, which must not exist")
		os.Exit(2)
	}
	out, err := filepath.Abs(flag.Arg(0))
	if err == nil && *deb != "" {
		err = makeDebs(out, *bin, strings.Split(*deb, ","))
	} else if err == nil {
		err = makeAll(out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// makeDebs makes packages for this machine of programs in a directory.
func makeDebs(out, bin string, versions []string) error {
	r := &release{src: ".", out: out, share: filepath.Join(out, "share")}
	if err := r.document(bin); err != nil {
		return err
	}
	for _, r.version = range versions {
		if err := r.packOne("deb", runtime.GOARCH, bin); err != nil {
			return err
		}
	}
	return nil
}

func makeAll(out string) error {
	if changes, err := output(".", "git", "status", "--porcelain"); err != nil || changes != "" {
		return errors.Join(err, fmt.Errorf("commit the changes first: %s", changes))
	}
	tmp, err := os.MkdirTemp("", "dist")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	r := &release{src: filepath.Join(tmp, "src"), share: filepath.Join(tmp, "share"), out: out}
	// In a clone, the Go toolchain finds the version even if this is a worktree of git.
	if _, err := output(".", "git", "clone", "-q", ".", r.src); err != nil {
		return err
	}
	seconds, err := output(r.src, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	r.date = time.Unix(n, 0).UTC()
	if err := date(r.src, r.date); err != nil {
		return err
	}
	os.Setenv("SOURCE_DATE_EPOCH", seconds) // for nfpm
	for _, step := range []struct {
		name string
		make func() error
	}{
		{"the page for browsers", r.page},
		{"programs", r.build},
		{"manual pages and completions", func() error { return r.document(r.dir(here)) }},
		{"archives", r.archive},
		{"packages", r.pack},
		{"checksums and manifests", r.sums},
	} {
		fmt.Println("making", step.name)
		if err := step.make(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	fmt.Printf("%s of %s is in %s\n", r.version, r.date.Format(time.DateOnly), out)
	return nil
}

// date sets the times of all files in a directory: nfpm gives the scripts of an apk those that their files have.
func date(dir string, to time.Time) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == ".git":
			return filepath.SkipDir
		case entry.Type().IsRegular():
			return os.Chtimes(path, to, to)
		}
		return nil
	})
}

// output runs a command in a directory and returns what it prints, without the last newline.
func output(dir, name string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, out.Bytes(), complaint.Bytes())
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// dir returns the directory of a target's programs, where qt install looks for qtd.
func (r *release) dir(t target) string { return filepath.Join(r.out, t.os, t.arch) }

// page makes the page that the programs have in them. Without it, there is no release.
func (r *release) page() error {
	_, err := output(filepath.Join(r.src, "quicterm/web/page"), "env", "CGO_ENABLED=0", "go", "run", ".")
	return err
}

func (r *release) build() error {
	for _, t := range targets {
		cmd := []string{"env", "CGO_ENABLED=0", "GOOS=" + t.os, "GOARCH=" + t.arch, "GOARM=7", "go", "build", "-trimpath", "-buildvcs=true",
			"-ldflags=-s -w", "-o", r.dir(t) + "/", "./cmd/qt"}
		if t.daemon {
			cmd = append(cmd, "./cmd/qtd")
		}
		if _, err := output(r.src, cmd[0], cmd[1:]...); err != nil {
			return err
		}
		for _, name := range t.programs() {
			if err := r.check(t, filepath.Join(r.dir(t), name)); err != nil {
				return fmt.Errorf("%s for %v: %w", name, t, err)
			}
		}
	}
	return nil
}

// check checks that a program has the version of the release and, on Linux, needs no libraries.
func (r *release) check(t target, file string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return err
	}
	tag := version.Of(info)
	if r.tag == "" {
		r.tag, r.version = tag, packageVersion(tag)
	}
	if tag != r.tag || !strings.HasPrefix(tag, "v") {
		return fmt.Errorf("it has version %q, another one %q", tag, r.tag)
	}
	if t.os != "linux" {
		return nil
	}
	f, err := elf.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return errors.New("it is not static")
		}
	}
	return nil
}

// pseudo matches the pseudo-versions of Go: the commit's time follows the base.
var pseudo = regexp.MustCompile(`^v(\d+\.\d+\.\d+)-(?:.*\.)?(\d{14})-[0-9a-f]{12}$`)

// packageVersion returns a version that all kinds of packages order as Go does.
func packageVersion(tag string) string {
	if m := pseudo.FindStringSubmatch(tag); m != nil {
		return m[1] + "-git" + m[2]
	}
	return strings.TrimPrefix(tag, "v")
}
