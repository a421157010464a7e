package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked is the answer of TryLock where another holds the lock.
var ErrLocked = errors.New("locked by another process")

// Lock is a lock that is held. It ends with Unlock or with the process.
type Lock struct{ file *os.File }

// TryLock takes the lock at path, making the file where there is none. It
// does not wait: ErrLocked where the lock is held, by this process too.
func TryLock(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock %s: %w", filepath.Base(path), err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return &Lock{file: f}, nil
	}
	failed := errors.Join(err, f.Close())
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrLocked
	}
	return nil, fmt.Errorf("cannot lock %s: %w", filepath.Base(path), failed)
}

// Unlock gives the lock back.
func (l *Lock) Unlock() error { return l.file.Close() }
