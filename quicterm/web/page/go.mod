// This module makes the page. It is apart so that nothing else needs what it needs.
module github.com/quicterm/quicterm/quicterm/web/page

go 1.26.8

require (
	github.com/andybalholm/brotli v1.3.0
	github.com/coder/websocket v1.8.15
	github.com/evanw/esbuild v0.28.2
)

require golang.org/x/sys v0.0.0-20220715151400-c0bba94af5f8 // indirect
