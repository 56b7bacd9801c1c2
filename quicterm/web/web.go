// Package web serves a page in which a browser is a client: our own client, compiled to WebAssembly, on a terminal of
// xterm.js. It knows neither sessions nor logins: what the page's WebSockets bring is for the caller.
//
// The page is in the binary, if it was made before that was built (make build). It is compressed with brotli once, and
// served so: every browser takes that over HTTPS and from its own machine.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed assets
var assets embed.FS

// Socket is the path of the page's WebSocket.
const Socket = "/socket"

const (
	suffix = ".br"
	index  = "index.html"
)

// types are the types of the page's files by the ends of their names.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".wasm": "application/wasm",
	".txt":  "text/plain; charset=utf-8",
	".svg":  "image/svg+xml",
	".png":  "image/png",

	".webmanifest": "application/manifest+json",
}

// policy is what the page may do: run its own files, and connect to where it is from. xterm.js makes style elements.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; " +
	"style-src 'self' 'unsafe-inline'; img-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// unmade is what a program says that was built without the page.
const unmade = "This program was built without the page: make build makes it.\n"

// Made reports whether the page is in this binary.
func Made() bool {
	_, err := fs.Stat(assets, "assets/"+index+suffix)
	return err == nil
}

// Handler serves the page. Requests for its WebSocket go to socket, which checks where they are from. It sets no cookie.
func Handler(socket http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+Socket, socket)
	mux.HandleFunc("GET /", serveFile)
	return mux
}

func serveFile(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = index
		if !Made() {
			http.Error(w, strings.TrimSuffix(unmade, "\n"), http.StatusNotImplemented)
			return
		}
	}
	content, err := assets.ReadFile("assets/" + name + suffix)
	kind := types[path.Ext(name)]
	switch {
	case err != nil || kind == "":
		http.NotFound(w, r)
		return
	case !strings.Contains(r.Header.Get("Accept-Encoding"), "br"):
		http.Error(w, "This page is compressed with brotli, which this client does not take here: come by HTTPS.",
			http.StatusNotAcceptable)
		return
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Encoding", "br")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", tag(name, content))
	h.Set("Cache-Control", "no-cache")
	if r.URL.RawQuery != "" { // the page names its files with what they are
		h.Set("Cache-Control", "max-age=31536000, immutable")
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}

// tags are the entity tags of the files that were served.
var tags sync.Map

func tag(name string, content []byte) string {
	if known, ok := tags.Load(name); ok {
		return known.(string)
	}
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	tags.Store(name, tag)
	return tag
}
