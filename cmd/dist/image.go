package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// The image is an OCI image layout (image-spec 1.1) in a tar file, which skopeo, podman load and
// docker load take. It has the programs alone: to run qt, or to copy qtd into another image.

const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// A descriptor names a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	OS      string `json:"os"`
	Arch    string `json:"architecture"`
	Variant string `json:"variant,omitempty"`
}

// image makes the image, for all processors of Linux.
func (r *release) image() error {
	f, err := os.Create(filepath.Join(r.out, fmt.Sprintf("quicterm_%s_image.tar", r.version)))
	if err != nil {
		return err
	}
	defer f.Close()
	layout := tar.NewWriter(f)
	add := func(mediaType string, content []byte) (descriptor, error) {
		sum := digest(content)
		err := addToTar(layout, "blobs/sha256/"+sum, content, 0o644, r.date)
		return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}, err
	}
	addJSON := func(mediaType string, v any) (descriptor, error) {
		content, err := json.Marshal(v)
		if err != nil {
			return descriptor{}, err
		}
		return add(mediaType, content)
	}
	var manifests []descriptor
	for _, t := range targets {
		if t.os != "linux" {
			continue
		}
		plain, compressed, err := r.layer(t)
		if err != nil {
			return err
		}
		layer, err := add(typeLayer, compressed)
		if err != nil {
			return err
		}
		p := &platform{OS: t.os, Arch: t.arch}
		if t.arch == "arm" {
			p.Variant = "v7"
		}
		config, err := addJSON(typeConfig, map[string]any{
			"os": p.OS, "architecture": p.Arch, "variant": p.Variant, "created": r.date,
			"config": map[string]any{"Entrypoint": []string{"/usr/bin/qt"}, "Env": []string{"PATH=/usr/bin"}},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(plain)}},
		})
		if err != nil {
			return err
		}
		manifest, err := addJSON(typeManifest, map[string]any{
			"schemaVersion": 2, "mediaType": typeManifest, "config": config, "layers": []descriptor{layer},
		})
		if err != nil {
			return err
		}
		manifest.Platform = p
		manifests = append(manifests, manifest)
	}
	index, err := addJSON(typeIndex, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": manifests})
	if err != nil {
		return err
	}
	index.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version}
	top, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []descriptor{index}})
	if err != nil {
		return err
	}
	if err := addToTar(layout, "index.json", top, 0o644, r.date); err != nil {
		return err
	}
	if err := addToTar(layout, "oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644, r.date); err != nil {
		return err
	}
	if err := layout.Close(); err != nil {
		return err
	}
	return f.Close()
}

// layer returns the file system of a target's image as a tar file, plain and compressed.
func (r *release) layer(t target) (plain, compressed []byte, err error) {
	var b, z bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range t.programs() {
		content, err := os.ReadFile(filepath.Join(r.dir(t), name))
		if err != nil {
			return nil, nil, err
		}
		if err := addToTar(w, "usr/bin/"+name, content, 0o755, r.date); err != nil {
			return nil, nil, err
		}
	}
	passwd := "root:x:0:0:root:/:/sbin/nologin\n" // qt asks for the account it runs as
	if err := addToTar(w, "etc/passwd", []byte(passwd), 0o644, r.date); err != nil {
		return nil, nil, err
	}
	if err := w.Close(); err != nil {
		return nil, nil, err
	}
	gz := gzip.NewWriter(&z)
	if _, err := gz.Write(b.Bytes()); err != nil {
		return nil, nil, err
	}
	if err := gz.Close(); err != nil {
		return nil, nil, err
	}
	return b.Bytes(), z.Bytes(), nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
