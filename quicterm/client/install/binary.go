package install

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/quicterm/quicterm/quicterm/version"
)

// A Platform is an operating system and a processor, as Go names them.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// ParsePlatform returns the platform of what `uname -sm` prints. Its fields are good for names of directories.
func ParsePlatform(uname string) (Platform, error) {
	uname = strings.ToLower(uname)
	system, machine, ok := strings.Cut(uname, " ")
	odd := func(r rune) bool { return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }
	if !ok || strings.ContainsFunc(system+machine, odd) {
		return Platform{}, fmt.Errorf("qtd does not run on the host's system, %q", uname)
	}
	switch {
	case machine == "x86_64":
		machine = "amd64"
	case machine == "aarch64":
		machine = "arm64"
	case strings.HasPrefix(machine, "armv"):
		machine = "arm"
	case len(machine) == 4 && machine[0] == 'i' && machine[2:] == "86":
		machine = "386"
	}
	return Platform{system, machine}, nil
}

// A Binary is a qtd for one platform.
type Binary struct {
	File     string
	Platform Platform
	Version  string
	Content  []byte
}

func (b *Binary) sum() string {
	sum := sha256.Sum256(b.Content)
	return hex.EncodeToString(sum[:])
}

// program is the path of qtd's main package.
const program = "github.com/quicterm/quicterm/cmd/qtd"

// Open reads a qtd. The information that the Go toolchain leaves in each program tells its platform and its version.
func Open(file string) (*Binary, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil || info.Path != program {
		return nil, fmt.Errorf("%s is not a qtd", file)
	}
	b := &Binary{File: file, Version: version.Of(info), Content: content}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS":
			b.Platform.OS = s.Value
		case "GOARCH":
			b.Platform.Arch = s.Value
		}
	}
	return b, nil
}

// Find returns the qtd for a platform that belongs to the qt in a directory: the one beside
// it, or that of a release, which has a directory for each platform.
func Find(dir string, p Platform) (*Binary, error) {
	places := []string{
		filepath.Join(dir, "qtd"),
		filepath.Join(dir, "..", "..", p.OS, p.Arch, "qtd"),   // beside dist/OS/ARCH/qt
		filepath.Join(dir, "..", "dist", p.OS, p.Arch, "qtd"), // beside bin/qt
	}
	for _, file := range places {
		b, err := Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if b.Platform == p {
			return b, nil
		}
	}
	return nil, fmt.Errorf("no qtd for %v beside this qt, nor in %s: take it from the release's archive for that system, "+
		"or build it with make cross, and name the file with --from",
		p, filepath.Dir(places[2]))
}
