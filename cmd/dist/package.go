package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// nfpm makes packages.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.44.0"

func (r *release) pack() error {
	for _, t := range targets {
		if t.os != "linux" {
			continue
		}
		for _, kind := range []string{"deb", "rpm", "apk"} {
			if err := r.packOne(kind, t.arch, r.dir(t)); err != nil {
				return fmt.Errorf("%s for %v: %w", kind, t, err)
			}
		}
	}
	return nil
}

// commented returns the daemon's settings with their defaults, each behind a #: an operator sees them
// in /etc, and an upgrade may change the defaults of those that the operator has not set.
func (r *release) commented() ([]byte, error) {
	sample, err := os.ReadFile(filepath.Join(r.src, "configs", "qtd.toml"))
	return regexp.MustCompile(`(?m)^([a-z_]+ = )`).ReplaceAll(sample, []byte("# $1")), err
}

// packOne makes a package of programs for a processor, as configs/package/nfpm.yaml describes it.
func (r *release) packOne(kind, arch, bin string) error {
	if arch == "arm" {
		arch = "arm7"
	}
	settings, err := r.commented()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.share, "qtd.toml"), settings, 0o644); err != nil {
		return err
	}
	_, err = output(r.src, "env", "ARCH="+arch, "VERSION="+r.version, "BIN="+bin, "SHARE="+r.share,
		"go", "run", nfpm, "package", "-f", filepath.Join("configs", "package", "nfpm.yaml"), "-p", kind, "-t", r.out)
	return err
}
