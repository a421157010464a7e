package keyfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sortie-dev/sortie/shared/base/private"
)

// Rotation is the result of Rotate, as ids of keys.
type Rotation struct {
	// Made is the new first key.
	Made string `json:"made"`
	// Kept are the keys whose signatures stay valid. Dropped are the removed keys.
	Kept    []string `json:"kept"`
	Dropped []string `json:"dropped"`
}

// Rotate adds a new first key to an existing file. It removes the keys that stopped signing
// more than keep ago, when all their tokens have expired. Concurrent calls wait for each other.
func Rotate(path string, now time.Time, keep time.Duration) (done Rotation, err error) {
	return rotate(path, tokens, now, keep)
}

func rotate[P any](path string, of kind[P], now time.Time, keep time.Duration) (done Rotation, err error) {
	unlock, err := private.Lock(filepath.Dir(path))
	if err != nil {
		return Rotation{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	keys, err := readKeys(path, of)
	if err != nil {
		return Rotation{}, err
	}
	made, err := newKey(of)
	if err != nil {
		return Rotation{}, fmt.Errorf("cannot make a key: %w", err)
	}
	done = Rotation{Made: made.id, Kept: []string{}, Dropped: []string{}}
	after := []key[P]{made}
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
	text, err := format(after)
	if err == nil {
		err = private.Replace(path, text)
	}
	if err != nil {
		return Rotation{}, fmt.Errorf("cannot write the key file: %w", err)
	}
	return done, nil
}
