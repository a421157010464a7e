// Package recipe holds what LocalStack is made of here: the versions of its
// Python packages, DynamoDB Local's coordinates, and the plugin that LocalStack gets.
//
// It is data. Nothing of LocalStack or DynamoDB Local is in it: they are
// fetched by name, each under its own licence. A part has a digest, so that
// what was installed from another recipe is never taken for it.
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

// Version is LocalStack's, the last that is free. The plugin replaces private
// methods of this very release.
const Version = "4.14.0"

// Image is the same release for Docker.
const Image = "localstack/localstack:" + Version

// Part is a file or folder of the recipe.
type Part string

const (
	// Python lists every Python package with its version. A free choice of
	// them does not work: cbor2 6 is taken then, with which LocalStack finds
	// none of its own parts.
	Python Part = "requirements.lock"
	// DynamoDB is a Maven project that depends on DynamoDB Local.
	DynamoDB Part = "pom.xml"
	// Plugin is a folder for PYTHONPATH: the modules, and beside them the
	// entry points by which LocalStack finds them.
	Plugin Part = "plugin"
)

//go:embed requirements.lock pom.xml all:plugin
var files embed.FS

// Digest names a part's content in 16 characters.
func (p Part) Digest() (string, error) {
	var all []byte
	err := p.each(func(name string, text []byte) error {
		all = fmt.Appendf(all, "%s %d\n%s", name, len(text), text)
		return nil
	})
	return Digest(all), err
}

// Digest names any content in 16 characters.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Write puts a part under its own name into a folder that exists.
func (p Part) Write(dir string) error {
	return p.each(func(name string, text []byte) error {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // the container's user reads it
			return fmt.Errorf("cannot write the recipe: %w", err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // likewise
			return fmt.Errorf("cannot write the recipe: %w", err)
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
		return fmt.Errorf("cannot read %s of the recipe: %w", p, err)
	}
	return nil
}
