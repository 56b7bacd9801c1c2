// Package version knows which version of quicterm this is.
package version

import "runtime/debug"

// release is set by the linker for releases.
var release string

// String returns the version: the release's or, for other builds, what the Go
// toolchain knows of the source.
func String() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}
