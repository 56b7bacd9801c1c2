//go:build linux

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/report"
	"github.com/quicterm/quicterm/bench/result"
	"github.com/quicterm/quicterm/bench/scenario"
)

// pages are those that show the project's own results.
var pages = []string{"README.md", "bench/README.md", "docs/performance.md"}

// The tables of the pages are those that report writes: no figure was edited, and none is older than its results.
func TestPagesShowTheResults(t *testing.T) {
	root := t.TempDir()
	copyFile := func(path string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join("..", path))
		if err == nil {
			err = os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, path), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	begin := regexp.MustCompile(`(?m)^<!-- (results|summary) of ([a-z]+) -->$`)
	for _, page := range pages {
		copyFile(page)
		committed, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		blocks := begin.FindAllStringSubmatch(string(committed), -1)
		if len(blocks) == 0 {
			t.Errorf("%s shows no results", page)
		}
		for _, block := range blocks {
			file := publishedFolder + "/" + block[2] + ".jsonl"
			copyFile(file)
			err := report.Write(io.Discard, io.Discard, filepath.Join(root, file), report.Options{
				Scenarios: scenario.Names(), Programs: program.Names(),
				Page: filepath.Join(root, page), Summary: block[1] == "summary",
			})
			if err != nil {
				t.Error(err)
			}
		}
		reported, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		was, is := strings.Split(string(committed), "\n"), strings.Split(string(reported), "\n")
		for i := range min(len(was), len(is)) {
			if was[i] != is[i] {
				t.Errorf("%s:%d has\n%s\nbut its results give\n%s", page, i+1, was[i], is[i])
				break
			}
		}
	}
}

// The commits that results name can be checked out.
func TestResultsNameCommitsThatExist(t *testing.T) {
	shallow, err := exec.Command("git", "rev-parse", "--is-shallow-repository").Output()
	if err != nil || strings.TrimSpace(string(shallow)) != "false" {
		t.Skip("there is no history here")
	}
	files, err := filepath.Glob(filepath.Join("..", publishedFolder, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal("no results", err)
	}
	for _, file := range files {
		records, err := result.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		known := map[string]bool{"": true}
		for _, one := range records {
			if known[one.Commit] {
				continue
			}
			known[one.Commit] = true
			if err := exec.Command("git", "merge-base", "--is-ancestor", one.Commit, "HEAD").Run(); err != nil {
				t.Errorf("%s: commit %s is not in the history of this checkout", file, one.Commit)
			}
		}
	}
}
