package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"os"
	"path"
	"slices"
	"time"
)

// entry is a file of a release.
type entry struct {
	name    string
	content []byte
	mode    int64
}

// pack writes a gzipped tar archive with the entries below prefix, and their folders. Owner and
// time are fixed, so that equal files give equal archives.
func pack(w io.Writer, prefix string, entries []entry, modified time.Time) error {
	compressed := gzip.NewWriter(w)
	writer := tar.NewWriter(compressed)
	var folders []string
	folder := func(name string) error {
		if name == "." || name == "/" || slices.Contains(folders, name) {
			return nil
		}
		folders = append(folders, name)
		return writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: modified, Format: tar.FormatUSTAR})
	}
	for _, e := range entries {
		name := prefix + e.name
		for at, r := range path.Dir(name) + "/" {
			if r != '/' {
				continue
			}
			if err := folder(name[:at]); err != nil {
				return err
			}
		}
		if err := writer.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: name, Mode: e.mode, Size: int64(len(e.content)), ModTime: modified, Format: tar.FormatUSTAR,
		}); err != nil {
			return err
		}
		if _, err := writer.Write(e.content); err != nil {
			return err
		}
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

// packZip writes a zip archive with the entries below prefix.
func packZip(w io.Writer, prefix string, entries []entry, modified time.Time) error {
	writer := zip.NewWriter(w)
	for _, e := range entries {
		header := zip.FileHeader{Name: prefix + e.name, Method: zip.Deflate, Modified: modified}
		header.SetMode(os.FileMode(e.mode)) //nolint:gosec // modes of this program
		file, err := writer.CreateHeader(&header)
		if err != nil {
			return err
		}
		if _, err := file.Write(e.content); err != nil {
			return err
		}
	}
	return writer.Close()
}
