//go:build linux

package kubelet

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Registry is an image registry on loopback. Its images have the same files and different
// commands. It serves the names of any host. It answers that other images do not exist.
type Registry struct {
	// URL is its address.
	URL string

	server    *http.Server
	blobs     map[digest.Digest][]byte
	manifests map[string]digest.Digest // by repository and tag, such as "program:v1"
}

// StartRegistry serves the images in commands, which maps a name such as
// "registry.example.org/program:v1" to a command. files is a tar archive of their files. The
// commands run as user in dir.
func StartRegistry(files []byte, commands map[string][]string, user, dir string) (*Registry, error) {
	r := &Registry{blobs: map[digest.Digest][]byte{}, manifests: map[string]digest.Digest{}}
	layer := v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: r.store(files), Size: int64(len(files))}
	for name, command := range commands {
		config, err := json.Marshal(v1.Image{
			Platform: v1.Platform{Architecture: runtime.GOARCH, OS: "linux"},
			Config:   v1.ImageConfig{User: user, WorkingDir: dir, Entrypoint: command, Env: []string{"PATH=/bin", "HOME=" + dir}},
			RootFS:   v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{layer.Digest}},
		})
		if err != nil {
			return nil, err
		}
		manifest, err := json.Marshal(v1.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Layers: []v1.Descriptor{layer},
			Config: v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: r.store(config), Size: int64(len(config))},
		})
		if err != nil {
			return nil, err
		}
		_, repository, ok := strings.Cut(name, "/")
		if !ok {
			return nil, fmt.Errorf("malformed image %q, want HOST/REPOSITORY:TAG", name)
		}
		r.manifests[repository] = r.store(manifest)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{repository}/manifests/{reference}", r.serveManifest)
	mux.HandleFunc("GET /v2/{repository}/blobs/{digest}", func(w http.ResponseWriter, q *http.Request) {
		r.serve(w, q, digest.Digest(q.PathValue("digest")), "application/octet-stream")
	})
	r.URL, r.server = "http://"+l.Addr().String(), &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(l) }() // ends with Close
	return r, nil
}

// Close ends the registry.
func (r *Registry) Close() error { return r.server.Close() }

func (r *Registry) store(blob []byte) digest.Digest {
	id := digest.FromBytes(blob)
	r.blobs[id] = blob
	return id
}

func (r *Registry) serveManifest(w http.ResponseWriter, q *http.Request) {
	reference := q.PathValue("reference")
	id, ok := r.manifests[q.PathValue("repository")+":"+reference]
	if !ok {
		id = digest.Digest(reference)
	}
	r.serve(w, q, id, v1.MediaTypeImageManifest)
}

func (r *Registry) serve(w http.ResponseWriter, q *http.Request, id digest.Digest, kind string) {
	blob, ok := r.blobs[id]
	if !ok {
		http.NotFound(w, q)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Docker-Content-Digest", id.String())
	http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(blob))
}

// Files collects the files of images.
type Files struct {
	archive bytes.Buffer
	tar     *tar.Writer
}

// NewFiles returns a collection that begins with the files of a tar archive.
func NewFiles(archive []byte) (*Files, error) {
	f := &Files{}
	f.tar = tar.NewWriter(&f.archive)
	for from := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err == nil {
			err = f.tar.WriteHeader(header)
		}
		if err == nil {
			_, err = io.Copy(f.tar, from) //nolint:gosec // G110: the caller's own archive
		}
		if err != nil {
			return nil, err
		}
	}
}

// Add adds a program.
func (f *Files) Add(name string, content []byte) error {
	const executable fs.FileMode = 0o755
	if err := f.tar.WriteHeader(&tar.Header{Name: name, Mode: int64(executable), Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := f.tar.Write(content)
	return err
}

// Link adds a symbolic link.
func (f *Files) Link(name, target string) error {
	return f.tar.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777})
}

// Archive returns the tar archive.
func (f *Files) Archive() ([]byte, error) {
	err := f.tar.Close()
	return f.archive.Bytes(), err
}
