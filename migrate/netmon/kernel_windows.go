package netmon

import (
	"context"
	"unsafe"

	"golang.org/x/sys/windows"
)

// kernel is the source of what the system tells. The system's way to call back
// stays allocated until the process ends, a few bytes for each call of Watch.
func kernel(ctx context.Context, changed func()) error {
	callback := windows.NewCallback(func(context, row unsafe.Pointer, kind uintptr) uintptr {
		changed()
		return 0
	})
	for _, notify := range []func(uint16, uintptr, unsafe.Pointer, bool, *windows.Handle) error{
		windows.NotifyIpInterfaceChange,
		windows.NotifyUnicastIpAddressChange,
		windows.NotifyRouteChange2,
	} {
		var handle windows.Handle
		if err := notify(windows.AF_UNSPEC, callback, nil, false, &handle); err != nil {
			return err
		}
		defer windows.CancelMibChangeNotify2(handle) // which waits for calls under way
	}
	<-ctx.Done()
	return nil
}
