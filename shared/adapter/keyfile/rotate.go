package keyfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Rotation is the result of Rotate, as ids of keys.
type Rotation struct {
	// Made is the new first key.
	Made string `json:"made"`
	// Kept are the keys whose signatures stay valid; Dropped were removed.
	Kept    []string `json:"kept"`
	Dropped []string `json:"dropped"`
}

// Rotate adds a new first key to the file, which must exist, and removes the
// keys that stopped signing more than keep ago, when all their tokens have
// expired. Concurrent calls wait for each other.
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

// lockFolder excludes other rotations. The lock ends with the process.
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
