package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"sync"
)

//go:embed static
var staticFiles embed.FS

// file is an embedded file of the console.
type file struct {
	Content []byte
	Version string
	// Compressed returns the content in the format of gzip.
	Compressed func() []byte
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
		all[e.Name()] = file{content, hex.EncodeToString(sum[:6]), sync.OnceValue(func() []byte { return compressed(content) })}
	}
	return all
}()

func compressed(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid, and a buffer has no errors
	_, _ = w.Write(content)
	_ = w.Close()
	return b.Bytes()
}

// asset returns the address of an embedded file, below the console. It changes with the content.
func asset(name string) string { return "static/" + name + "?v=" + Files[name].Version }
