package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// shells are those that completions are made for, and the names of their files.
var shells = map[string]string{"bash": "%s.bash", "zsh": "_%s", "fish": "%s.fish", "powershell": "%s.ps1"}

// document makes the manual pages, and the completions of programs that run here.
func (r *release) document(bin string) error {
	pages := filepath.Join(r.share, "man")
	completions := filepath.Join(r.share, "completions")
	for _, dir := range []string{pages, completions} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	_, err := output(r.src, "go", "test", "-vet=off", "-count=1", "-run=^TestManPages$", "./cmd/qt", "./cmd/qtd",
		"-man="+pages, fmt.Sprintf("-man-date=%d", r.date.Unix()))
	if err != nil {
		return err
	}
	for _, program := range []string{"qt", "qtd"} {
		for shell, name := range shells {
			script, err := output(r.src, filepath.Join(bin, program), "completion", shell)
			if err != nil {
				return err
			}
			file := filepath.Join(completions, fmt.Sprintf(name, program))
			if err := os.WriteFile(file, []byte(script+"\n"), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// A file is one in an archive, which belongs to root.
type file struct {
	name    string
	content []byte
	mode    fs.FileMode
}

// archive makes an archive of each target: its programs, manual pages, completions and samples.
func (r *release) archive() error {
	for _, t := range targets {
		base := fmt.Sprintf("quicterm_%s_%v", r.version, t)
		var files []file
		add := func(name, from string, mode fs.FileMode) error {
			content, err := os.ReadFile(from)
			files = append(files, file{path.Join(base, name), content, mode})
			return err
		}
		for _, name := range t.programs() {
			if err := add(name, filepath.Join(r.dir(t), name), 0o755); err != nil {
				return err
			}
		}
		samples := []string{"LICENSE", "README.md", "CHANGELOG.md", "configs/qt.toml"}
		if t.daemon {
			samples = append(samples, "configs/qtd.toml", "configs/qtd.service", "configs/grafana.json")
		}
		if t.os == "linux" {
			samples = append(samples, "configs/package/sysusers.conf")
		}
		for _, name := range samples {
			if err := add(path.Base(name), filepath.Join(r.src, name), 0o644); err != nil {
				return err
			}
		}
		for _, kind := range []string{"man", "completions"} {
			entries, err := os.ReadDir(filepath.Join(r.share, kind))
			if err != nil {
				return err
			}
			for _, e := range entries {
				if err := add(path.Join(kind, e.Name()), filepath.Join(r.share, kind, e.Name()), 0o644); err != nil {
					return err
				}
			}
		}
		write, name := writeTarGz, base+".tar.gz"
		if t.os == "windows" {
			write, name = writeZip, base+".zip"
		}
		if err := r.create(name, func(w io.Writer) error { return write(w, files, r.date) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) create(name string, write func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	return f.Close()
}

func writeTarGz(w io.Writer, files []file, date time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.content)), Mode: int64(f.mode), ModTime: date,
			Format: tar.FormatUSTAR,
		}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(f.content); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func writeZip(w io.Writer, files []file, date time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		header.SetMode(f.mode)
		entry, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.content); err != nil {
			return err
		}
	}
	return z.Close()
}
