package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Folder creates a folder with mode 0700, or checks an existing one. An existing folder must
// belong to the user of this process and give no permissions to others. Each of its entries
// must be a file or a folder of the same user. If the folder is empty, Folder removes the
// permissions of others instead of returning an error.
func Folder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		return fmt.Errorf("%s is a symbolic link, want the folder itself", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if info, err = closeEmpty(path, info); err != nil {
			return err
		}
	}
	if err := check(path, info, fs.ModeDir); err != nil {
		return err
	}
	return checkEntries(path)
}

// closeEmpty changes the mode of an empty folder of this user to 0700. It restores the mode if
// another user has added an entry meanwhile.
func closeEmpty(path string, before fs.FileInfo) (fs.FileInfo, error) {
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) > 0 || checkOwner(path, before) != nil {
		return before, err
	}
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // G302: a folder
		return nil, err
	}
	if entries, err = os.ReadDir(path); err != nil || len(entries) > 0 {
		return before, errors.Join(err, os.Chmod(path, before.Mode().Perm()))
	}
	return os.Lstat(path)
}

func checkEntries(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := filepath.Join(path, entry.Name())
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a temporary file of another process
		}
		if err != nil {
			return err
		}
		if err := checkOwner(name, info); err != nil {
			return err
		}
		if !info.Mode().IsRegular() && !info.IsDir() {
			return fmt.Errorf("%s is neither a file nor a folder", name)
		}
	}
	return nil
}

// Close removes the permissions of others from a file of this user. If the file does not
// exist, Close creates it empty with mode 0600. It refuses a symbolic link.
func Close(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600) //nolint:gosec // G304: the caller's own file, checked below
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil {
		err = checkOwner(path, info)
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = file.Chmod(info.Mode().Perm() &^ 0o077)
	}
	return errors.Join(err, file.Close())
}

// Lock locks a folder exclusively until unlock is called or the process ends. It waits while
// another caller holds the lock, also in another process.
func Lock(path string) (unlock func() error, err error) {
	folder, err := os.Open(path) //nolint:gosec // G304: the caller's own folder
	if err != nil {
		return nil, fmt.Errorf("cannot lock: %w", err)
	}
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", path, err), folder.Close())
	}
	return folder.Close, nil
}
