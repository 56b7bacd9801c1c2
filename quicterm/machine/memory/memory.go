// Package memory tells how much memory this process may use, how much of that is free, and what other processes take,
// and has the kernel spare a process when memory is short. It starts nothing.
package memory

// A State is the memory of this process's machine or container, in bytes.
type State struct {
	Total     uint64
	Available uint64 // what can be used before other memory must be given up
}
