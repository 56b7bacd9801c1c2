package main

import (
	"testing"

	"github.com/quicterm/quicterm/cmd/dist/man"
)

func TestManPages(t *testing.T) { man.Test(t, command, "1") }
