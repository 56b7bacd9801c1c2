package dbus

import "errors"

func (*unixTransport) SendNullByte() error { return errors.ErrUnsupported }
