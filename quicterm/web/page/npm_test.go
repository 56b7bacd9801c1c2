package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An entry is one of an archive.
type entry struct {
	name, content string
	kind          byte
}

func pack(t *testing.T, entries ...entry) []byte {
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644}
		if header.Linkname = "../../target"; e.kind == tar.TypeReg {
			header.Linkname, header.Size = "", int64(len(e.content))
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil && e.kind == tar.TypeReg {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func integrity(archive []byte) string {
	sum := sha512.Sum512(archive)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Packages come from the registry once, and only if they are those that the lock names.
func TestInstall(t *testing.T) {
	archive := pack(t, entry{"package/lib/index.js", "hello", tar.TypeReg})
	requests := 0
	served := archive
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; r.URL.Path != "/@scope/name/-/name-1.2.3.tgz" {
			t.Errorf("the registry is asked for %s", r.URL.Path)
		}
		w.Write(served)
	}))
	defer registry.Close()
	t.Setenv("NPM_CONFIG_REGISTRY", registry.URL+"/")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	t.Chdir(dir)
	lock := `{"packages": {"": {}, "node_modules/@scope/name": {"version": "1.2.3", "integrity": %q},
		"node_modules/test": {"version": "1.0.0", "dev": true}}}`
	if err := os.WriteFile("package-lock.json", fmt.Appendf(nil, lock, integrity(archive)), 0o600); err != nil {
		t.Fatal(err)
	}
	served = append([]byte{0}, archive...)
	if err := install(filepath.Join(dir, "wrong"), false); err == nil || !strings.Contains(err.Error(), "not the one") {
		t.Errorf("another archive: %v", err)
	}
	served = archive
	for _, folder := range []string{"a", "b"} {
		if err := install(filepath.Join(dir, folder), false); err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(filepath.Join(folder, "@scope/name/lib/index.js")); string(content) != "hello" {
			t.Errorf("the file has %q, %v", content, err)
		}
	}
	if requests != 2 {
		t.Errorf("%d requests, want one that is refused and one for all others", requests)
	}
	if err := install(filepath.Join(dir, "c"), true); err == nil || !strings.Contains(err.Error(), "no hash") {
		t.Errorf("a package without a hash: %v", err)
	}
}

// An archive writes only its own files in its own folder.
func TestUnpack(t *testing.T) {
	for _, e := range []entry{
		{"package/../../above", "", tar.TypeReg},
		{"package//absolute", "", tar.TypeReg},
		{"file", "", tar.TypeReg},
		{"package/link", "", tar.TypeSymlink},
		{"package/link", "", tar.TypeLink},
		{"package/device", "", tar.TypeChar},
		{"package/large", strings.Repeat("0", maxUnpacked), tar.TypeReg},
	} {
		dir := t.TempDir()
		if err := unpack(pack(t, e), filepath.Join(dir, "a/b")); err == nil {
			t.Errorf("%q of type %c is unpacked", e.name, e.kind)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
			t.Errorf("%q wrote %q", e.name, left)
		}
	}
}
