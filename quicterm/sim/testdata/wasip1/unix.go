// Package unix of Linux is written in part in assembly, which is in these functions. No such call works.

package unix

import "syscall"

func SyscallNoError(trap, a1, a2, a3 uintptr) (r1, r2 uintptr)    { return 0, 0 }
func RawSyscallNoError(trap, a1, a2, a3 uintptr) (r1, r2 uintptr) { return 0, 0 }

func Syscall(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err syscall.Errno) {
	return 0, 0, syscall.ENOSYS
}

func Syscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err syscall.Errno) {
	return 0, 0, syscall.ENOSYS
}

func RawSyscall(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err syscall.Errno) {
	return 0, 0, syscall.ENOSYS
}

func RawSyscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err syscall.Errno) {
	return 0, 0, syscall.ENOSYS
}

func runtime_getAuxv() []uintptr { return nil }

func syscall_prlimit(pid, resource int, newlimit, old *syscall.Rlimit) error { return syscall.ENOSYS }

func vgetrandom(p []byte, flags uint32) (ret int, supported bool) { return 0, false }
