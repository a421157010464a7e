package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestPackIsReproducible packs files twice.
func TestPackIsReproducible(t *testing.T) {
	t.Parallel()
	modified := time.Unix(1_700_000_000, 0).UTC()
	pack := func() []byte {
		var out bytes.Buffer
		if err := pack(&out, "sortie_1_linux_amd64/", []entry{{"sortie", []byte("sortie"), 0o755}, {"man/README.md", []byte("text"), 0o644}}, modified); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	first, second := pack(), pack()
	if !bytes.Equal(first, second) {
		t.Error("got different archives of equal files")
	}
	uncompressed, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	reader := tar.NewReader(uncompressed)
	for _, want := range []tar.Header{
		{Name: "sortie_1_linux_amd64/", Mode: 0o755},
		{Name: "sortie_1_linux_amd64/sortie", Mode: 0o755},
		{Name: "sortie_1_linux_amd64/man/", Mode: 0o755},
		{Name: "sortie_1_linux_amd64/man/README.md", Mode: 0o644},
	} {
		got, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != want.Name || got.Mode != want.Mode || !got.ModTime.Equal(modified) {
			t.Errorf("got %s with mode %o and time %s, want %s with mode %o and time %s", got.Name, got.Mode, got.ModTime, want.Name, want.Mode, modified)
		}
	}
}

// TestZipIsReproducible packs a program for Windows twice.
func TestZipIsReproducible(t *testing.T) {
	t.Parallel()
	var archives [2]bytes.Buffer
	for i := range archives {
		if err := packZip(&archives[i], "sortie_1_windows_amd64/", []entry{{"sortie.exe", []byte("sortie"), 0o755}, {"LICENSE", []byte("text"), 0o644}}, time.Unix(1_700_000_000, 0).UTC()); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0].Bytes(), archives[1].Bytes()) {
		t.Error("got different archives of equal files")
	}
	reader, err := zip.NewReader(bytes.NewReader(archives[0].Bytes()), int64(archives[0].Len()))
	if err != nil {
		t.Fatal(err)
	}
	if f := reader.File[0]; len(reader.File) != 2 || f.Name != "sortie_1_windows_amd64/sortie.exe" || f.Mode() != 0o755 || f.Modified.Unix() != 1_700_000_000 {
		t.Errorf("got %+v", f.FileHeader)
	}
}

// TestFormulaHasEachChecksum reads the formula as text; TestRelease executes it.
func TestFormulaHasEachChecksum(t *testing.T) {
	t.Parallel()
	sums := map[string]string{}
	for _, platform := range platforms {
		if !strings.HasPrefix(platform, systemWindows) {
			name := "sortie_1.2.3_" + strings.ReplaceAll(platform, "/", "_") + ".tar.gz"
			sums[name] = fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
		}
	}
	text := string(formula("1.2.3", sums))
	for name, sum := range sums {
		if want := fmt.Sprintf("      url %q\n      sha256 %q\n", downloads+"1.2.3/"+name, sum); !strings.Contains(text, want) {
			t.Errorf("got no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "VERSION") || strings.Contains(text, "SHA256") {
		t.Errorf("got a formula with open places:\n%s", text)
	}
}

// TestGuidesNameEachCommand checks the man pages and the completions of the command line.
func TestGuidesNameEachCommand(t *testing.T) {
	t.Parallel()
	list, err := guides()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range list {
		found[e.name] = string(e.content)
	}
	for name, want := range map[string]string{
		"man/man1/sortie.1": "sortie\\-runs", "man/man1/sortie-runs.1": `.SH "OPTIONS`, "man/man1/sortie-jobs-apply.1": "SEE ALSO",
		"completions/sortie.bash": "__sortie", "completions/_sortie": "#compdef sortie", "completions/sortie.fish": "complete -c sortie",
	} {
		if !strings.Contains(found[name], want) {
			t.Errorf("%s: got %d bytes without %q", name, len(found[name]), want)
		}
	}
}

func TestManualEscapesItsText(t *testing.T) {
	t.Parallel()
	if got, want := escaped("a-b\n.so x\n'y \\"), "a\\-b\n\\&.so x\n\\&'y \\e"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBillListsModules(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := bill("1.0.0", time.Unix(0, 0).UTC(), []string{program})
	if err != nil {
		t.Fatal(err)
	}
	var b struct {
		BOMFormat  string
		Components []component
	}
	if err := json.Unmarshal(text, &b); err != nil || b.BOMFormat != "CycloneDX" {
		t.Fatalf("got %s (%v)", text, err)
	}
	if !strings.Contains(string(text), "pkg:golang/github.com/spf13/cobra@v") || !strings.Contains(string(text), `"pkg:golang/std@`) {
		t.Errorf("got %d components without cobra or std", len(b.Components))
	}
}

// released writes a release of a small program for this host into a folder.
func released(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	name := fmt.Sprintf("sortie_1.0.0_%s_%s", runtime.GOOS, runtime.GOARCH)
	script := []byte("#!/bin/sh\necho sortie 1.0.0\n")
	var archive bytes.Buffer
	if err := pack(&archive, name+"/", []entry{{"sortie", script, 0o755}, {"sortie-exec", script, 0o755}}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	sums := fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(archive.Bytes()), name)
	for file, content := range map[string][]byte{name + ".tar.gz": archive.Bytes(), "checksums.txt": []byte(sums)} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestInstaller installs a release, and refuses one with another checksum.
func TestInstaller(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(dir string) error
		env    string
		want   string
	}{
		"the newest version": {func(string) error { return nil }, "", "Installed"},
		"a version":          {func(string) error { return nil }, "SORTIE_VERSION=v1.0.0", "Installed"},
		"no encryption":      {func(string) error { return nil }, "SORTIE_RELEASES=http://127.0.0.1:9", "begins with https://"},
		"another version":    {func(string) error { return nil }, "SORTIE_VERSION=2.0.0", "no line for"},
		"an archive replaced": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, fmt.Sprintf("sortie_1.0.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)), []byte("x"), 0o600)
		}, "", "checksum of"},
	} {
		dir, bin := released(t), filepath.Join(t.TempDir(), "bin")
		if err := row.change(dir); err != nil {
			t.Fatal(err)
		}
		install := exec.CommandContext(t.Context(), "sh", "install.sh")
		install.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "SORTIE_RELEASES=" + dir, "SORTIE_BIN_DIR=" + bin, row.env}
		text, _ := install.CombinedOutput()
		if !strings.Contains(string(text), row.want) {
			t.Errorf("%s: got %s, want %q", name, text, row.want)
		}
		if _, err := os.Stat(filepath.Join(bin, "sortie")); (err == nil) != (row.want == "Installed") {
			t.Errorf("%s: got %v about the program", name, err)
		}
	}
}
