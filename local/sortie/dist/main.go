// Dist builds what a release has: archives of sortie and sortie-exec for Linux and macOS with
// shell completions and man pages, one of the client for Windows, packages for Debian and
// Fedora, a formula for Homebrew, a list of the modules of each build (CycloneDX), SHA-256
// checksums, and install.sh, which verifies them.
//
//	go run ./local/sortie/dist -time 1700000000 -out out/dist
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
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// The systems that differ from the others.
const (
	systemLinux   = "linux"
	systemWindows = "windows"
)

// platforms are the systems and processors of the archives.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// program is a program of a release with the folder of its package.
type program struct{ name, dir string }

// programsOf returns the programs for a system. sortie-exec needs the signals of Unix.
func programsOf(system string) []program {
	if system == systemWindows {
		return []program{{"sortie.exe", "./local/sortie"}}
	}
	return []program{{"sortie", "./local/sortie"}, {"sortie-exec", "./shared/sdk/go/sortie-exec"}}
}

// documents are added to each archive.
var documents = []string{"LICENSE", "README.md"}

//go:embed install.sh
var installer []byte

func main() {
	seconds := flag.Int64("time", 0, "modification time of all files, in Unix seconds")
	out := flag.String("out", "out/dist", "folder of the archives")
	only := flag.String("platforms", strings.Join(platforms, ","), "platforms to build, separated by commas")
	flag.Parse()
	if err := release(*out, contract.APIVersion, time.Unix(*seconds, 0).UTC(), strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// release builds all files and their checksums. The formula needs all platforms.
func release(out, version string, modified time.Time, only []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // archives are public
		return fmt.Errorf("cannot create %s: %w", out, err)
	}
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
	var lines strings.Builder
	sums := map[string]string{}
	write := func(e entry) error {
		sums[e.name] = fmt.Sprintf("%x", sha256.Sum256(e.content))
		fmt.Fprintf(&lines, "%s  %s\n", sums[e.name], e.name)
		fmt.Println(filepath.Join(out, e.name))
		return os.WriteFile(filepath.Join(out, e.name), e.content, os.FileMode(e.mode)) //nolint:gosec // modes of this program
	}
	for _, platform := range only {
		files, err := built(version, platform, common, modified)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		for _, f := range files {
			if err := write(f); err != nil {
				return err
			}
		}
	}
	if slices.Equal(only, platforms) {
		if err := write(entry{"sortie.rb", formula(version, sums), 0o644}); err != nil {
			return err
		}
	}
	if err := write(entry{"install.sh", installer, 0o755}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "checksums.txt"), []byte(lines.String()), 0o644) //nolint:gosec // public
}

// built returns the files for one platform: the archive, the list of modules, and for Linux the
// packages.
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
	for _, p := range programsOf(system) {
		target := filepath.Join(dir, p.name)
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w -buildid=", "-o", target, p.dir) //nolint:gosec,noctx // fixed arguments
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
	list := entry{name + ".cdx.json", modules, 0o644}
	var archive bytes.Buffer
	if system == systemWindows {
		// Its users read no man pages, and have other shells.
		common = slices.DeleteFunc(slices.Clone(common), func(e entry) bool { return strings.Contains(e.name, "/") })
		err = packZip(&archive, name+"/", append(entries, common...), modified)
		return []entry{{name + ".zip", archive.Bytes(), 0o644}, list}, err
	}
	entries = append(entries, common...)
	if err := pack(&archive, name+"/", entries, modified); err != nil {
		return nil, err
	}
	files := []entry{{name + ".tar.gz", archive.Bytes(), 0o644}, list}
	if system == systemLinux {
		found, err := packages(version, processor, entries, modified, os.Environ())
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}
