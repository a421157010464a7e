// Package durable writes the small JSON files of the local machines and holds
// their locks.
//
// A file is complete or absent, because it is written beside its path and renamed. A record that
// changes often is appended instead, and the newest complete one counts: file systems are slow
// where many files are created and removed. A lock belongs to the kernel, so it ends with the
// process that holds it, even if that process is killed. The package does not support large
// files, concurrent writers of one path, or file systems without flock.
package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/sortie-dev/sortie/shared/base/private"
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
	return encode(path, v, func(data []byte) error { return replace(path, data, sync) })
}

// encode encodes v for the file at path, which store writes.
func encode(path string, v any, store func(data []byte) error) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", filepath.Base(path), err)
	}
	if err := store(data); err != nil {
		return fmt.Errorf("cannot write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// appendLimit is the size in bytes that a file of appended records does not exceed.
const appendLimit = 64 << 10

// Append is like Place, but keeps the earlier records in the file. Last reads the newest one. It
// replaces a file that would become large, or that it cannot append to, by one with v alone.
func Append(path string, v any) error {
	return encode(path, v, func(data []byte) error {
		_, err := appendTo(path, data)
		return err
	})
}

// Compact is like Append, and then removes the earlier records from the file.
func Compact(path string, v any) error {
	return encode(path, v, func(data []byte) error {
		size, err := appendTo(path, data)
		if err != nil {
			return err
		}
		line := append([]byte{'\n'}, data...)
		if size < 2*int64(len(line)) { // a copy at the start would overwrite the newest record
			return replace(path, data, false)
		}
		err = open(path, func(f *os.File, _ int64) error {
			if _, err := f.WriteAt(line, 0); err != nil {
				return err
			}
			return f.Truncate(int64(len(line)))
		})
		if err != nil {
			return replace(path, data, false)
		}
		return nil
	})
}

// appendTo appends a line break and data to the file and returns its size. An incomplete record,
// which a killed process left, is then a line of its own.
func appendTo(path string, data []byte) (size int64, err error) {
	err = open(path, func(f *os.File, before int64) error {
		if size = before + int64(len(data)) + 1; size > appendLimit {
			return errAppend
		}
		_, err := f.WriteAt(append([]byte{'\n'}, data...), before)
		return err
	})
	if err != nil {
		return int64(len(data)), replace(path, data, false)
	}
	return size, nil
}

// errAppend is the error for a file to which no record is appended.
var errAppend = errors.New("cannot append to the file")

// open calls use with the file at path and its size. It creates the file if it is missing. A
// program could have replaced the file: open neither follows a symbolic link nor waits for the
// reader of a pipe, and refuses a file with a second name.
func open(path string, use func(f *os.File, size int64) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.Mode().IsRegular() || stat.Nlink != 1 {
			err = errAppend
		} else {
			err = use(f, info.Size())
		}
	}
	return errors.Join(err, f.Close())
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
func Read(path string, v any) error { return read(path, v, func(data []byte) []byte { return data }) }

// Last is like Read, for a file with appended records. It decodes the newest complete record.
func Last(path string, v any) error { return read(path, v, newest) }

// newest returns the last line of data that is a complete record, or data if it has none.
func newest(data []byte) []byte {
	for rest := data; len(rest) > 0; {
		begin := bytes.LastIndexByte(rest, '\n')
		if line := rest[begin+1:]; json.Valid(line) {
			return line
		}
		rest = rest[:max(begin, 0)]
	}
	return data
}

func read(path string, v any, record func(data []byte) []byte) error {
	data, err := private.Read(path, sizeLimit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(record(data), v); err != nil {
		return fmt.Errorf("cannot decode %s: %w: %w", filepath.Base(path), ErrDamaged, err)
	}
	return nil
}
