package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// sums writes the checksums of all files in the release, and the manifests for package managers,
// which contain them.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	sums := make(map[string]string)
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		sums[e.Name()] = fmt.Sprintf("%x", sha256.Sum256(content))
		fmt.Fprintf(&lines, "%s  %s\n", sums[e.Name()], e.Name())
	}
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(lines.String()), 0o644); err != nil {
		return err
	}
	functions := template.FuncMap{"sum": func(target string) (string, error) {
		name := fmt.Sprintf("quicterm_%s_%s", r.version, target)
		sum, ok := sums[name]
		if !ok {
			return "", fmt.Errorf("there is no %s", name)
		}
		return sum, nil
	}}
	templates, err := template.New("").Funcs(functions).ParseGlob(filepath.Join(r.src, "configs", "package", "*.tmpl"))
	if err != nil {
		return err
	}
	for _, t := range templates.Templates() {
		name, ok := strings.CutSuffix(t.Name(), ".tmpl")
		if !ok {
			continue
		}
		err := r.create(name, func(w io.Writer) error {
			return t.Execute(w, map[string]string{
				"Version": r.version,
				"Arch":    strings.ReplaceAll(r.version, "-", "_"), // Arch Linux forbids the hyphen
				"URL":     "https://github.com/quicterm/quicterm/releases/download/" + r.tag,
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
