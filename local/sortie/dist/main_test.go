package main

import (
	"archive/tar"
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

func TestVersionsOfDebian(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"0.1.0": "0.1.0", "6de93ef1-dirty": "0~6de93ef1+dirty", "0.1.0-3-gabc": "0.1.0+3+gabc", "1234567": "0~1234567", "": "0~"} {
		if got := debVersion(version); got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
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

// TestPackageOfDebian reads a package with dpkg-deb.
func TestPackageOfDebian(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("dpkg-deb")
	if err != nil {
		t.Skip("needs dpkg-deb: apt-get install dpkg")
	}
	common, err := guides()
	if err != nil {
		t.Fatal(err)
	}
	content, err := deb("1.0.0", "amd64", append([]entry{{"sortie", []byte("program"), 0o755}, {"LICENSE", []byte("text"), 0o644}}, common...), time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sortie.deb")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for option, want := range map[string]string{"--field": "Version: 1.0.0", "--contents": "./usr/share/man/man1/sortie-runs.1.gz"} {
		if text, err := exec.CommandContext(t.Context(), tool, option, file).CombinedOutput(); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: got %s (%v), want %q", option, text, err, want)
		}
	}
}
