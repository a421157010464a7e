// Package output stores the output of a machine's program up to a limit.
//
// The beginning and the end are stored. Output above the limit is removed from the middle, and
// Read reports its size. The text is in at most four chunk files, so that the output survives a
// crash, including one of the writer. There is at most one writer at a time.
package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/private"
)

// DefaultLimit is the default limit: 1 MiB.
const DefaultLimit = 1 << 20

// chunks is the number of files: the first two and the last two.
const chunks = 4

const prefix = "output."

// Writer appends to a machine's output. It creates the files at the first byte. It is not safe
// for concurrent use.
type Writer struct {
	dir   string
	size  int64 // of a chunk
	file  *os.File
	index int
	room  int64
}

// NewWriter returns a writer that stores at most limit bytes in files in dir, after the
// existing ones. A limit below 4 bytes means DefaultLimit.
func NewWriter(dir string, limit int) *Writer {
	if limit < chunks {
		limit = DefaultLimit
	}
	return &Writer{dir: dir, size: int64(limit / chunks), index: -1}
}

// Write stores p. After an error the stored output ends there, and the writer should not be
// used again.
func (w *Writer) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		if w.room == 0 {
			if err := w.next(); err != nil {
				return written, fmt.Errorf("cannot store the output: %w", err)
			}
		}
		n, err := w.file.Write(p[:min(int64(len(p)), w.room)])
		written += n
		w.room -= int64(n)
		p = p[n:]
		if err != nil {
			return written, fmt.Errorf("cannot store the output: %w", err)
		}
	}
	return written, nil
}

// next opens the chunk with room and removes the one that is no longer stored.
func (w *Writer) next() error {
	if err := w.closeChunk(); err != nil {
		return err
	}
	if w.index < 0 {
		indexes, err := list(w.dir)
		if err != nil {
			return err
		}
		w.index = 0
		if len(indexes) > 0 {
			w.index = indexes[len(indexes)-1]
		}
	} else {
		w.index++
	}
	for ; ; w.index++ {
		f, err := os.OpenFile(w.name(w.index), os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return err
		}
		w.file = f
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if w.room = w.size - info.Size(); w.room > 0 {
			break
		}
		w.room = 0
		if err := w.closeChunk(); err != nil {
			return err
		}
	}
	if old := w.index - 2; old >= 2 {
		if err := os.Remove(w.name(old)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

func (w *Writer) name(index int) string {
	return filepath.Join(w.dir, prefix+strconv.Itoa(index))
}

// Close closes the open file. A later Write continues after it.
func (w *Writer) Close() error {
	w.index, w.room = -1, 0
	return w.closeChunk()
}

func (w *Writer) closeChunk() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// Read returns the stored output of dir, with a line in place of the removed part.
func Read(dir string) ([]byte, error) {
	indexes, err := list(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the output: %w", err)
	}
	var text []byte
	size := 0
	for i, index := range indexes {
		chunk, err := readChunk(dir, index)
		if os.IsNotExist(err) {
			continue // cut out since it was listed
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the output: %w", err)
		}
		if i == 0 {
			size = len(chunk)
		} else if missing := index - indexes[i-1] - 1; missing > 0 {
			text = append(text, limit.CutMark(int64(missing*size))...)
		}
		text = append(text, chunk...)
	}
	return text, nil
}

// readChunk reads a file of the folder. The program of the machine may have replaced it, for
// example with a link to a file of its user.
func readChunk(dir string, index int) ([]byte, error) {
	file, err := private.OpenBelow(dir, prefix+strconv.Itoa(index))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	return text, errors.Join(err, file.Close())
}

// Move moves the stored output of dir to the folder to and replaces its content. Without any
// output it changes nothing.
func Move(dir, to string) error {
	indexes, err := list(dir)
	if err != nil || len(indexes) == 0 {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, index := range indexes {
		name := prefix + strconv.Itoa(index)
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// Remove deletes the stored output in dir.
func Remove(dir string) error {
	indexes, err := list(dir)
	if err != nil {
		return err
	}
	for _, index := range indexes {
		if err := os.Remove(filepath.Join(dir, prefix+strconv.Itoa(index))); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

func list(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var indexes []int
	for _, entry := range entries {
		number, ok := strings.CutPrefix(entry.Name(), prefix)
		if !ok {
			continue
		}
		if index, err := strconv.Atoi(number); err == nil && index >= 0 {
			indexes = append(indexes, index)
		}
	}
	slices.Sort(indexes)
	return indexes, nil
}
