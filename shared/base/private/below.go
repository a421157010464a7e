package private

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// OpenBelow opens a regular file below a folder for reading. name is relative to the folder, or
// absolute. It can come from a client or a program with fewer rights than this process.
// OpenBelow therefore refuses a name that leaves the folder, and symbolic links in the name. It
// also refuses a file with several hard links, because another link may be outside of the
// folder. It returns fs.ErrNotExist if there is no file.
func OpenBelow(folder, name string) (*os.File, error) {
	local, err := localName(folder, name)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // the file stays open
	for i, c := range local + string(filepath.Separator) {
		if c != filepath.Separator {
			continue
		}
		info, err := root.Lstat(local[:i])
		if err != nil {
			return nil, err
		}
		if info.Mode().Type() == fs.ModeSymlink {
			return nil, fmt.Errorf("%s is a symbolic link, want a file", local[:i])
		}
	}
	// O_NONBLOCK: opening a named pipe does not wait for a writer.
	file, err := root.OpenFile(local, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := onlyName(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// localName returns name relative to the folder. It returns an error if name is empty, is the
// folder itself, or leaves the folder.
func localName(folder, name string) (string, error) {
	local := filepath.Clean(name)
	if filepath.IsAbs(name) {
		at, err := filepath.Abs(folder)
		if err == nil {
			local, err = filepath.Rel(at, name)
		}
		if err != nil {
			return "", fmt.Errorf("cannot find %s below %s: %w", name, folder, err)
		}
	}
	if name == "" || strings.ContainsRune(name, 0) || !filepath.IsLocal(local) || local == "." {
		return "", fmt.Errorf("%q is not the path of a file below the folder", name)
	}
	return local, nil
}

// onlyName returns an error unless the file is a regular file with one hard link.
func onlyName(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", file.Name())
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Nlink != 1 {
		return fmt.Errorf("%s has a second name (a hard link), want a file with one", file.Name())
	}
	return nil
}
