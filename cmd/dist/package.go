package main

import (
	"fmt"
	"path/filepath"
)

// nfpm makes packages.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.44.0"

// pack makes the packages for Linux, as configs/package/nfpm.yaml describes them.
func (r *release) pack() error {
	for _, t := range targets {
		if t.os != "linux" {
			continue
		}
		arch := t.arch
		if arch == "arm" {
			arch = "arm7"
		}
		for _, kind := range []string{"deb", "rpm", "apk"} {
			_, err := output(r.src, "env", "ARCH="+arch, "VERSION="+r.version, "BIN="+r.dir(t), "SHARE="+r.share,
				"go", "run", nfpm, "package", "-f", filepath.Join("configs", "package", "nfpm.yaml"), "-p", kind, "-t", r.out)
			if err != nil {
				return fmt.Errorf("%s for %v: %w", kind, t, err)
			}
		}
	}
	return nil
}
