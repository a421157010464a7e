package ui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
)

//go:embed static
var staticFiles embed.FS

// file is an embedded file of the console.
type file struct {
	Content []byte
	Version string
}

// Files are the embedded files by name.
var Files = func() map[string]file {
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		panic(err) // the folder is embedded
	}
	all := map[string]file{}
	for _, e := range entries {
		content, err := staticFiles.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err) // the file is embedded
		}
		sum := sha256.Sum256(content)
		all[e.Name()] = file{content, hex.EncodeToString(sum[:6])}
	}
	return all
}()

// asset returns the address of an embedded file, below the console. It changes with the content.
func asset(name string) string { return "static/" + name + "?v=" + Files[name].Version }
