package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
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

func (r *release) image() error {
	layout := []file{{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644}}
	add := func(mediaType string, content []byte) descriptor {
		sum := digest(content)
		layout = append(layout, file{"blobs/sha256/" + sum, content, 0o644})
		return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}
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
		p := &platform{OS: t.os, Arch: t.arch}
		if t.arch == "arm" {
			p.Variant = "v7"
		}
		config := add(typeConfig, asJSON(map[string]any{
			"os": p.OS, "architecture": p.Arch, "variant": p.Variant, "created": r.date,
			"config": map[string]any{"Entrypoint": []string{"/usr/bin/qt"}, "Env": []string{"PATH=/usr/bin"}},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(plain)}},
		}))
		manifest := add(typeManifest, asJSON(map[string]any{
			"schemaVersion": 2, "mediaType": typeManifest, "config": config, "layers": []descriptor{add(typeLayer, compressed)},
		}))
		manifest.Platform = p
		manifests = append(manifests, manifest)
	}
	index := add(typeIndex, indexOf(manifests...))
	index.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version}
	layout = append(layout, file{"index.json", indexOf(index), 0o644})
	return r.create(fmt.Sprintf("quicterm_%s_image.tar", r.version), func(w io.Writer) error {
		return writeTar(w, layout, r.date)
	})
}

func indexOf(manifests ...descriptor) []byte {
	return asJSON(map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": manifests})
}

// asJSON encodes a value of strings, numbers and times.
func asJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// layer returns the file system of a target's image as a tar file, plain and compressed.
func (r *release) layer(t target) (plain, compressed []byte, err error) {
	files := []file{{"etc/passwd", []byte("root:x:0:0:root:/:/sbin/nologin\n"), 0o644}} // qt asks for the account it runs as
	for _, name := range t.programs() {
		content, err := os.ReadFile(filepath.Join(r.dir(t), name))
		if err != nil {
			return nil, nil, err
		}
		files = append(files, file{"usr/bin/" + name, content, 0o755})
	}
	var b, z bytes.Buffer
	if err := writeTar(&b, files, r.date); err != nil {
		return nil, nil, err
	}
	if err := writeTarGz(&z, files, r.date); err != nil {
		return nil, nil, err
	}
	return b.Bytes(), z.Bytes(), nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
