package keyfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Rotation is what Rotate has done, by the ids of keys.
type Rotation struct {
	// Made signs from now on.
	Made string `json:"made"`
	// Kept are still good for what they have signed; Dropped are not any more.
	Kept    []string `json:"kept"`
	Dropped []string `json:"dropped"`
}

// Rotate puts a new key before those of the file, and drops those that stopped
// signing more than keep ago: no token of theirs may still be good then. The
// file must exist. Who rotates at the same time waits.
func Rotate(path string, now time.Time, keep time.Duration) (done Rotation, err error) {
	unlock, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return Rotation{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	keys, err := readKeys(path)
	if err != nil {
		return Rotation{}, err
	}
	made, err := newKey()
	if err != nil {
		return Rotation{}, fmt.Errorf("cannot make a key: %w", err)
	}
	done = Rotation{Made: made.id, Kept: []string{}, Dropped: []string{}}
	after := []key{made}
	for _, k := range keys {
		if k.retired.IsZero() {
			k.retired = now
		}
		if now.Sub(k.retired) > keep {
			done.Dropped = append(done.Dropped, k.id)
			continue
		}
		done.Kept = append(done.Kept, k.id)
		after = append(after, k)
	}
	err = place(path, after, func(made string) error { return os.Rename(made, path) })
	if err != nil {
		return Rotation{}, fmt.Errorf("cannot write the key file: %w", err)
	}
	return done, nil
}

// lockFolder keeps others from rotating; the lock goes with the process.
func lockFolder(path string) (unlock func() error, err error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder of the key file: %w", err)
	}
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock the folder of the key file: %w", err), folder.Close())
	}
	return folder.Close, nil
}
