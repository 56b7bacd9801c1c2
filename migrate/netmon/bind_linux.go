package netmon

import "golang.org/x/sys/unix"

// bind binds a socket, whose family does not matter.
func bind(fd uintptr, iface string, _ bool) error {
	if len(iface) >= unix.IFNAMSIZ {
		return unix.ENODEV // the kernel would take the name's beginning
	}
	return unix.BindToDevice(int(fd), iface)
}
