//go:build !linux && !darwin && !windows

package netmon

import "errors"

// bind fails: this system has no such option.
func bind(uintptr, string, bool) error { return errors.ErrUnsupported }
