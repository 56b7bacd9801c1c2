//go:build linux

package confine

var probes []int
