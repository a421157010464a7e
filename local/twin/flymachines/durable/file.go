// Package durable writes the small JSON files of the local machines and holds
// their locks.
//
// A file is whole or it is not there: it is written beside its place and moved.
// A lock is the kernel's, so it is gone with the process that held
// it, however that process ended. The package refuses large files, several
// writers of one path at once, and file systems without flock.
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Suffix ends the name of a file that is being written. One that is found
// after a crash is half a file, and nobody's.
const Suffix = ".new"

// Write puts v as JSON under path, for the owner's eyes only. When it returns
// nil, the file survives a loss of power.
func Write(path string, v any) error { return write(path, v, true) }

// Place is Write for what can be told again: the file survives the end of
// every process, but of a loss of power it may come out unreadable.
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
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory survive a loss of power.
func SyncDir(dir string) error {
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

// ErrDamaged is the answer about a file that is there and is no JSON of v.
var ErrDamaged = errors.New("not a whole record")

// Read decodes the file under path into v. The error is, or wraps,
// fs.ErrNotExist where there is none, and ErrDamaged where it is no such file.
func Read(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("cannot decode %s: %w: %w", filepath.Base(path), ErrDamaged, err)
	}
	return nil
}
