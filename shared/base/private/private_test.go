package private_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/shared/base/private"
)

// own creates a file or folder with a mode, and returns its path.
func own(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	var err error
	if mode.IsDir() {
		err = os.Mkdir(path, mode.Perm())
	} else {
		err = os.WriteFile(path, []byte("text"), mode)
	}
	if err = errors.Join(err, os.Chmod(path, mode.Perm())); err != nil {
		t.Fatal(err)
	}
	return path
}

// another changes the owner of a file to another user. It skips the test without root.
func another(t *testing.T, path string) {
	t.Helper()
	if err := os.Lchown(path, 65534, 65534); err != nil {
		t.Skipf("only root can give a file to another user: %v", err)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		make func(t *testing.T, path string)
		says string
	}{
		{"private", func(t *testing.T, path string) { t.Helper(); own(t, path, 0o600) }, ""},
		{"read-only", func(t *testing.T, path string) { t.Helper(); own(t, path, 0o400) }, ""},
		{"readable by the group", func(t *testing.T, path string) { t.Helper(); own(t, path, 0o640) }, "chmod 0600 "},
		{"writable by others", func(t *testing.T, path string) { t.Helper(); own(t, path, 0o602) }, "mode 0602"},
		{"a folder", func(t *testing.T, path string) { t.Helper(); own(t, path, 0o700|fs.ModeDir) }, "is not a file"},
		{"of another user", func(t *testing.T, path string) { t.Helper(); another(t, own(t, path, 0o600)) }, "belongs to user 65534"},
		{"a symbolic link", func(t *testing.T, path string) {
			t.Helper()
			if err := os.Symlink(own(t, path+"-target", 0o600), path); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link"},
		{"a named pipe", func(t *testing.T, path string) {
			t.Helper()
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is not a file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "file")
			row.make(t, path)
			text, err := private.Read(path, 4)
			if row.says == "" && (err != nil || string(text) != "text") || row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)) {
				t.Errorf("got %q, %v, want the error %q", text, err, row.says)
			}
		})
	}
	path := own(t, filepath.Join(t.TempDir(), "file"), 0o600)
	if _, err := private.Read(path, 3); err == nil || !strings.Contains(err.Error(), "more than 3 bytes") {
		t.Errorf("too long: got %v", err)
	}
	if _, err := private.Read(path+"x", 3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v, want ErrNotExist", err)
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	inside := func(t *testing.T, path string) { t.Helper(); own(t, filepath.Join(path, "file"), 0o600) }
	folder := func(t *testing.T, path string, mode os.FileMode) { t.Helper(); own(t, path, mode|fs.ModeDir) }
	for _, row := range []struct {
		name string
		make func(t *testing.T, path string)
		says string
	}{
		{"new", func(*testing.T, string) {}, ""},
		{"private", func(t *testing.T, path string) { t.Helper(); folder(t, path, 0o700); inside(t, path) }, ""},
		{"open and empty", func(t *testing.T, path string) { t.Helper(); folder(t, path, 0o755) }, ""},
		{"as git makes it", func(t *testing.T, path string) { t.Helper(); folder(t, path, 0o755); inside(t, path) }, "chmod 0700 "},
		{"writable by the group", func(t *testing.T, path string) { t.Helper(); folder(t, path, 0o720); inside(t, path) }, "mode 0720"},
		{"of another user", func(t *testing.T, path string) { t.Helper(); folder(t, path, 0o700); another(t, path) }, "belongs to user 65534"},
		{"open, empty and of another user", func(t *testing.T, path string) { t.Helper(); folder(t, path, 0o777); another(t, path) }, "belongs to user 65534"},
		{"with a file of another user", func(t *testing.T, path string) {
			t.Helper()
			folder(t, path, 0o700)
			inside(t, path)
			another(t, filepath.Join(path, "file"))
		}, "belongs to user 65534"},
		{"with a symbolic link", func(t *testing.T, path string) {
			t.Helper()
			folder(t, path, 0o700)
			if err := os.Symlink("/etc", filepath.Join(path, "s3")); err != nil {
				t.Fatal(err)
			}
		}, "neither a file nor a folder"},
		{"a symbolic link", func(t *testing.T, path string) {
			t.Helper()
			folder(t, path+"-target", 0o700)
			if err := os.Symlink(path+"-target", path); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "folder")
			row.make(t, path)
			before, _ := os.Lstat(path)
			err := private.Folder(path)
			after, failed := os.Lstat(path)
			if failed != nil {
				t.Fatal(failed)
			}
			switch {
			case row.says == "" && (err != nil || after.Mode().Perm() != 0o700):
				t.Errorf("got mode %v, %v, want 0700", after.Mode(), err)
			case row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)):
				t.Errorf("got %v, want the error %q", err, row.says)
			case row.says != "" && before.Mode() != after.Mode():
				t.Errorf("got mode %v for a refused folder, want %v", after.Mode(), before.Mode())
			}
		})
	}
}

func TestCreateAndReplace(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	if err := private.Create(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := private.Create(path, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Create: got %v, want ErrExist", err)
	}
	if text, err := private.Read(path, 10); err != nil || string(text) != "first" {
		t.Errorf("got %q, %v, want the first text", text, err)
	}
	if err := private.Replace(path, []byte("third")); err != nil {
		t.Fatal(err)
	}
	if text, err := private.Read(path, 10); err != nil || string(text) != "third" {
		t.Errorf("got %q, %v, want the third text", text, err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("got the files %v, %v, want one", left, err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, path := range []string{own(t, filepath.Join(folder, "open"), 0o644), filepath.Join(folder, "new")} {
		err := private.Close(path)
		if info, failed := os.Stat(path); err != nil || failed != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("got %v, %v, want a file with mode 0600", err, failed)
		}
	}
	link := filepath.Join(folder, "link")
	if err := os.Symlink(filepath.Join(folder, "open"), link); err != nil {
		t.Fatal(err)
	}
	if err := private.Close(link); err == nil {
		t.Error("symbolic link: got no error")
	}
}
