package netem

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openTUN makes a TUN interface in the network namespace of this process, and
// returns the file that its packets are read from and written to, each whole and
// without a header (tuntap.txt of the kernel). The file stays valid when the
// interface is moved to another namespace; closing it removes the interface.
func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TUNSETIFF,
			uintptr(unsafe.Pointer(request))); errno != 0 {
			err = errno
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make interface %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
