package account

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestExpired(t *testing.T) {
	const shadow = "root:*:19000:0:99999:7:::\nanna:$y$x:19000:0:99999:7::20000:\nbob:!:19000:0:99999:7::0:\nodd:*:1\neve:*:1:::::x:\n"
	day := func(n int64) time.Time { return time.Unix(n*24*60*60, 0) }
	for _, test := range []struct {
		name string
		day  int64
		want bool
	}{
		{"root", 30000, false},
		{"anna", 19999, false},
		{"anna", 20000, true},
		{"bob", 19000, true},
		{"odd", 30000, false},
		{"eve", 30000, false},
		{"nobody", 30000, false},
	} {
		if got := expired(shadow, test.name, day(test.day)); got != test.want {
			t.Errorf("%s on day %d: %v, want %v", test.name, test.day, got, test.want)
		}
	}
}

func TestShadowField(t *testing.T) {
	const shadow = "anna:$y$x:19000:\nbob:!$y$x:19000:\nodd\n"
	for name, want := range map[string]string{"anna": "$y$x", "bob": "!$y$x", "odd": "", "nobody": "", "": ""} {
		if got := shadowField(shadow, name, 1); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A file of shadow(5) that is there and cannot be read says nothing about an account.
func TestShadowUnread(t *testing.T) {
	dir := t.TempDir()
	if lines, err := readShadow(filepath.Join(dir, "none")); lines != "" || err != nil {
		t.Errorf("without a file: %q, %v", lines, err)
	}
	if _, err := readShadow(dir); err == nil {
		t.Error("a file that cannot be read is no error")
	}
	file := filepath.Join(dir, "shadow")
	if err := os.WriteFile(file, []byte("anna:!:1:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if lines, err := readShadow(file); lines != "anna:!:1:\n" || err != nil {
		t.Errorf("%q, %v", lines, err)
	}
}
