package flymachines

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// digests computes the digests of images. An image here is a program; its digest covers the
// program's file and the arguments of the image. An unchanged file is read once. The zero value
// is ready to use. It is safe for concurrent use.
type digests struct{ known sync.Map }

// file identifies the content of a program's file.
type file struct {
	path     string
	size     int64
	modified time.Time
}

// of returns the digest of a command; empty if its file cannot be read.
func (d *digests) of(program []string) string {
	if len(program) == 0 {
		return ""
	}
	path, err := exec.LookPath(program[0])
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	key := file{path, info.Size(), info.ModTime()}
	content, ok := d.known.Load(key)
	if !ok {
		if content, err = sum(path); err != nil {
			return ""
		}
		d.known.Store(key, content)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(fmt.Appendf(nil, "%x %q", content, program[1:])))
}

func sum(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the path of a program that the server may run
	if err != nil {
		return nil, err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return nil, err
	}
	return hash.Sum(nil), nil
}
