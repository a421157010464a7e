// Dist builds what a release has, for Linux and macOS on amd64 and arm64: archives of sortie and
// sortie-exec with shell completions and man pages, Debian packages, a list of the modules of
// each build (CycloneDX), SHA-256 checksums, and install.sh, which verifies them.
//
//	go run ./local/sortie/dist -version v0.1.0 -time 1700000000 -out out/dist
//
// The same sources, Go version and arguments produce the same bytes.
package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// platforms are the systems and processors of the archives.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// programs are the programs with the folders of their packages.
var programs = []struct{ name, dir string }{
	{"sortie", "./local/sortie"}, {"sortie-exec", "./shared/worker/sortie-exec"},
}

// documents are added to each archive.
var documents = []string{"LICENSE", "README.md"}

//go:embed install.sh
var installer []byte

func main() {
	version := flag.String("version", "devel", "part of the archive names")
	seconds := flag.Int64("time", 0, "modification time of all files, in Unix seconds")
	out := flag.String("out", "out/dist", "folder of the archives")
	only := flag.String("platforms", strings.Join(platforms, ","), "platforms to build, separated by commas")
	flag.Parse()
	if err := release(*out, *version, time.Unix(*seconds, 0).UTC(), strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// release builds all files and their checksums.
func release(out, version string, modified time.Time, platforms []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // archives are public
		return fmt.Errorf("cannot create %s: %w", out, err)
	}
	version = strings.TrimPrefix(version, "v")
	common, err := guides()
	if err != nil {
		return err
	}
	for _, document := range documents {
		content, err := os.ReadFile(document)
		if err != nil {
			return err
		}
		common = append(common, entry{document, content, 0o644})
	}
	var sums strings.Builder
	write := func(name string, content []byte, mode os.FileMode) error {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
		fmt.Println(filepath.Join(out, name))
		return os.WriteFile(filepath.Join(out, name), content, mode)
	}
	for _, platform := range platforms {
		files, err := built(version, platform, common, modified)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		for _, f := range files {
			if err := write(f.name, f.content, 0o644); err != nil {
				return err
			}
		}
	}
	if err := write("install.sh", installer, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "checksums.txt"), []byte(sums.String()), 0o644) //nolint:gosec // public
}

// built returns the files for one platform: the archive, the list of modules, and for Linux the
// package.
func built(version, platform string, common []entry, modified time.Time) ([]entry, error) {
	system, processor, _ := strings.Cut(platform, "/")
	name := fmt.Sprintf("sortie_%s_%s_%s", version, system, processor)
	dir, err := os.MkdirTemp("", "sortie-dist-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var entries []entry
	var paths []string
	for _, p := range programs {
		target := filepath.Join(dir, p.name)
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -buildid=", "-o", target, p.dir) //nolint:gosec // fixed arguments
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
		if text, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot build %s: %w\n%s", p.name, err, text)
		}
		content, err := os.ReadFile(target)
		if err != nil {
			return nil, err
		}
		entries, paths = append(entries, entry{p.name, content, 0o755}), append(paths, target)
	}
	modules, err := bill(version, modified, paths)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	if err := pack(&archive, name+"/", append(entries, common...), modified); err != nil {
		return nil, err
	}
	files := []entry{{name + ".tar.gz", archive.Bytes(), 0o644}, {name + ".cdx.json", modules, 0o644}}
	if system == "linux" {
		content, err := deb(version, processor, append(entries, common...), modified)
		if err != nil {
			return nil, err
		}
		files = append(files, entry{fmt.Sprintf("sortie_%s_%s.deb", debVersion(version), processor), content, 0o644})
	}
	return files, nil
}
