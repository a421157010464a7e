package private

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Read returns the content of a private file. It returns an error for a file of more than
// limit bytes, and fs.ErrNotExist if there is no file.
func Read(path string, limit int64) ([]byte, error) {
	// O_NONBLOCK: opening a named pipe does not wait for a writer.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) //nolint:gosec // G304: the caller's own file, checked below
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link, want a file", path)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := check(path, info, 0); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return text, err
}

// check returns an error unless the file or folder is of type kind, belongs to the user of
// this process and gives no permissions to others. kind 0 is a regular file.
func check(path string, info fs.FileInfo, kind fs.FileMode) error {
	if err := checkOwner(path, info); err != nil {
		return err
	}
	want := "a file"
	if kind == fs.ModeDir {
		want = "a folder"
	}
	if info.Mode().Type() != kind {
		return fmt.Errorf("%s is not %s", path, want)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		right := mode &^ 0o077
		return fmt.Errorf("others than its owner can use %s (mode %04o); if it is yours, make it private with \"chmod %04o %s\", "+
			"and replace its secrets if others have read it", path, mode, right, path)
	}
	return nil
}

func checkOwner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("cannot determine the owner of %s", path)
	}
	if user := os.Geteuid(); int(stat.Uid) != user {
		return fmt.Errorf("%s belongs to user %d, want user %d, who runs this program", path, stat.Uid, user)
	}
	return nil
}

// Create writes a new file with mode 0600. If the file exists, Create leaves it unchanged and
// returns fs.ErrExist.
func Create(path string, text []byte) error {
	return place(path, text, func(made string) error { return os.Link(made, path) })
}

// Replace writes a file with mode 0600. It atomically replaces an existing file.
func Replace(path string, text []byte) error {
	return place(path, text, func(made string) error { return os.Rename(made, path) })
}

// Partial is the name prefix of the temporary files of Create and Replace. A crash may leave
// such files; they can be removed.
const Partial = ".partial-"

func place(path string, text []byte, put func(made string) error) (err error) {
	folder := filepath.Dir(path)
	file, err := os.CreateTemp(folder, Partial+"*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if gone := os.Remove(file.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := put(file.Name()); err != nil {
		return err
	}
	return syncFolder(folder)
}

func syncFolder(path string) error {
	folder, err := os.Open(path) //nolint:gosec // G304: the caller's own folder
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
