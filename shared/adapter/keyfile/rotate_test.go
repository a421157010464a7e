package keyfile_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/port"
)

var moment = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

const overlap = 45 * 24 * time.Hour

func rotate(t *testing.T, path string, now time.Time) keyfile.Rotation {
	t.Helper()
	done, err := keyfile.Rotate(path, now, overlap)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func good(t *testing.T, s *keyfile.Signer) []string {
	t.Helper()
	keys, err := s.Keys(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, k := range keys {
		ids = append(ids, k.ID)
	}
	return ids
}

func TestSignerSeesARotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.pem")
	s := open(t, path)
	first := current(t, s)
	done := rotate(t, path, moment)
	if done.Made == first || !slices.Equal(done.Kept, []string{first}) || len(done.Dropped) != 0 {
		t.Errorf("got rotation of %s: %+v", first, done)
	}
	if current(t, s) != done.Made {
		t.Error("got the old key, want the new one")
	}
	if _, err := s.Sign(context.Background(), first, []byte("begun before")); err != nil {
		t.Errorf("old key: got %v, want success", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got file %v (%v)", info.Mode(), err)
	}
}

func TestRetiredKeyLastsAsLongAsItsTokens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.pem")
	s := open(t, path)
	first := current(t, s)
	second := rotate(t, path, moment).Made
	third := rotate(t, path, moment.Add(overlap)).Made
	if ids := good(t, s); !slices.Equal(ids, []string{third, second, first}) {
		t.Errorf("at the expiry of the first key's last token: got keys %v", ids)
	}
	done := rotate(t, path, moment.Add(overlap+time.Second))
	if !slices.Equal(done.Dropped, []string{first}) || !slices.Equal(good(t, s), []string{done.Made, third, second}) {
		t.Errorf("after the expiry: got rotation %+v and keys %v", done, good(t, s))
	}
	if _, err := s.Sign(context.Background(), first, []byte("late")); err != port.ErrNotFound { //nolint:errorlint // the port says so
		t.Errorf("dropped key: got %v", err)
	}
}

func TestConcurrentRotations(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.pem")
	s := open(t, path)
	ids := []string{current(t, s)}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			done, err := keyfile.Rotate(path, moment, overlap)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			ids = append(ids, done.Made)
		})
	}
	all.Wait()
	is := good(t, s)
	slices.Sort(ids)
	slices.Sort(is)
	if !slices.Equal(ids, is) {
		t.Errorf("got keys %v, want %v", is, ids)
	}
}

func TestOnlyKeyFilesAreRotated(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if _, err := keyfile.Rotate(filepath.Join(folder, "keys.pem"), moment, overlap); err == nil {
		t.Error("missing file: got success")
	}
	path := filepath.Join(folder, "other.pem")
	write(t, path, "a secret", 0o600)
	if _, err := keyfile.Rotate(path, moment, overlap); err == nil || string(read(t, path)) != "a secret" {
		t.Errorf("file without keys: got success (%v)", err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("got files %v (%v)", entries, err)
	}
}
