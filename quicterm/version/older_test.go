package version

import "testing"

func TestOlder(t *testing.T) {
	ascending := []string{
		"v0.0.0-20260102150405-abcdefabcdef", "v0.9.0", "v0.10.0", "v1.0.0-rc.2", "v1.0.0-rc.10", "1.0", "v1.0.1-0.20260102150405-abcdefabcdef", "1.0.1+build", "v2",
	}
	for i, a := range ascending {
		for j, b := range ascending {
			if got := Older(a, b); got != (i < j) {
				t.Errorf("%s is older than %s: %t", a, b, got)
			}
		}
	}
	for _, text := range []string{"", "devel", "(devel)", "1.2.3.4", "v1.x"} {
		if Valid(text) || !Older(text, "0.0.0") {
			t.Errorf("%q counts as a version", text)
		}
	}
}
