package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked is returned by TryLock and TryClaim if another process holds the
// lock.
var ErrLocked = errors.New("locked by another process")

// Lock is a held lock. It ends with Unlock or with the process.
type Lock struct{ file *os.File }

// Unlock releases the lock, even if a process that is being forked shares it.
func (l *Lock) Unlock() error {
	err := again(func() error { return syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) })
	return errors.Join(err, l.file.Close())
}

// TryLock acquires the lock at path and creates the file if it is missing. It does not wait: it
// returns ErrLocked if the lock is held, by this process too. A process that is being forked
// when its parent is killed holds the lock for a moment longer. So callers retry before they
// rely on ErrLocked.
func TryLock(path string) (*Lock, error) {
	return try(path, func(f *os.File) error {
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
}

// TryClaim is like TryLock, with a lock of the process: forked processes do not share it, and
// Claimed can test it without acquiring it. It does not detect claims of the same process,
// which must not open a path that it has claimed.
func TryClaim(path string) (*Lock, error) {
	return try(path, func(f *os.File) error {
		whole := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
		return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &whole)
	})
}

// Claimed reports whether another process holds the claim of path.
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
		return false, fmt.Errorf("cannot test the lock %s: %w", filepath.Base(path), err)
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
