package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
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

// A file is one in an archive.
type file struct {
	name string // in the archive
	from string
	mode fs.FileMode
}

// archive makes an archive of each target: its programs, manual pages, completions and samples.
func (r *release) archive() error {
	for _, t := range targets {
		base := fmt.Sprintf("quicterm_%s_%v", r.version, t)
		var files []file
		add := func(name, from string, mode fs.FileMode) {
			files = append(files, file{path.Join(base, name), from, mode})
		}
		for _, name := range t.programs() {
			add(name, filepath.Join(r.dir(t), name), 0o755)
		}
		samples := []string{"LICENSE", "README.md", "CHANGELOG.md", "configs/qt.toml"}
		if t.daemon {
			samples = append(samples, "configs/qtd.toml", "configs/qtd.service", "configs/grafana.json")
		}
		if t.os == "linux" {
			samples = append(samples, "configs/package/sysusers.conf")
		}
		for _, name := range samples {
			add(path.Base(name), filepath.Join(r.src, name), 0o644)
		}
		for _, kind := range []string{"man", "completions"} {
			entries, err := os.ReadDir(filepath.Join(r.share, kind))
			if err != nil {
				return err
			}
			for _, e := range entries {
				add(path.Join(kind, e.Name()), filepath.Join(r.share, kind, e.Name()), 0o644)
			}
		}
		write, name := writeTarGz, base+".tar.gz"
		if t.os == "windows" {
			write, name = writeZip, base+".zip"
		}
		f, err := os.Create(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		defer f.Close()
		if err := write(f, files, r.date); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

func writeTarGz(w io.Writer, files []file, date time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		if err := addToTar(t, f.name, content, f.mode, date); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

// addToTar adds a file of root.
func addToTar(t *tar.Writer, name string, content []byte, mode fs.FileMode, date time.Time) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: int64(mode), ModTime: date, Format: tar.FormatUSTAR,
	}
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	_, err := t.Write(content)
	return err
}

func writeZip(w io.Writer, files []file, date time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		header.SetMode(f.mode)
		entry, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(content); err != nil {
			return err
		}
	}
	return z.Close()
}
