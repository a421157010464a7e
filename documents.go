// Package sortie has the documents of the repository, which the console serves.
package sortie

import (
	"embed"
	"io/fs"
)

// Those of the module infra are missing, because a module cannot embed files of another one.
//
//go:embed *.md .github/*.md events/*.md functions/*.md functions/*/*.md functions/console/*.webp local/*.md local/*/*.md local/*/*/*.md local/sortie/*.svg
//go:embed shared/*.md shared/*/*.md shared/*/*/*.md shared/sdk/go/worker/*.md statemachines/*.md
var documents embed.FS

// Documents returns the Markdown files by their paths in the repository, with their
// pictures. The caller may modify the map.
func Documents() map[string][]byte {
	files := map[string][]byte{}
	err := fs.WalkDir(documents, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[name], err = documents.ReadFile(name)
		}
		return err
	})
	if err != nil {
		panic(err) // the files are embedded
	}
	return files
}
