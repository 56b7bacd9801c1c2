// Package bidi drives real browsers, Chromium and Firefox, by WebDriver BiDi: one way for both.
package bidi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// A Kind is a kind of browser, as Debian packages it: Chromium with chromium-driver, or Firefox ESR.
type Kind string

const (
	Chromium Kind = "chromium"
	Firefox  Kind = "firefox-esr"
)

// endTime is how long a browser may take to end by itself.
const endTime = 20 * time.Second

// A Browser is a process, whose pages have a profile in a folder.
type Browser struct {
	*connection
	Kind    Kind
	cmd     *exec.Cmd
	session string // URL of the session at chromedriver
}

// Start starts a browser without a window, whose profile is in a folder, where the next browser finds it again. Close ends it.
func Start(ctx context.Context, kind Kind, profile string) (*Browser, error) {
	if err := os.MkdirAll(profile, 0o700); err != nil {
		return nil, err
	}
	b := &Browser{Kind: kind}
	var announced *regexp.Regexp
	switch kind {
	case Chromium:
		b.cmd = exec.Command("chromedriver", "--port=0")
		announced = regexp.MustCompile(`started successfully on port (\d+)`)
	case Firefox:
		// Without a display, a phone's touch events and sizes are what the settings say.
		settings := "user_pref('dom.w3c_touch_events.enabled', 1);\n"
		if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(settings), 0o600); err != nil {
			return nil, err
		}
		b.cmd = exec.Command("firefox-esr", "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank")
		announced = regexp.MustCompile(`WebDriver BiDi listening on (ws://\S+)`)
	}
	// In a group of its own, the processes that it starts can be ended with it.
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	found, err := b.start(announced)
	if err != nil {
		return nil, err
	}
	url := found + "/session"
	if kind == Chromium {
		b.session = "http://127.0.0.1:" + found + "/session"
		url, err = b.newSession(ctx, profile)
	}
	if err == nil {
		b.connection, err = connect(ctx, url)
	}
	if err == nil && kind == Firefox {
		err = b.Call(ctx, "session.new", map[string]any{"capabilities": map[string]any{}}, nil)
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return b, nil
}

// start starts the process, and returns what it announces.
func (b *Browser) start(announced *regexp.Regexp) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	b.cmd.Stdout, b.cmd.Stderr = w, w
	err = b.cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return "", err
	}
	var all bytes.Buffer
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if m := announced.FindSubmatch(lines.Bytes()); m != nil {
			go func() {
				io.Copy(io.Discard, r)
				r.Close()
			}()
			return string(m[1]), nil
		}
		fmt.Fprintln(&all, lines.Text())
	}
	r.Close()
	b.Close()
	return "", fmt.Errorf("%s does not start:\n%s", b.Kind, &all)
}

// newSession has chromedriver start Chromium, and returns the URL for BiDi.
func (b *Browser) newSession(ctx context.Context, profile string) (string, error) {
	args := []string{"--headless=new", "--no-first-run", "--disable-dev-shm-usage", "--user-data-dir=" + profile}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // it has none for root
	}
	capabilities := map[string]any{
		"browserName": "chrome", "webSocketUrl": true, "unhandledPromptBehavior": "ignore",
		"goog:chromeOptions": map[string]any{"args": args, "binary": "/usr/bin/chromium"},
	}
	body, err := json.Marshal(map[string]any{"capabilities": map[string]any{"alwaysMatch": capabilities}})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.session, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var result struct {
		Value struct {
			SessionID    string
			Message      string
			Capabilities struct{ WebSocketURL string }
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&result); err != nil {
		return "", err
	}
	if result.Value.SessionID == "" {
		return "", errors.New(result.Value.Message)
	}
	b.session += "/" + result.Value.SessionID
	return result.Value.Capabilities.WebSocketURL, nil
}

// Close ends the browser, which writes its profile first.
func (b *Browser) Close() {
	ended := make(chan struct{})
	go func() {
		b.cmd.Wait()
		close(ended)
	}()
	if b.connection != nil {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		if b.Kind == Chromium { // chromedriver waits for it
			if r, err := http.NewRequestWithContext(ctx, http.MethodDelete, b.session, nil); err == nil {
				if answer, err := http.DefaultClient.Do(r); err == nil {
					answer.Body.Close()
				}
			}
			b.cmd.Process.Signal(syscall.SIGTERM)
		} else {
			b.Call(ctx, "browser.close", map[string]any{}, nil)
		}
		select {
		case <-ended:
		case <-ctx.Done():
		}
		cancel()
		b.connection.close()
	}
	syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL) // what is left of it
	<-ended
}
