package netmon

import "golang.org/x/sys/unix"

// bind binds a socket of any family to an interface.
func bind(fd uintptr, iface string, _ bool) error {
	if len(iface) >= unix.IFNAMSIZ {
		return unix.ENODEV // the kernel would truncate the name
	}
	return unix.BindToDevice(int(fd), iface)
}
