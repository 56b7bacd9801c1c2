// Package confine takes from this process all that it does not need to relay bytes: user id, groups and capabilities,
// the file system, programs, and the system calls for them. None of it can be had back.
package confine
