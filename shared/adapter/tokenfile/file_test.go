package tokenfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/tokenfile"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

func add(t *testing.T, path, name string) {
	t.Helper()
	err := tokenfile.Update(path, func(tokens []access.Token) ([]access.Token, error) {
		return access.Add(tokens, access.Full(name, "text of "+name, "t", "p"))
	})
	if err != nil {
		t.Error(err)
	}
}

func revoke(t *testing.T, path, name string) {
	t.Helper()
	err := tokenfile.Update(path, func(tokens []access.Token) ([]access.Token, error) { return access.Revoke(tokens, name) })
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) (path string, f *tokenfile.File, now *clock.Virtual, has func(name string) (has, required bool)) {
	t.Helper()
	path, now = filepath.Join(t.TempDir(), "tokens.json"), clock.NewVirtual(time.Unix(0, 0))
	f, err := tokenfile.Open(path, now)
	if err != nil {
		t.Fatal(err)
	}
	return path, f, now, func(name string) (bool, bool) {
		t.Helper()
		tokens, required, err := f.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, ok := access.Find(tokens, "text of "+name)
		return ok, required
	}
}

func TestTokenIsRequiredOnceTheFileExists(t *testing.T) {
	t.Parallel()
	path, _, now, has := open(t)
	if ok, required := has("one"); ok || required {
		t.Errorf("without a file: got %v, required %v, want neither", ok, required)
	}
	add(t, path, "one")
	now.Advance(tokenfile.CacheTime)
	if ok, required := has("one"); !ok || !required {
		t.Errorf("after add: got %v, required %v, want both", ok, required)
	}
	revoke(t, path, "one")
	now.Advance(tokenfile.CacheTime)
	if ok, required := has("one"); ok || !required {
		t.Errorf("after the last revoke: got %v, required %v, want a required token and no record", ok, required)
	}
}

func TestRevocationIsEffectiveWithinTheCacheTime(t *testing.T) {
	t.Parallel()
	path, _, now, has := open(t)
	add(t, path, "one")
	now.Advance(tokenfile.CacheTime)
	has("one")
	revoke(t, path, "one")
	now.Advance(tokenfile.CacheTime - 1)
	if ok, _ := has("one"); !ok {
		t.Error("got the file read before the cache time, want the cached records")
	}
	now.Advance(1)
	if ok, _ := has("one"); ok {
		t.Error("got a revoked token after the cache time, want none")
	}
}

func TestNewTokenIsValidAtOnce(t *testing.T) {
	t.Parallel()
	path, f, _, has := open(t)
	add(t, path, "one")
	f.Refused()
	if ok, _ := has("one"); !ok {
		t.Error("got no record after Refused, want the new one")
	}
}

func TestConcurrentUpdatesAreKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.json")
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() { add(t, path, fmt.Sprint("token-", i)) })
	}
	group.Wait()
	if tokens, _, err := tokenfile.Read(path); err != nil || len(tokens) != 20 {
		t.Errorf("got %d records, %v, want 20", len(tokens), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
}

func TestInvalidFileIsRefused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"not JSON":          {`{"records":[`, 0o600},
		"unknown member":    {`{"records":[],"tokens":["x"]}`, 0o600},
		"more than one":     {`{"records":[]}{}`, 0o600},
		"incomplete record": {`{"records":[{"name":"a"}]}`, 0o600},
		"open to others":    {`{"records":[]}`, 0o644},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, f, now, _ := open(t)
			if err := errors.Join(os.WriteFile(path, []byte(row.text), row.mode), os.Chmod(path, row.mode)); err != nil {
				t.Fatal(err)
			}
			if _, err := tokenfile.Open(path, now); err == nil {
				t.Error("Open: got no error")
			}
			f.Refused()
			if tokens, required, err := f.Current(t.Context()); !fault.Is(err, fault.Unavailable) || !required || tokens != nil {
				t.Errorf("Current: got %v, required %v, %v, want Unavailable", tokens, required, err)
			}
			if err := tokenfile.Update(path, func(tokens []access.Token) ([]access.Token, error) { return tokens, nil }); err == nil {
				t.Error("Update: got no error")
			}
		})
	}
}
