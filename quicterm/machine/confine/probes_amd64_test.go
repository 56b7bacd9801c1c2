//go:build linux

package confine

var probes = []int{335, 336}
