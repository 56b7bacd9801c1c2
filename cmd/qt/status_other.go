//go:build android || !(linux || darwin)

package main

import "errors"

var errNoStatus = errors.New("status is not available on this system")

func serveStatus(string, func() *report) (stop func(), err error) { return nil, errNoStatus }

func askClients() ([]*report, error) { return nil, errNoStatus }
