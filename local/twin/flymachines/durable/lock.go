package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked is the answer of TryLock and TryClaim where another holds it.
var ErrLocked = errors.New("locked by another process")

// Lock is one that is held. It ends with Unlock or with the process.
type Lock struct{ file *os.File }

// Unlock gives the lock back, also where a process that is just being forked
// shares it.
func (l *Lock) Unlock() error {
	err := again(func() error { return syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) })
	return errors.Join(err, l.file.Close())
}

// TryLock takes the lock at path, making the file where there is none. It
// does not wait: ErrLocked where the lock is held, by this process too. A
// process that is just being forked has the lock for a moment longer than one
// that was killed meanwhile, so ask again before you believe it.
func TryLock(path string) (*Lock, error) {
	return try(path, func(f *os.File) error {
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
}

// TryClaim is TryLock with a lock that is the process's: no forked process
// shares it, and Claimed tells of it without touching it. It does not know
// other claims of the same process, which must open no path that it has
// claimed.
func TryClaim(path string) (*Lock, error) {
	return try(path, func(f *os.File) error {
		whole := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
		return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &whole)
	})
}

// Claimed says whether another process holds the claim of path.
func Claimed(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot open the lock %s: %w", filepath.Base(path), err)
	}
	whole := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err = again(func() error { return syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &whole) })
	if err = errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("cannot look at the lock %s: %w", filepath.Base(path), err)
	}
	return whole.Type != syscall.F_UNLCK, nil
}

func try(path string, lock func(*os.File) error) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock %s: %w", filepath.Base(path), err)
	}
	err = again(func() error { return lock(f) })
	if err == nil {
		return &Lock{file: f}, nil
	}
	failed := errors.Join(err, f.Close())
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EACCES) {
		return nil, ErrLocked
	}
	return nil, fmt.Errorf("cannot lock %s: %w", filepath.Base(path), failed)
}

func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
