//go:build android || !(linux || darwin)

package status

import "errors"

var errNoStatus = errors.New("status is not available on this system")

func Serve(string, func() *Report) (stop func(), err error) { return nil, errNoStatus }

func Ask() ([]*Report, error) { return nil, errNoStatus }
