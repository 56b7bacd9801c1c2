package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// A component is a module in a bill of materials.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

func newComponent(kind, name, version string) component {
	return component{kind, name, version, "pkg:golang/" + name + "@" + version}
}

// list writes the modules that are in any of the programs, with the standard library of Go, as
// CycloneDX 1.6.
func (r *release) list() error {
	components := make(map[string]component)
	for _, t := range targets {
		for _, name := range t.programs() {
			info, err := buildinfo.ReadFile(filepath.Join(r.dir(t), name))
			if err != nil {
				return err
			}
			goVersion := strings.TrimPrefix(info.GoVersion, "go")
			components["std"] = newComponent("library", "std", goVersion)
			for _, m := range info.Deps {
				if m.Replace != nil {
					m = m.Replace
				}
				components[m.Path] = newComponent("library", m.Path, m.Version)
			}
		}
	}
	var sorted []component
	for _, name := range slices.Sorted(maps.Keys(components)) {
		sorted = append(sorted, components[name])
	}
	content, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata": map[string]any{
			"timestamp": r.date,
			"component": newComponent("application", "github.com/quicterm/quicterm", r.tag),
		},
		"components": sorted,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, fmt.Sprintf("quicterm_%s.cdx.json", r.version)), append(content, '\n'), 0o644)
}

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
		sums[e.Name()] = digest(content)
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
