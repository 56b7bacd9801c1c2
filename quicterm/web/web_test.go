package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The page may run its own files alone, and everything else does not exist. A binary without it says so.
func TestHandler(t *testing.T) {
	h := Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	page := http.StatusOK
	if !Made() {
		page = http.StatusNotImplemented
	}
	for _, test := range []struct {
		method, path, encoding string
		status                 int
	}{
		{"GET", "/", "gzip, br", page},
		{"HEAD", "/", "br", page},
		{"GET", "/README.md", "br", http.StatusNotFound},
		{"GET", "/../web.go", "br", http.StatusTemporaryRedirect},
		{"GET", "/assets", "br", http.StatusNotFound},
		{"POST", "/", "br", http.StatusMethodNotAllowed},
		{"GET", Socket, "", http.StatusTeapot},
	} {
		r := httptest.NewRequest(test.method, test.path, nil)
		r.Header.Set("Accept-Encoding", test.encoding)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("%s %s: %d, want %d", test.method, test.path, w.Code, test.status)
		}
		if policy := w.Header().Get("Content-Security-Policy"); w.Code == page &&
			(!strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "script-src 'self' 'unsafe")) {
			t.Errorf("%s %s: the policy is %q", test.method, test.path, policy)
		}
		if w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s %s sets a cookie", test.method, test.path)
		}
	}
	if !Made() {
		return
	}
	files, err := assets.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, compressed := strings.CutSuffix(file.Name(), suffix)
		if r := httptest.NewRequest("GET", "/"+name, nil); compressed {
			r.Header.Set("Accept-Encoding", "br")
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Errorf("%s: %d", name, w.Code)
			}
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusNotAcceptable {
		t.Errorf("for a client without brotli: %d", w.Code)
	}
	r.Header.Set("Accept-Encoding", "br")
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	r.Header.Set("If-None-Match", w.Header().Get("ETag"))
	w = httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusNotModified {
		t.Errorf("for a client that has the page: %d", w.Code)
	}
}
