//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// acquire takes the advisory lock on the file and writes our process id into
// it. The kernel gives the lock free when the process ends, however it ends.
func acquire(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
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

func lockError(err error, holder string) error {
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("cannot lock it: %w", err)
	}
	if holder == "" {
		return ErrInUse
	}
	return fmt.Errorf("%w (process %s)", ErrInUse, holder)
}

// release gives the lock free. The file stays: to remove it would let two
// processes hold locks on two files of the same name.
func release(file *os.File) error { return file.Close() }
