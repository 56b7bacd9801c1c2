package clipboard

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A desktop is a system whose tools answer as the map says, by their last argument.
func desktop(goos, variable string, answers map[string]string) system {
	return system{
		os: goos, getenv: func(name string) string { return map[string]string{variable: "x"}[name] },
		has: func(string) bool { return answers != nil },
		run: func(_ context.Context, limit int, tool string, args ...string) ([]byte, error) {
			answer, ok := answers[args[len(args)-1]]
			if !ok {
				return nil, errors.New(tool + " fails")
			}
			if len(answer) > limit {
				return nil, errTooLarge
			}
			return []byte(answer), nil
		},
	}
}

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a b.Pdf")
	large := file + ".tar.2$"
	os.WriteFile(file, []byte("a file"), 0o600)
	os.WriteFile(large, nil, 0o600)
	os.Truncate(large, maxContent+1)
	uri := func(name string) string { return "file://" + strings.ReplaceAll(name, " ", "%20") }
	const wayland, x11 = "WAYLAND_DISPLAY", "DISPLAY"
	const furl = "POSIX path of (the clipboard as «class furl»)"
	const png, png64, info, script = "the clipboard as «class PNGf»", "aGk=\r\n", "clipboard info", "script"
	overfull := base64.StdEncoding.EncodeToString(make([]byte, maxContent+1))
	type says = map[string]string
	uris := func(list string) says {
		return says{"TARGETS": "image/png\ntext/uri-list", "text/uri-list": list, "image/png": "PNG"}
	}
	for name, test := range map[string]struct {
		os, variable string
		tools        says
		want         string // suffix and content, or the error
	}{
		"wayland":       {"linux", wayland, says{"--list-types": "text/html\nimage/png\n", "image/png": "PNG"}, ".png PNG"},
		"x11":           {"linux", x11, says{"TARGETS": "SAVE\nimage/jpeg\nimage/gif\n", "image/jpeg": "JPG"}, ".jpg JPG"},
		"text":          {"linux", x11, says{"TARGETS": "UTF8_STRING\n"}, errEmpty.Error()},
		"a file":        {"linux", x11, uris("#x\r\n" + uri(file) + "\r\n"), ".pdf a file"},
		"no file":       {"linux", x11, uris("https://a/b\nfile://host/x\nfile:x"), ".png PNG"},
		"files":         {"linux", x11, uris(uri(file) + "\n" + uri(file)), "2 files"},
		"large file":    {"linux", x11, uris(uri(large)), errTooLarge.Error()},
		"directory":     {"linux", x11, uris("file:///"), "not a regular file"},
		"large picture": {"linux", x11, says{"TARGETS": "image/png", "image/png": overfull}, errTooLarge.Error()},
		"fails":         {"linux", x11, says{}, "xclip fails"},
		"no wl-paste":   {"linux", wayland, nil, "install the package wl-clipboard"},
		"no xclip":      {"linux", x11, nil, "install the package xclip"},
		"no desktop":    {"linux", "", nil, "there is no clipboard"},
		"mac":           {"darwin", "", says{info: "«class PNGf», 9, «class utf8», 5", png: "«data PNGf6869»\n"}, ".png hi"},
		"mac file":      {"darwin", "", says{info: "«class PNGf», 9, «class furl», 5", furl: file + "\n"}, ".pdf a file"},
		"mac text":      {"darwin", "", says{info: "«class utf8», 5"}, errEmpty.Error()},
		"mac, odd":      {"darwin", "", says{info: "TIFF picture, 8", png: "«data PNGf686»"}, "no picture"},
		"windows":       {"windows", "", says{script: "picture\r\n" + png64}, ".png hi"},
		"wsl":           {"linux", "WSL_DISTRO_NAME", says{script: "file .TXT\r\n" + png64}, ".txt hi"},
		"windows file":  {"windows", "", says{script: "file \r\n" + png64}, " hi"},
		"windows files": {"windows", "", says{script: "files\r\n"}, "several files"},
		"windows, dir":  {"windows", "", says{script: "folder\r\n"}, "a folder"},
		"windows text":  {"windows", "", says{script: "empty\r\n"}, errEmpty.Error()},
		"windows large": {"windows", "", says{script: "large\r\n"}, errTooLarge.Error()},
		"windows, cut":  {"windows", "", says{script: "picture\r\n" + png64[1:]}, "no whole picture"},
		"windows, odd":  {"windows", "", says{script: "x"}, "no picture"},
		"windows, more": {"windows", "", says{script: "picture\n" + overfull}, errTooLarge.Error()},
	} {
		if answer, ok := test.tools[script]; ok {
			test.tools[powershellScript] = answer
		}
		c, err := desktop(test.os, test.variable, test.tools).read(t.Context())
		got := fmt.Sprintf("%s %s", c.suffix, c.bytes)
		if err != nil {
			got = err.Error()
		}
		if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
			t.Errorf("%s: %.100q, want %q", name, got, test.want)
		}
	}
}

func TestSuffixOf(t *testing.T) {
	for name, want := range map[string]string{
		"a": "", "a.": "", "/b.c/a.PNG": ".png", "a.tar.gz": ".gz", "a.x y": "", "/b.c/a": "", "a.ä": "", "a.123456789": "",
		"a.12345678": ".12345678", ".profile": ".profile", "": "",
	} {
		if got := suffixOf(name); got != want {
			t.Errorf("suffixOf(%q) = %q, want %q", name, got, want)
		}
	}
}

// No tool takes more memory than it may, or hides why it fails.
func TestRun(t *testing.T) {
	for script, want := range map[string]string{
		"yes": "larger", "echo one; echo two": "",
		"printf 'no\\033[ picture\\nelse' >&2; exit 1": "sh: no?[ picture", "exit 3": "sh: exit status 3",
	} {
		out, err := run(t.Context(), 100, "sh", "-c", script)
		good := err == nil && string(out) == "one\ntwo\n"
		if want != "" {
			good = err != nil && strings.Contains(err.Error(), want)
		}
		if !good {
			t.Errorf("%s: %q, %v, want %q", script, out, err, want)
		}
	}
}
