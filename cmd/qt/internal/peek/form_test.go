package peek

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/picture"
)

// An image that cannot be written leaves no file.
func TestNoImageLeft(t *testing.T) {
	file := filepath.Join(t.TempDir(), "now.png")
	tooLarge := screen.New(1000, 1000, screen.Limits{})
	if err := savePNG(io.Discard, file, tooLarge); !errors.Is(err, picture.ErrTooLarge) {
		t.Errorf("error %v, want %v", err, picture.ErrTooLarge)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
	if err := savePNG(io.Discard, file, screen.New(10, 2, screen.Limits{})); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(file); err != nil || info.Size() == 0 {
		t.Errorf("no image: %v", err)
	}
}

func TestNotDrawn(t *testing.T) {
	if got, want := notDrawn([]rune{'終', '😀'}),
		"characters that the font of images does not have: 2, drawn as boxes or left out (U+7D42, U+1F600); --ansi and --json have them"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := notDrawn([]rune("一二三四五六七八九十")); !strings.Contains(got, ": 10, ") || !strings.HasSuffix(got, "U+516B, 2 more); --ansi and --json have them") {
		t.Errorf("%q", got)
	}
}
