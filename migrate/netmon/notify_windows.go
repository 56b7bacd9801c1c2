package netmon

import (
	"context"
	"unsafe"

	"golang.org/x/sys/windows"
)

// notifications is the source of the system's callbacks. Each call allocates a
// callback that stays until the process ends: a few bytes for each Watch.
func notifications(ctx context.Context, changed func()) error {
	callback := windows.NewCallback(func(context, row unsafe.Pointer, kind uintptr) uintptr {
		changed()
		return 0
	})
	for _, register := range []func(uint16, uintptr, unsafe.Pointer, bool, *windows.Handle) error{
		windows.NotifyIpInterfaceChange,
		windows.NotifyUnicastIpAddressChange,
		windows.NotifyRouteChange2,
	} {
		var handle windows.Handle
		if err := register(windows.AF_UNSPEC, callback, nil, false, &handle); err != nil {
			return err
		}
		defer windows.CancelMibChangeNotify2(handle) // waits for running callbacks
	}
	<-ctx.Done()
	return nil
}
