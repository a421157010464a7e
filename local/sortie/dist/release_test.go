//go:build dist

package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/sortie-dev/sortie/local/proof/debian"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// releaseOf returns the files of a release of HEAD, which is built in a clone of its own.
func releaseOf(t *testing.T, clone, umask, only string, env ...string) map[string][]byte {
	t.Helper()
	cloneTo(t, clone)
	out := t.TempDir()
	run(t, clone, env, "sh", "-c", `umask "$1"; exec go run ./local/sortie/dist -time 1700000000 -platforms "$2" -out "$3"`, "sh", umask, only, out)
	return filesOf(t, out)
}

func cloneTo(t *testing.T, dir string) {
	t.Helper()
	run(t, "../../..", nil, "git", "clone", "--quiet", "--no-hardlinks", ".", dir)
}

func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range found {
		if files[f.Name()], err = os.ReadFile(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// run runs a program and returns its output.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	text, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, text)
	}
	return string(text)
}

// TestRelease builds all targets in one clone and the first again in another one, of another
// path, with another umask and time zone. It compares the files, and uses what it can use here.
func TestRelease(t *testing.T) {
	t.Parallel()
	files := releaseOf(t, filepath.Join(t.TempDir(), "one"), "022", strings.Join(platforms, ","))
	again := filepath.Join(t.TempDir(), "another", "clone")
	second := releaseOf(t, again, "077", platforms[0], "TZ=Asia/Tokyo", "LC_ALL=C", "HOSTNAME=another")
	for _, name := range slices.Sorted(maps.Keys(second)) {
		if name != "checksums.txt" && !bytes.Equal(files[name], second[name]) {
			t.Errorf("%s: got other bytes by a second build", name)
		}
	}
	if len(second) != 6 || len(files) != 5*2+2*2+3 {
		t.Errorf("got %d and %d files, want 6 of %s, and 17", len(second), len(files), platforms[0])
	}
	for line := range strings.Lines(string(files["checksums.txt"])) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256(files[name])); got != sum {
			t.Errorf("%s: got checksum %s, want %s", name, sum, got)
		}
	}
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	version, revision := contract.APIVersion, strings.TrimSpace(run(t, ".", nil, "git", "rev-parse", "HEAD"))
	t.Run("archive and formula", func(t *testing.T) {
		t.Parallel()
		name := "sortie_" + version + "_linux_amd64"
		run(t, dir, nil, "tar", "-xzf", name+".tar.gz")
		if got := run(t, dir, nil, name+"/sortie", "version"); !strings.Contains(got, "sortie "+version+", revision "+revision) {
			t.Errorf("got %s, want version %s and revision %s", got, version, revision)
		}
		sum := fmt.Sprintf("%x", sha256.Sum256(files[name+".tar.gz"]))
		got := run(t, dir, nil, "ruby", abs(t, "testdata/brew.rb"), filepath.Join(dir, "sortie.rb"), name, t.TempDir())
		if !strings.Contains(got, name+".tar.gz") || !strings.Contains(got, sum) {
			t.Errorf("got %s, want the archive with %s", got, sum)
		}
	})
	t.Run("windows", func(t *testing.T) {
		t.Parallel()
		reader, err := zip.OpenReader(filepath.Join(dir, "sortie_"+version+"_windows_amd64.zip"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = reader.Close() }()
		var names []string
		for _, f := range reader.File {
			names = append(names, f.Name)
		}
		prefix := "sortie_" + version + "_windows_amd64/"
		if want := []string{prefix + "sortie.exe", prefix + "LICENSE", prefix + "README.md"}; !slices.Equal(names, want) {
			t.Errorf("got %q, want %q", names, want)
		}
	})
	t.Run("unit", func(t *testing.T) {
		t.Parallel()
		const mostExposed = "20" // tenths, of 100
		if _, err := exec.LookPath("systemd-analyze"); err != nil {
			t.Skip("needs systemd-analyze: apt-get install systemd")
		}
		run(t, ".", nil, "systemd-analyze", "security", "--offline=true", "--threshold="+mostExposed, "linux/sortie.service")
	})
	deb, red := filepath.Join(dir, "sortie_"+version+"_amd64.deb"), filepath.Join(dir, "sortie-"+version+"-1.x86_64.rpm")
	t.Run("debian", func(t *testing.T) {
		t.Parallel()
		checkPackage(t, []string{"dpkg-deb"}, "--field", "--contents", deb, "vendor-completions")
		root := systemRoot(t, "var/lib/dpkg/status", "var/lib/dpkg/info/", "var/lib/dpkg/updates/")
		run(t, "/", nil, "dpkg", "--root="+root, "--install", deb)
		checkInstalled(t, root)
		run(t, "/", nil, "dpkg", "--root="+root, "--remove", "sortie")
		checkRemoved(t, root, "/etc/sortie/sortie.env")
		run(t, "/", nil, "dpkg", "--root="+root, "--purge", "sortie")
		checkRemoved(t, root)
	})
	t.Run("fedora", func(t *testing.T) {
		t.Parallel()
		checkPackage(t, rpm(t), "-qip --nosignature", "-qlp --nosignature", red, "site-functions")
		root := systemRoot(t)
		manage := func(args ...string) {
			tool := append(rpm(t), "--root", root)
			run(t, "/", nil, tool[0], append(tool[1:], args...)...)
		}
		manage("--install", "--nosignature", "--nodeps", red) // the shell of root belongs to no package of rpm
		checkInstalled(t, root)
		manage("--erase", "sortie")
		checkRemoved(t, root)
	})
}

func abs(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// checkPackage lists a package with the tool of its distribution.
func checkPackage(t *testing.T, tool []string, fields, list, file, zsh string) {
	t.Helper()
	inspect := func(option string) string {
		args := append(slices.Clone(tool[1:]), strings.Fields(option)...)
		return run(t, ".", nil, tool[0], append(args, file)...)
	}
	if got := strings.Join(strings.Fields(inspect(fields)), " "); !strings.Contains(strings.ReplaceAll(got, " :", ":"), "Version: "+contract.APIVersion) {
		t.Errorf("got %s, want version %s", got, contract.APIVersion)
	}
	got := inspect(list)
	for _, want := range []string{
		"/usr/bin/sortie", "/usr/bin/sortie-exec", "/usr/share/man/man1/sortie-runs.1.gz", "/usr/lib/systemd/system/sortie.service",
		"/usr/lib/sysusers.d/sortie.conf", "/etc/sortie/sortie.env", zsh + "/_sortie",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got no %s in %s", want, got)
		}
	}
}

// rpm returns the command of rpm with its first arguments. It fetches Debian's package if rpm is
// not in the PATH.
func rpm(t *testing.T) []string {
	t.Helper()
	if tool, err := exec.LookPath("rpm"); err == nil {
		return []string{tool}
	}
	root, err := debian.Fetch(t.Context(), "rpm-debian-12", []string{"rpm", "rpm-common", "librpm9", "librpmio9", "liblua5.3-0", "libpopt0"}, func(s string) { t.Log(s) }, nil)
	if err != nil {
		t.Fatalf("rpm is not in the PATH, and it cannot be fetched: %v", err)
	}
	return []string{"env", "LD_LIBRARY_PATH=" + root + "/usr/lib/x86_64-linux-gnu", "RPM_CONFIGDIR=" + root + "/usr/lib/rpm", root + "/usr/bin/rpm"}
}

// systemRoot returns the folder of a small Debian, in which packages are installed. It has a
// shell and systemd-sysusers. An entry of more is an empty file, or a folder if it ends with a
// slash.
func systemRoot(t *testing.T, more ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, which installs packages in a root folder of their own")
	}
	files, err := debian.Fetch(t.Context(), "install-debian-12", []string{"libc6", "dash", "systemd-standalone-sysusers", "libcap2", "libcrypt1", "libselinux1", "libpcre2-8-0", "libgcc-s1"}, func(s string) { t.Log(s) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "root")
	run(t, "/", nil, "cp", "-a", files, root)
	for _, name := range append(more, "dev/", "tmp/", "root/") {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name+"x")), 0o755); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "/") {
			run(t, root, nil, "touch", name)
		}
	}
	run(t, root, nil, "sh", "-c", "cp -a /dev/null dev/ && if [ ! -e bin/sh ]; then ln -s dash bin/sh; fi")
	return root
}

// checkInstalled uses what a package has installed: the program runs a program, and the user of
// the service exists.
func checkInstalled(t *testing.T, root string) {
	t.Helper()
	inside := func(args ...string) string {
		return run(t, "/", []string{"HOME=/root", "TMPDIR=/tmp"}, "chroot", append([]string{root}, args...)...)
	}
	if got := inside("/usr/bin/sortie", "version"); !strings.HasPrefix(got, "sortie "+contract.APIVersion+",") {
		t.Errorf("got %s, want version %s", got, contract.APIVersion)
	}
	if got := inside("/bin/sh", "-c", "cd /root && sortie demo"); !strings.Contains(got, "Completed") {
		t.Errorf("got %s, want a run that completes", got)
	}
	if got := inside("/usr/bin/sortie-exec", "--standalone", "--", "/bin/sh", "-c", "echo works"); !strings.Contains(got, "works") {
		t.Errorf("got %s, want the output of the program", got)
	}
	users, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	if err != nil || !strings.Contains(string(users), "sortie:") {
		t.Errorf("got the users %s, %v, want sortie", users, err)
	}
}

// checkRemoved checks that a package has left only these of its files.
func checkRemoved(t *testing.T, root string, left ...string) {
	t.Helper()
	for _, name := range []string{"/usr/bin/sortie", "/usr/bin/sortie-exec", "/usr/lib/systemd/system/sortie.service", "/etc/sortie/sortie.env"} {
		if _, err := os.Stat(filepath.Join(root, name)); (err == nil) != slices.Contains(left, name) {
			t.Errorf("%s: got error %v, want it left: %t", name, err, slices.Contains(left, name))
		}
	}
}

// TestInstallByVersion installs HEAD by its version from a proxy of modules.
func TestInstallByVersion(t *testing.T) {
	t.Parallel()
	const path = "github.com/sortie-dev/sortie"
	dir, version := t.TempDir(), "v"+contract.APIVersion
	proxy := filepath.Join(dir, "proxy", path, "@v")
	if err := os.MkdirAll(proxy, 0o700); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	clone := filepath.Join(dir, "clone")
	cloneTo(t, clone)
	if err := modzip.CreateFromVCS(&archive, module.Version{Path: path, Version: version}, clone, "HEAD", ""); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		version + ".zip": archive.String(), version + ".info": fmt.Sprintf(`{"Version": %q}`, version),
		version + ".mod": run(t, clone, nil, "cat", "go.mod"), "list": version + "\n",
	} {
		if err := os.WriteFile(filepath.Join(proxy, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	downloaded := strings.TrimSpace(run(t, ".", nil, "go", "env", "GOMODCACHE")) + "/cache/download"
	env := []string{
		"GOPROXY=file://" + filepath.Join(dir, "proxy") + ",file://" + downloaded + "," + strings.TrimSpace(run(t, ".", nil, "go", "env", "GOPROXY")),
		"GOMODCACHE=" + filepath.Join(dir, "mod"), "GOBIN=" + filepath.Join(dir, "bin"), "GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath", "CGO_ENABLED=0",
	}
	run(t, dir, env, "go", "install", path+"/local/sortie@"+version, path+"/shared/sdk/go/sortie-exec@"+version)
	if got := run(t, dir, nil, "bin/sortie", "version"); !strings.HasPrefix(got, "sortie "+contract.APIVersion+",") {
		t.Errorf("got %s, want version %s", got, contract.APIVersion)
	}
	// The programs of one version find each other.
	if got := run(t, dir, nil, "bin/sortie-exec", "--help"); !strings.Contains(got, "CMD") {
		t.Errorf("got %s, want the help", got)
	}
}
