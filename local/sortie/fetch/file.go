package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/sortie-dev/sortie/local/sortie/client"
)

// ToFile saves the output and gives the file's path and length. A target that
// is a folder, or ends in a slash, gets a file of the served name; an empty one
// is the current folder. A file that is there already, also one behind a link,
// is replaced at the end; a device or a pipe is written to as it comes. Folders
// that are missing are made.
func ToFile(ctx context.Context, job Job, target string) (path string, size int64, err error) {
	first, err := job.Client.Open(ctx, job.TaskID, 0, "")
	if err != nil {
		return "", 0, err
	}
	path = place(target, FileName(first.FileName, job.TaskID))
	file := path
	if behind, err := filepath.EvalSymlinks(path); err == nil {
		file = behind // a link stays a link
	}
	if info, err := os.Stat(path); err == nil && info.Mode()&(fs.ModeCharDevice|fs.ModeNamedPipe) != 0 {
		size, err = job.toDevice(ctx, first, path)
		return path, size, err
	}
	part, err := newPart(file)
	if err != nil {
		return "", 0, errors.Join(err, first.Body.Close())
	}
	if size, err = job.copy(ctx, first, part); err != nil {
		return "", 0, errors.Join(err, part.drop())
	}
	if err := part.keep(file); err != nil {
		return "", 0, err
	}
	return path, size, nil
}

// toDevice writes an output whose beginning is open to what is no ordinary file.
func (j Job) toDevice(ctx context.Context, first *client.Output, path string) (int64, error) {
	device, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return 0, errors.Join(fmt.Errorf("cannot open the place of the output: %w", err), first.Body.Close())
	}
	size, err := j.copy(ctx, first, stream{device})
	if closed := device.Close(); closed != nil {
		err = errors.Join(err, fmt.Errorf("cannot write the output: %w", closed))
	}
	return size, err
}

// FileName makes a name for a file of what a server says: its last part, and
// the fallback where that is none, is hidden or has control characters.
func FileName(served, fallback string) string {
	name := served[strings.LastIndexAny(served, `/\`)+1:]
	if name == "" || len(name) > 255 || strings.HasPrefix(name, ".") || strings.ContainsFunc(name, unicode.IsControl) {
		return fallback
	}
	return name
}

func place(target, name string) string {
	if target == "" {
		return name
	}
	info, err := os.Stat(target)
	if err == nil && info.IsDir() || strings.HasSuffix(target, string(filepath.Separator)) {
		return filepath.Join(target, name)
	}
	return target
}

// part is a file that is not whole yet, beside the one it will be.
type part struct{ file *os.File }

// newPart makes the file. Unlike os.CreateTemp it leaves the permissions to
// the user's umask: the file is going to be an ordinary one.
func newPart(path string) (*part, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot save to %s: it is no ordinary file", path)
	}
	dir, base := filepath.Split(path)
	if dir != "" {
		if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // the user's umask decides
			return nil, fmt.Errorf("cannot make the folder of the output: %w", err)
		}
	}
	if len(base) > 200 { // a name has at most 255 bytes
		base = base[:200]
	}
	for n := 1; n <= 1000; n++ {
		file, err := os.OpenFile(fmt.Sprintf("%s.%s.%d-%d.part", dir, base, os.Getpid(), n), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // the user's umask decides
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot make the file of the output: %w", err)
		}
		return &part{file}, nil
	}
	return nil, fmt.Errorf("cannot save to %s: too many unfinished downloads lie beside it", path)
}

func (p *part) Write(b []byte) (int, error) { return p.file.Write(b) }

func (p *part) Restart() error {
	if err := p.file.Truncate(0); err != nil {
		return fmt.Errorf("cannot begin the file again: %w", err)
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("cannot begin the file again: %w", err)
	}
	return nil
}

func (p *part) drop() error { return errors.Join(p.file.Close(), os.Remove(p.file.Name())) }

// keep gives the file its name.
func (p *part) keep(path string) error {
	if err := p.file.Sync(); err != nil {
		return errors.Join(fmt.Errorf("cannot save the output: %w", err), p.drop())
	}
	if err := p.file.Close(); err != nil {
		return errors.Join(fmt.Errorf("cannot save the output: %w", err), os.Remove(p.file.Name()))
	}
	if err := os.Rename(p.file.Name(), path); err != nil {
		return errors.Join(fmt.Errorf("cannot save the output: %w", err), os.Remove(p.file.Name()))
	}
	return nil
}
