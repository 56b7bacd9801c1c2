// Package clipboard reads the picture or the file that is in the clipboard of this machine's desktop, by the tools of
// the system, and copies it to a server. It knows no terminal.
package clipboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/files"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxContent bounds what is copied from a clipboard, in bytes: it is in memory. Screens and photographs have less.
	maxContent = 20 << 20

	// maxList bounds what a tool says of types and names, in bytes.
	maxList = 64 << 10

	// toolTime bounds a tool: the program that owns the clipboard has to answer it, and may hang.
	toolTime = 15 * time.Second
)

var (
	errEmpty    = errors.New("there is neither a picture nor a file in the clipboard")
	errTooLarge = fmt.Errorf("what is in the clipboard is larger than %d MiB: qt cp copies large files", maxContent>>20)
)

// A content is a picture or a file.
type content struct {
	suffix string // with its dot, or empty
	bytes  []byte
}

// A system is what a clipboard is read with.
type system struct {
	os     string
	getenv func(string) string
	has    func(tool string) bool

	// run returns what a tool writes, of at most limit bytes: more is errTooLarge.
	run func(ctx context.Context, limit int, tool string, args ...string) ([]byte, error)
}

// local is this machine.
var local = system{
	os: runtime.GOOS, getenv: os.Getenv, run: run,
	has: func(tool string) bool {
		_, err := exec.LookPath(tool)
		return err == nil
	},
}

func run(ctx context.Context, limit int, tool string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	out, says := &bounded{limit: limit}, &bounded{limit: maxList}
	cmd.Stdout, cmd.Stderr = out, says
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case out.over:
		return nil, errTooLarge
	case ctx.Err() == context.DeadlineExceeded:
		return nil, fmt.Errorf("%s does not answer", tool)
	case err != nil:
		line, _, _ := strings.Cut(strings.TrimSpace(says.buf.String()), "\n")
		return nil, fmt.Errorf("%s: %s", tool, wire.Printable(cmp.Or(line, err.Error()), 256))
	}
	return out.buf.Bytes(), nil
}

// A bounded buffer takes no more than its limit.
type bounded struct {
	buf   bytes.Buffer
	limit int
	over  bool
}

// Write implements [io.Writer].
func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > b.limit {
		b.over = true
		return 0, io.ErrShortBuffer
	}
	return b.buf.Write(p)
}

// read returns what is in the clipboard.
func (s system) read(ctx context.Context) (content, error) {
	const powershell = "powershell.exe"
	switch wayland, x11 := s.getenv("WAYLAND_DISPLAY") != "", s.getenv("DISPLAY") != ""; {
	case s.os == "windows", s.getenv("WSL_DISTRO_NAME") != "" && s.has(powershell):
		limit := base64.StdEncoding.EncodedLen(maxContent) + maxList
		out, err := s.run(ctx, limit, powershell, "-NoProfile", "-NonInteractive", "-STA", "-Command", powershellScript)
		if err != nil {
			return content{}, err
		}
		return parsePowershell(out)
	case s.os == "darwin":
		return s.readMac(ctx)
	case wayland && s.has("wl-paste"):
		return s.readTypes(ctx, "wl-paste", []string{"--list-types"}, []string{"--no-newline", "--type"})
	case x11 && s.has("xclip"):
		selection := []string{"-selection", "clipboard", "-o", "-t"}
		return s.readTypes(ctx, "xclip", append(selection, "TARGETS"), selection)
	case wayland:
		return content{}, errors.New("reading the clipboard needs wl-paste: install the package wl-clipboard on this machine")
	case x11:
		return content{}, errors.New("reading the clipboard needs xclip: install the package xclip on this machine")
	}
	return content{}, errors.New("there is no clipboard: neither WAYLAND_DISPLAY nor DISPLAY is set where qt runs")
}

// pictures are the types of pictures, the preferred first.
var pictures = []struct{ mime, suffix string }{
	{"image/png", ".png"}, {"image/jpeg", ".jpg"}, {"image/gif", ".gif"}, {"image/webp", ".webp"},
}

// readTypes reads by a tool that lists types, and gets the content of one.
func (s system) readTypes(ctx context.Context, tool string, list, get []string) (content, error) {
	out, err := s.run(ctx, maxList, tool, list...)
	if err != nil {
		return content{}, err
	}
	types := strings.Fields(string(out))
	get = slices.Clip(get)
	if uris := "text/uri-list"; slices.Contains(types, uris) {
		out, err := s.run(ctx, maxList, tool, append(get, uris)...)
		if err != nil {
			return content{}, err
		}
		if names := parseURIs(string(out)); len(names) > 0 {
			return readFile(names...)
		}
	}
	for _, p := range pictures {
		if slices.Contains(types, p.mime) {
			out, err := s.run(ctx, maxContent, tool, append(get, p.mime)...)
			return content{suffix: p.suffix, bytes: out}, err
		}
	}
	return content{}, errEmpty
}

// parseURIs returns the files of this machine in a list of type text/uri-list (RFC 2483).
func parseURIs(list string) (names []string) {
	for line := range strings.Lines(list) {
		u, err := url.Parse(strings.TrimSpace(line))
		if err == nil && u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && filepath.IsAbs(u.Path) {
			names = append(names, u.Path)
		}
	}
	return names
}

// suffixOf returns the suffix that the copy of a file has.
func suffixOf(name string) string {
	suffix := strings.ToLower(name[max(strings.LastIndexByte(name, '.'), 0):])
	if !regexp.MustCompile(`^\.[a-z0-9]{1,8}$`).MatchString(suffix) {
		return ""
	}
	return suffix
}

// readFile reads the file of a clipboard.
func readFile(names ...string) (content, error) {
	if len(names) > 1 {
		return content{}, fmt.Errorf("there are %d files in the clipboard: copy one, or use qt cp", len(names))
	}
	file, info, err := files.OpenRegular(names[0])
	if err != nil {
		return content{}, err
	}
	defer file.Close()
	if info.Size() > maxContent {
		return content{}, errTooLarge
	}
	b, err := io.ReadAll(io.LimitReader(file, maxContent+1))
	if err == nil && len(b) > maxContent {
		err = errTooLarge
	}
	return content{suffix: suffixOf(names[0]), bytes: b}, err
}

// readMac reads by AppleScript. A file in the clipboard has its icon beside it.
func (s system) readMac(ctx context.Context) (content, error) {
	script := func(limit int, line string) ([]byte, error) { return s.run(ctx, limit, "osascript", "-e", line) }
	info, err := script(maxList, "clipboard info")
	if err != nil {
		return content{}, err
	}
	switch {
	case bytes.Contains(info, []byte("«class furl»")):
		name, err := script(maxList, "POSIX path of (the clipboard as «class furl»)")
		if err != nil {
			return content{}, err
		}
		return readFile(strings.TrimSuffix(string(name), "\n"))
	case bytes.Contains(info, []byte("«class PNGf»")), bytes.Contains(info, []byte("TIFF picture")):
		out, err := script(hex.EncodedLen(maxContent)+maxList, "the clipboard as «class PNGf»")
		if err != nil {
			return content{}, err
		}
		return parseAppleScript(string(out))
	}
	return content{}, errEmpty
}

// parseAppleScript parses how AppleScript writes a PNG.
func parseAppleScript(out string) (content, error) {
	digits, begins := strings.CutPrefix(strings.TrimSpace(out), "«data PNGf")
	digits, ends := strings.CutSuffix(digits, "»")
	b, err := hex.DecodeString(digits)
	if err != nil || !begins || !ends {
		return content{}, errors.New("osascript writes no picture")
	}
	return bound(content{suffix: ".png", bytes: b})
}

// powershellScript writes a line that says what is in the clipboard, and then the content in base64.
var powershellScript = fmt.Sprintf(`$ErrorActionPreference = 'Stop'
Add-Type -AssemblyName System.Windows.Forms, System.Drawing
$files = [Windows.Forms.Clipboard]::GetFileDropList()
$image = [Windows.Forms.Clipboard]::GetImage()
if ($files.Count -gt 1) { 'files' }
elseif ($files.Count -eq 1) {
  $file = Get-Item -LiteralPath $files[0]
  if ($file -isnot [IO.FileInfo]) { 'folder' }
  elseif ($file.Length -gt %d) { 'large' }
  else { 'file ' + $file.Extension; [Convert]::ToBase64String([IO.File]::ReadAllBytes($file.FullName)) }
}
elseif ($image) {
  $png = New-Object IO.MemoryStream
  $image.Save($png, [Drawing.Imaging.ImageFormat]::Png)
  'picture'; [Convert]::ToBase64String($png.ToArray())
}
else { 'empty' }`, maxContent)

// parsePowershell parses what the script writes.
func parsePowershell(out []byte) (content, error) {
	line, rest, _ := strings.Cut(string(out), "\n")
	kind, detail, _ := strings.Cut(strings.TrimSpace(line), " ")
	c := content{suffix: ".png"}
	switch kind {
	case "empty":
		return content{}, errEmpty
	case "large":
		return content{}, errTooLarge
	case "folder":
		return content{}, errors.New("there is a folder in the clipboard: qt cp -r copies it")
	case "files":
		return content{}, errors.New("there are several files in the clipboard: copy one, or use qt cp")
	case "file":
		c.suffix = suffixOf(detail)
	case "picture":
	default:
		return content{}, errors.New("powershell.exe writes no picture")
	}
	var err error
	if c.bytes, err = base64.StdEncoding.DecodeString(strings.TrimSpace(rest)); err != nil {
		return content{}, errors.New("powershell.exe writes no whole picture")
	}
	return bound(c)
}

func bound(c content) (content, error) {
	if len(c.bytes) > maxContent {
		return content{}, errTooLarge
	}
	return c, nil
}
