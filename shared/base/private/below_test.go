package private_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/shared/base/private"
)

// hostile creates a folder with files, and links that lead to a secret file outside of it.
func hostile(t testing.TB) (folder, secret string) {
	t.Helper()
	above := t.TempDir()
	folder, secret = filepath.Join(above, "folder"), filepath.Join(above, "secret")
	err := errors.Join(
		os.MkdirAll(filepath.Join(folder, "sub"), 0o700), os.WriteFile(secret, []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(folder, "mine"), []byte("mine"), 0o600),
		os.WriteFile(filepath.Join(folder, "sub", "mine"), []byte("mine"), 0o600),
		os.Symlink(secret, filepath.Join(folder, "absolute")), os.Symlink("../secret", filepath.Join(folder, "relative")),
		os.Symlink("mine", filepath.Join(folder, "inside")), os.Symlink("..", filepath.Join(folder, "up")),
		os.Symlink("sub", filepath.Join(folder, "other")), os.Symlink("loop", filepath.Join(folder, "loop")),
		os.Link(secret, filepath.Join(folder, "hard")), syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	return folder, secret
}

func TestOpenBelow(t *testing.T) {
	t.Parallel()
	folder, secret := hostile(t)
	for name, want := range map[string]string{
		"mine": "mine", "sub/mine": "mine", "./sub/../mine": "mine", filepath.Join(folder, "sub/mine"): "mine",
		"": "", ".": "", "..": "", "../secret": "", "sub/../../secret": "", secret: "", folder: "", folder + "/../secret": "", "/": "", "/dev/null": "",
		"absolute": "", "relative": "", "inside": "", "up/secret": "", "up/folder/mine": "", "other/mine": "", "loop": "", "hard": "", "pipe": "", "sub": "",
		"mine/more": "", "none": "", "mine\x00": "", "mine\x00/../../secret": "",
	} {
		file, err := private.OpenBelow(folder, name)
		if (err == nil) != (want != "") {
			t.Errorf("%q: got error %v, want %q", name, err, want)
		}
		if err != nil {
			continue
		}
		if text, err := io.ReadAll(file); string(text) != want || errors.Join(err, file.Close()) != nil {
			t.Errorf("%q: got %q, %v, want %q", name, text, err, want)
		}
	}
	if _, err := private.OpenBelow(folder, "sub/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such file: got %v, want fs.ErrNotExist", err)
	}
}

// FuzzOpenBelow checks that no name opens a file outside of the folder.
func FuzzOpenBelow(f *testing.F) {
	for _, seed := range []string{
		"mine", "../secret", "sub/../../secret", "absolute", "relative", "up/secret", "hard", "pipe", "other/mine", "/etc/passwd",
		"./mine", "sub//mine", "mine/.", "mine/..", "loop/x", "\x00", "..\x00", "up/up/up/etc/passwd", "/proc/self/environ", "up/../mine",
	} {
		f.Add(seed)
	}
	folder, _ := hostile(f)
	f.Fuzz(func(t *testing.T, name string) {
		for _, name := range []string{name, filepath.Join(folder, name), folder + "/" + name} {
			file, err := private.OpenBelow(folder, name)
			if err != nil {
				continue
			}
			text, err := io.ReadAll(io.LimitReader(file, 100))
			if err = errors.Join(err, file.Close()); err != nil || string(text) != "mine" {
				t.Errorf("%q: got %q, %v, want only the program's own files", name, text, err)
			}
		}
	})
}
