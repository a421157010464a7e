// Package durable writes the small JSON files of the local machines and holds
// their locks.
//
// A file is complete or absent, because it is written beside its path and renamed. A lock
// belongs to the kernel, so it ends with the process that holds it, even if that process is
// killed. The package does not support large files, concurrent writers of one path, or file
// systems without flock.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sortie-dev/sortie/shared/private"
)

// Suffix is the end of the name of a file that is being written. A file with this suffix that
// is found after a crash is incomplete and can be removed.
const Suffix = ".new"

// Write writes v as JSON to path with mode 0600. When it returns nil, the file
// survives a loss of power.
func Write(path string, v any) error { return write(path, v, true) }

// Place is like Write, for data that can be reproduced. The file survives the end of every
// process, but after a loss of power it may be unreadable.
func Place(path string, v any) error { return write(path, v, false) }

func write(path string, v any, sync bool) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", filepath.Base(path), err)
	}
	if err := replace(path, data, sync); err != nil {
		return fmt.Errorf("cannot write %s: %w", filepath.Base(path), err)
	}
	return nil
}

func replace(path string, data []byte, sync bool) error {
	f, err := os.OpenFile(path+Suffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && sync {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(path+Suffix, path)
	}
	if err != nil || !sync {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the entries of a directory survive a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closed := d.Close(); err == nil {
		err = closed
	}
	return err
}

// ErrDamaged is the error for a file that exists and is not JSON of v.
var ErrDamaged = errors.New("incomplete record")

// sizeLimit is far above the size of a record, in bytes.
const sizeLimit = 64 << 20

// Read decodes the file at path into v. It reads the file with private.Read. The error is or
// wraps fs.ErrNotExist if there is no file, and ErrDamaged if the file cannot be decoded.
func Read(path string, v any) error {
	data, err := private.Read(path, sizeLimit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("cannot decode %s: %w: %w", filepath.Base(path), ErrDamaged, err)
	}
	return nil
}
