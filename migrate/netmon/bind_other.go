//go:build !linux && !darwin && !windows

package netmon

import "errors"

func bind(uintptr, string, bool) error { return errors.ErrUnsupported }
