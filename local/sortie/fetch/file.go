package fetch

import (
	"context"
	"crypto/sha256"
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

// ErrExists means that the target exists with other content and Job.Force is not set.
var ErrExists = errors.New("the file exists with other content")

// ToFile saves the output and returns the file's path and length. If target is a folder or ends
// in a slash, the file gets the name that the server proposes, with the job's format. An empty
// target means the current folder. ToFile creates missing folders, keeps symbolic links, and
// writes directly to a device or pipe.
func ToFile(ctx context.Context, job Job, target string) (path string, size int64, err error) {
	first, err := job.Client.Open(ctx, job.TaskID, 0, "")
	if err != nil {
		return "", 0, err
	}
	path = place(target, withFormat(FileName(first.FileName, job.TaskID), job.Format))
	file := path
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		file = resolved
	}
	info, err := os.Stat(path)
	exists := err == nil
	if exists && info.Mode()&(fs.ModeCharDevice|fs.ModeNamedPipe) != 0 {
		size, err = job.toDevice(ctx, first, path)
		return path, size, err
	}
	if exists && !job.Force && first.Size >= 0 && info.Mode().IsRegular() && info.Size() != first.Size {
		return "", 0, errors.Join(fmt.Errorf("%s: %w", path, ErrExists), first.Body.Close())
	}
	part, err := newPart(file)
	if err != nil {
		return "", 0, errors.Join(err, first.Body.Close())
	}
	if size, err = job.copy(ctx, first, part); err != nil {
		return "", 0, errors.Join(err, part.drop())
	}
	if exists && !job.Force {
		same, err := sameContent(file, part.file.Name())
		if err != nil {
			return "", 0, errors.Join(err, part.drop())
		}
		if !same {
			return "", 0, errors.Join(fmt.Errorf("%s: %w", path, ErrExists), part.drop())
		}
		return path, size, part.drop()
	}
	if err := part.keep(file); err != nil {
		return "", 0, err
	}
	return path, size, nil
}

// sameContent reports whether two files have the same content.
func sameContent(a, b string) (bool, error) {
	var sums [2][sha256.Size]byte
	for i, name := range []string{a, b} {
		file, err := os.Open(name)
		if err != nil {
			return false, fmt.Errorf("cannot compare the output with the existing file: %w", err)
		}
		hash := sha256.New()
		_, err = io.Copy(hash, file)
		if err = errors.Join(err, file.Close()); err != nil {
			return false, fmt.Errorf("cannot compare the output with the existing file: %w", err)
		}
		hash.Sum(sums[i][:0])
	}
	return sums[0] == sums[1], nil
}

// withFormat inserts the format before the extension of a name, so that two
// formats of one record have different names.
func withFormat(name, format string) string {
	extension := filepath.Ext(name)
	stem := strings.TrimSuffix(name, extension)
	if format == "" || strings.HasSuffix(stem, "."+format) || extension == "."+format {
		return name
	}
	return stem + "." + format + extension
}

// toDevice writes the output to a device or a pipe.
func (j Job) toDevice(ctx context.Context, first *client.Output, path string) (int64, error) {
	device, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return 0, errors.Join(fmt.Errorf("cannot open the target of the output: %w", err), first.Body.Close())
	}
	size, err := j.copy(ctx, first, stream{device})
	if closed := device.Close(); closed != nil {
		err = errors.Join(err, fmt.Errorf("cannot write the output: %w", closed))
	}
	return size, err
}

// FileName returns the last element of the name that a server proposes, or the
// fallback if that is empty, hidden, too long or has control characters.
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

// part is an incomplete file in the folder of its target.
type part struct{ file *os.File }

// newPart creates the incomplete file. Unlike os.CreateTemp, it lets the user's umask set the
// permissions.
func newPart(path string) (*part, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot save to %s: not a regular file", path)
	}
	dir, base := filepath.Split(path)
	if dir != "" {
		if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // the user's umask applies
			return nil, fmt.Errorf("cannot create the folder of the output: %w", err)
		}
	}
	if len(base) > 200 { // a name has at most 255 bytes
		base = base[:200]
	}
	for n := 1; n <= 1000; n++ {
		file, err := os.OpenFile(fmt.Sprintf("%s.%s.%d-%d.part", dir, base, os.Getpid(), n), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // the user's umask applies
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot create the file of the output: %w", err)
		}
		return &part{file}, nil
	}
	return nil, fmt.Errorf("cannot save to %s: it has too many unfinished downloads beside it", path)
}

func (p *part) Write(b []byte) (int, error) { return p.file.Write(b) }

func (p *part) Restart() error {
	if err := p.file.Truncate(0); err != nil {
		return fmt.Errorf("cannot restart the file: %w", err)
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("cannot restart the file: %w", err)
	}
	return nil
}

func (p *part) drop() error { return errors.Join(p.file.Close(), os.Remove(p.file.Name())) }

// keep syncs the file and moves it to path.
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
