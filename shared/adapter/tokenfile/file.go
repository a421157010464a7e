// Package tokenfile stores the records of client tokens in a file, for a Sortie instance that
// runs on one host.
//
// A server reads the file once per CacheTime, and at once after an unknown token. So a new
// token is valid immediately, and a revoked one for CacheTime at most. While the file exists a
// token is required, even if the last one was revoked. A file that other users can read is
// refused. So is a malformed file.
package tokenfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/private"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// CacheTime is how long a server uses the records before it reads them again.
const CacheTime = time.Second

// sizeLimit is the size limit of the file in bytes: about 4,000 records.
const sizeLimit = 1 << 20

// document is the content of the file.
type document struct {
	Records []access.Token `json:"records"`
}

// Read returns the records of a file. exists is false if the file does not exist. The error
// describes an invalid file.
func Read(path string) (tokens []access.Token, exists bool, err error) {
	text, err := private.Read(path, sizeLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, fmt.Errorf("cannot read the client tokens: %w", err)
	}
	var d document
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&d)
	if err == nil && decoder.More() {
		err = errors.New("data after the JSON document")
	}
	if err == nil {
		err = errors.Join(access.Validate(d.Records)...)
	}
	if err != nil {
		return nil, true, fmt.Errorf("the client tokens in %s are not usable: %w", path, err)
	}
	return d.Records, true, nil
}

// Update replaces the records of a file with the result of change. It creates a missing file.
// Concurrent calls wait for each other.
func Update(path string, change func([]access.Token) ([]access.Token, error)) (err error) {
	unlock, err := private.Lock(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	tokens, _, err := Read(path)
	if err != nil {
		return err
	}
	if tokens, err = change(tokens); err != nil {
		return err
	}
	text, err := json.MarshalIndent(document{tokens}, "", "  ")
	if err == nil {
		err = private.Replace(path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cannot write the client tokens: %w", err)
	}
	return nil
}

// File provides the records of a file to a server. It is safe for concurrent use.
type File struct {
	path  string
	clock clock.Clock

	mu     sync.Mutex
	readAt time.Time
	stale  bool
	tokens []access.Token
	exists bool
	err    error
}

// Open reads the file for the first time. The error describes an invalid file.
func Open(path string, c clock.Clock) (*File, error) {
	f := &File{path: path, clock: c, stale: true}
	_, _, err := f.Current(context.Background())
	return f, err
}

// Current returns the records. required is true while the file exists. The error is an
// Unavailable fault if the file is invalid.
func (f *File) Current(context.Context) (tokens []access.Token, required bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.clock.Now(); f.stale || now.Before(f.readAt) || now.Sub(f.readAt) >= CacheTime {
		f.tokens, f.exists, f.err = Read(f.path)
		f.readAt, f.stale = now, false
	}
	if f.err != nil {
		return nil, true, fault.Wrap(f.err, fault.Unavailable, "the client tokens cannot be read now; try again")
	}
	return f.tokens, f.exists, nil
}

// Refused makes the next call of Current read the file.
func (f *File) Refused() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale = true
}
