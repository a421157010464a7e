//go:build unix

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// A child process shares the open files of its parent, and so the lock, between
// fork and exec. lockWait is far longer than that.
const (
	lockWait  = time.Second
	lockPause = 20 * time.Millisecond
)

// acquire takes the advisory lock on the file and writes our process id into
// it. The kernel releases the lock when the process ends.
func acquire(ctx context.Context, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(ctx, file); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(file, 32))
		err = errors.Join(lockError(err, strings.TrimSpace(string(holder))), file.Close())
		return nil, err
	}
	if err := file.Truncate(0); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := fmt.Fprintf(file, "%d\n", os.Getpid()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func lock(ctx context.Context, file *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	again := time.NewTicker(lockPause)
	defer again.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

func lockError(err error, holder string) error {
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("cannot lock it: %w", err)
	}
	if holder == "" {
		return ErrInUse
	}
	return fmt.Errorf("%w (process %s)", ErrInUse, holder)
}

// release releases the lock, even if a starting child process shares it. It
// does not remove the file: then two processes could lock two files of the same
// name.
func release(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}
