package s3

import (
	"crypto/md5" //nolint:gosec // the ETag of S3 is an MD5
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// blobs are files that are written once. A blob that is removed while it is read is deleted
// when the last reader closes.
type blobs struct {
	dir string
	// mu is held while pieces are looked up and pinned, so that no blob is removed in between.
	mu      sync.Mutex
	readers map[string]int
	doomed  map[string]bool
}

// blob is a written file.
type blob struct {
	name string
	size int64
	md5  string // hex
}

func openBlobs(dir string) (*blobs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &blobs{dir: dir, readers: map[string]int{}, doomed: map[string]bool{}}, nil
}

func (b *blobs) path(name string) string { return filepath.Join(b.dir, name[:2], name) }

// write stores the content of from. The blob is on disk when write returns. A failed write
// leaves no file.
func (b *blobs) write(from io.Reader) (written blob, err error) {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return blob{}, err
	}
	written.name = hex.EncodeToString(id[:])
	file, err := b.create(b.path(written.name))
	if err != nil {
		return blob{}, err
	}
	defer func() {
		err = errors.Join(err, file.Close())
		if err == nil {
			err = syncFolder(filepath.Dir(file.Name()))
		}
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	sum := md5.New() //nolint:gosec // see the import
	if written.size, err = io.CopyBuffer(io.MultiWriter(file, sum), struct{ io.Reader }{from}, make([]byte, 256<<10)); err != nil {
		return blob{}, err
	}
	written.md5 = hex.EncodeToString(sum.Sum(nil))
	return written, file.Sync()
}

// create creates a file, and its folder if it is missing.
func (b *blobs) create(path string) (*os.File, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	file, err := os.OpenFile(path, flags, 0o600)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := syncFolder(b.dir); err != nil {
		return nil, err
	}
	return os.OpenFile(path, flags, 0o600)
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// pin looks pieces up with find. It keeps their blobs on disk until unpin.
func (b *blobs) pin(find func() ([]piece, error)) ([]piece, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pieces, err := find()
	if err != nil {
		return nil, err
	}
	for _, piece := range pieces {
		b.readers[piece.blob]++
	}
	return pieces, nil
}

func (b *blobs) unpin(pieces []piece) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, piece := range pieces {
		if b.readers[piece.blob]--; b.readers[piece.blob] > 0 {
			continue
		}
		delete(b.readers, piece.blob)
		if b.doomed[piece.blob] {
			delete(b.doomed, piece.blob)
			errs = append(errs, os.Remove(b.path(piece.blob)))
		}
	}
	return errors.Join(errs...)
}

// remove deletes blobs that the catalog no longer contains.
func (b *blobs) remove(names []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, name := range names {
		if b.readers[name] > 0 {
			b.doomed[name] = true
			continue
		}
		errs = append(errs, os.Remove(b.path(name)))
	}
	return errors.Join(errs...)
}

// sweep removes every file for which known is false.
func (b *blobs) sweep(known func(name string) (bool, error)) error {
	return filepath.WalkDir(b.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if is, err := known(entry.Name()); err != nil || is {
			return err
		}
		return os.Remove(path) //nolint:gosec // G122: the folder is ours alone
	})
}

// reader reads pieces of blobs in sequence, with one open file at a time.
type reader struct {
	blobs *blobs
	all   []piece // pinned until Close
	rest  []piece
	file  *os.File
	from  io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	for {
		if r.file == nil {
			if len(r.rest) == 0 {
				return 0, io.EOF
			}
			file, err := os.Open(r.blobs.path(r.rest[0].blob))
			if err != nil {
				return 0, err
			}
			r.file, r.from = file, io.NewSectionReader(file, r.rest[0].offset, r.rest[0].size)
		}
		n, err := r.from.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := r.file.Close(); err != nil {
			return n, err
		}
		r.file, r.rest = nil, r.rest[1:]
		if n > 0 {
			return n, nil
		}
	}
}

// Close may be called more than once.
func (r *reader) Close() error {
	var err error
	if r.file != nil {
		err = r.file.Close()
	}
	err = errors.Join(err, r.blobs.unpin(r.all))
	r.file, r.rest, r.all = nil, nil, nil
	return err
}
