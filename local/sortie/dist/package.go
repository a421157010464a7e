package main

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// nfpm makes packages of Linux distributions. It runs by version, like the linters, because
// the module of this repository does not need its dependencies.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2"

// linux has the configuration of nfpm, the unit of the service and its user.
//
//go:embed linux
var linux embed.FS

// packages returns a package for Debian and one for Fedora. The programs are static, so the
// packages depend on nothing.
func packages(version, processor string, entries []entry, modified time.Time, environ []string) (list []entry, err error) {
	dir, err := os.MkdirTemp("", "sortie-package-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.CopyFS(dir, linux); err != nil {
		return nil, err
	}
	work, out := filepath.Join(dir, "linux"), filepath.Join(dir, "out")
	for _, e := range entries {
		if strings.HasPrefix(e.name, "man/") {
			if e, err = compressed(e); err != nil {
				return nil, err
			}
		}
		name := filepath.Join(work, filepath.FromSlash(e.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // public
			return nil, err
		}
		if err := os.WriteFile(name, e.content, os.FileMode(e.mode)); err != nil { //nolint:gosec // modes of this program
			return nil, err
		}
		if err := os.Chmod(name, os.FileMode(e.mode)); err != nil { //nolint:gosec // whatever the umask is
			return nil, err
		}
	}
	if err := os.Mkdir(out, 0o700); err != nil {
		return nil, err
	}
	for _, packager := range []string{"deb", "rpm"} {
		run := exec.Command("go", "run", nfpm, "package", "--config", "nfpm.yaml", "--packager", packager, "--target", out) //nolint:gosec,noctx // constants
		run.Dir = work
		run.Env = append(slices.Clip(environ), "CGO_ENABLED=0", "VERSION="+version, "ARCH="+processor, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", modified.Unix()))
		if text, err := run.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot make a %s: %w\n%s", packager, err, text)
		}
	}
	files, err := os.ReadDir(out)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(out, f.Name())) //nolint:gosec // a folder of this process
		if err != nil {
			return nil, err
		}
		list = append(list, entry{f.Name(), content, 0o644})
	}
	return list, nil
}

func compressed(e entry) (entry, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(e.content)
	return entry{e.name + ".gz", b.Bytes(), e.mode}, errors.Join(err, w.Close())
}

// downloads is the address of the files of a version.
const downloads = "https://github.com/sortie-dev/sortie/releases/download/v"

//go:embed formula.rb
var formulaTemplate string

// formula returns the formula of Homebrew. sums maps the names of the archives to their
// checksums.
func formula(version string, sums map[string]string) []byte {
	text := strings.NewReplacer("VERSION", version, "URL", downloads+version).Replace(formulaTemplate)
	for name, sum := range sums {
		text = strings.ReplaceAll(text, "SHA256 "+name, sum)
	}
	return []byte(text)
}
