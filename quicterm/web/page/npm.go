package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// maxArchive and maxUnpacked bound a package of npm and its files in bytes: the largest of ours is 1.4 MB, and unpacks to 6 MB.
	maxArchive  = 16 << 20
	maxUnpacked = 64 << 20

	// fetchTime bounds the time that a registry takes for a package.
	fetchTime = 2 * time.Minute
)

// A locked package is one that package-lock.json names.
type locked struct {
	Version   string
	Integrity string
	Dev       bool // for tests only
}

// install unpacks the packages that package-lock.json names into a folder, which is a node_modules then: those for the page, or
// also those for its tests. Scripts of packages do not run.
func install(folder string, tests bool) error {
	content, err := os.ReadFile("package-lock.json")
	if err != nil {
		return err
	}
	var lock struct{ Packages map[string]locked }
	if err := json.Unmarshal(content, &lock); err != nil {
		return fmt.Errorf("package-lock.json: %w", err)
	}
	for _, place := range slices.Sorted(maps.Keys(lock.Packages)) {
		p := lock.Packages[place]
		name, ok := strings.CutPrefix(place, "node_modules/")
		if !ok || p.Dev && !tests {
			continue
		}
		archive, err := get(name, p)
		if err == nil {
			err = unpack(archive, filepath.Join(folder, filepath.FromSlash(name)))
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", name, p.Version, err)
		}
	}
	return nil
}

// get returns the archive of a package, which it keeps in the user's cache.
func get(name string, p locked) ([]byte, error) {
	want, err := hash(p.Integrity)
	if err != nil {
		return nil, err
	}
	is := func(archive []byte) bool {
		got := sha512.Sum512(archive)
		return bytes.Equal(got[:], want)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	cache = filepath.Join(cache, "quicterm", "npm")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, err
	}
	// As npm pack names it.
	file := filepath.Join(cache, strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-")+"-"+p.Version+".tgz")
	if archive, err := os.ReadFile(file); err == nil && is(archive) {
		return archive, nil
	}
	registry := os.Getenv("NPM_CONFIG_REGISTRY")
	npm, err := exec.LookPath("npm")
	var archive []byte
	switch {
	case registry != "":
		archive, err = download(strings.TrimSuffix(registry, "/") + "/" + name + "/-/" + path.Base(name) + "-" + p.Version + ".tgz")
	case err == nil: // it knows its registry, and logs in to it
		var out []byte
		out, err = exec.Command(npm, "pack", "--silent", "--pack-destination", cache, name+"@"+p.Version).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("npm pack: %w\n%s", err, out)
		}
		archive, err = os.ReadFile(file)
	default:
		return nil, errors.New("set NPM_CONFIG_REGISTRY to the URL of the registry of npm packages, or install npm")
	}
	if err == nil && !is(archive) {
		err = errors.New("its archive is not the one that package-lock.json names")
	}
	if err != nil {
		return nil, err
	}
	return archive, replace(file, archive)
}

// replace writes a file in one step: another build may read it.
func replace(file string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// hash returns the hash in a lock, which is one by SHA-512.
func hash(integrity string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(integrity, "sha512-")
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(sum) != sha512.Size {
		return nil, fmt.Errorf("package-lock.json has no hash by SHA-512, but %q", integrity)
	}
	return sum, nil
}

func download(url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	archive, err := io.ReadAll(io.LimitReader(answer.Body, maxArchive+1))
	if err == nil && len(archive) > maxArchive {
		err = fmt.Errorf("%s has more than %d bytes", url, maxArchive)
	}
	return archive, err
}

// unpack writes the files of an archive into a folder, without the folder that all are in. An archive has nothing else than files.
func unpack(archive []byte, folder string) error {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	limit := &io.LimitedReader{R: z, N: maxUnpacked}
	for files := tar.NewReader(limit); ; {
		header, err := files.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil && limit.N == 0:
			return fmt.Errorf("its files have more than %d bytes", maxUnpacked)
		case err != nil:
			return err
		case header.Typeflag == tar.TypeDir:
			continue
		case header.Typeflag != tar.TypeReg:
			return fmt.Errorf("%q is no file", header.Name)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		if !fs.ValidPath(name) {
			return fmt.Errorf("%q is no name for a file", header.Name)
		}
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, files)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}
