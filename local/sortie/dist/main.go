// Dist builds the release archives: sortie and sortie-exec for Linux and macOS
// on amd64 and arm64, with a file of SHA-256 checksums.
//
//	go run ./local/sortie/dist -version v0.1.0 -time 1700000000 -out out/dist
//
// The same sources, Go version and arguments produce the same bytes.
package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
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

// release builds all archives and their checksums.
func release(out, version string, modified time.Time, platforms []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // archives are public
		return fmt.Errorf("cannot create %s: %w", out, err)
	}
	var sums strings.Builder
	for _, platform := range platforms {
		system, processor, _ := strings.Cut(platform, "/")
		name := fmt.Sprintf("sortie_%s_%s_%s", strings.TrimPrefix(version, "v"), system, processor)
		sum, err := archive(filepath.Join(out, name+".tar.gz"), name, system, processor, modified)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		fmt.Fprintf(&sums, "%s  %s.tar.gz\n", sum, name)
		fmt.Println(filepath.Join(out, name+".tar.gz"))
	}
	return os.WriteFile(filepath.Join(out, "checksums.txt"), []byte(sums.String()), 0o644) //nolint:gosec // public
}

// archive builds the programs for one platform and returns the checksum of the
// archive.
func archive(file, name, system, processor string, modified time.Time) (sum string, err error) {
	dir, err := os.MkdirTemp("", "sortie-dist-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var files []string
	for _, p := range programs {
		target := filepath.Join(dir, p.name)
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -buildid=", "-o", target, p.dir) //nolint:gosec // fixed arguments
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
		if text, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("cannot build %s: %w\n%s", p.name, err, text)
		}
		files = append(files, target)
	}
	for _, document := range documents {
		if _, err := os.Stat(document); err == nil {
			files = append(files, document)
		}
	}
	target, err := os.Create(file)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	err = pack(io.MultiWriter(target, hash), name, files, modified)
	if closed := target.Close(); err == nil {
		err = closed
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), err
}

// pack writes a gzipped tar archive with the files in a folder. Owner, mode and
// time are fixed, so that equal files give equal archives.
func pack(w io.Writer, folder string, files []string, modified time.Time) error {
	compressed := gzip.NewWriter(w)
	writer := tar.NewWriter(compressed)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		mode := int64(0o755)
		if filepath.Ext(file) != "" || filepath.Base(file) == "LICENSE" {
			mode = 0o644
		}
		if err := writer.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: folder + "/" + filepath.Base(file), Mode: mode, Size: int64(len(content)),
			ModTime: modified, Format: tar.FormatUSTAR,
		}); err != nil {
			return err
		}
		if _, err := writer.Write(content); err != nil {
			return err
		}
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return compressed.Close()
}
