// Package components pins the parts from which LocalStack is installed: the versions of its
// Python packages, the coordinates of DynamoDB Local, and the plugin.
//
// It contains no part of LocalStack or DynamoDB Local. Both are downloaded by name, each under
// its own licence. Each part has a digest, so that an installation of another version is never
// reused.
package components

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Version is the last free version of LocalStack. The plugin replaces private methods of
// exactly this release.
const Version = "4.14.0"

// Image is the Docker image of the same release.
const Image = "localstack/localstack:" + Version

// Part is one embedded file or folder.
type Part string

const (
	// Python lists every Python package with its version. Without the pins, pip installs cbor2
	// 6, and LocalStack then finds none of its own modules.
	Python Part = "requirements.lock"
	// DynamoDB is a Maven project that depends on DynamoDB Local.
	DynamoDB Part = "pom.xml"
	// Plugin is a folder for PYTHONPATH. It has the modules, and the entry points by which
	// LocalStack finds them.
	Plugin Part = "plugin"
)

//go:embed requirements.lock pom.xml all:plugin
var files embed.FS

// Digest returns 16 characters that identify the part's content.
func (p Part) Digest() (string, error) {
	var all []byte
	err := p.each(func(name string, text []byte) error {
		all = fmt.Appendf(all, "%s %d\n%s", name, len(text), text)
		return nil
	})
	return Digest(all), err
}

// Digest returns 16 characters that identify content.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Write writes the part with its own name into an existing folder.
func (p Part) Write(dir string) error {
	return p.each(func(name string, text []byte) error {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // the container's user reads it
			return fmt.Errorf("cannot write a component: %w", err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // likewise
			return fmt.Errorf("cannot write a component: %w", err)
		}
		return nil
	})
}

func (p Part) each(visit func(name string, text []byte) error) error {
	err := fs.WalkDir(files, string(p), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		return visit(name, text)
	})
	if err != nil {
		return fmt.Errorf("cannot read component %s: %w", p, err)
	}
	return nil
}
