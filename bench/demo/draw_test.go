//go:build linux

package demo

import (
	"bytes"
	"os"
	"testing"
)

// The image in the README is that of the recording beside it, and small.
func TestImage(t *testing.T) {
	const name, maxBytes = "../../docs/demo.svg", 150_000
	recording, err := os.Open("../../docs/demo.cast")
	if err != nil {
		t.Fatal(err)
	}
	defer recording.Close()
	var image bytes.Buffer
	if err := Draw(&image, recording); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, image.Bytes()) {
		t.Errorf("%s is not that of the recording (%v): go run ./bench demo --draw docs/demo.cast docs/demo.svg", name, err)
	}
	if image.Len() > maxBytes {
		t.Errorf("%s has %d bytes, want at most %d", name, image.Len(), maxBytes)
	}
}
