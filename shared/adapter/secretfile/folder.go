// Package secretfile stores named secrets in files, for a Sortie instance that runs on one
// host: one file per secret, FOLDER/TENANT/NAME.
//
// A change is effective at once. A folder or a file that other users can read is
// refused.
package secretfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/private"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Folder is the folder of all secrets. It need not exist.
type Folder string

var _ port.Secrets = Folder("")

// Secret implements port.Secrets.
func (f Folder) Secret(_ context.Context, tenant, name string) (string, error) {
	path, err := f.path(tenant, name)
	if err != nil {
		return "", fmt.Errorf("%w: %w", port.ErrNotFound, err)
	}
	text, err := private.Read(path, limit.Secret)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: secret %q", port.ErrNotFound, name)
	}
	if err == nil && !limit.ValidSecret(string(text)) {
		err = fmt.Errorf("invalid value in %s", path)
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "the secret %q cannot be read now", name)
	}
	return string(text), nil
}

// Put stores a value and replaces an earlier one.
func (f Folder) Put(tenant, name, value string) error {
	path, err := f.path(tenant, name)
	if err != nil {
		return err
	}
	if !limit.ValidSecret(value) {
		return fmt.Errorf("invalid value of %d bytes, want 1 to %d bytes of UTF-8 without a NUL", len(value), limit.Secret)
	}
	for _, folder := range []string{string(f), filepath.Dir(path)} {
		if err := private.Folder(folder); err != nil {
			return fmt.Errorf("cannot use the folder of the secrets: %w", err)
		}
	}
	if err := private.Replace(path, []byte(value)); err != nil {
		return fmt.Errorf("cannot write the secret %q: %w", name, err)
	}
	return nil
}

// List returns the names of a tenant's secrets, sorted.
func (f Folder) List(tenant string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(string(f), tenant))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list the secrets: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), private.Partial) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// Delete removes a secret. It returns port.ErrNotFound if it does not exist.
func (f Folder) Delete(tenant, name string) error {
	path, err := f.path(tenant, name)
	if err == nil {
		err = os.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = port.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("cannot delete the secret %q: %w", name, err)
	}
	return nil
}

func (f Folder) path(tenant, name string) (string, error) {
	for _, part := range []string{tenant, name} {
		if !limit.ValidName(part) {
			return "", fmt.Errorf("malformed name %q, want 1 to 63 lower-case letters, digits and hyphens", part)
		}
	}
	return filepath.Join(string(f), tenant, name), nil
}
