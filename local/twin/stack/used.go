package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// ErrRecordsLost means that a used data folder has lost its records. A start would create an
// empty store although the machines and outputs of the lost runs still exist. Nothing was
// changed.
var ErrRecordsLost = errors.New("the folder was used before, but has no records")

// traces returns the files and folders that a start creates, all after the tables of the
// records.
func traces() []string { return []string{memoryFile, "s3", "machines", KeysFile, EventKeysFile} }

// checkRecords returns ErrRecordsLost if the folder was used and the file of its records is
// missing or empty.
func checkRecords(dir string) error {
	trace, err := traceOf(dir)
	if err != nil || trace == "" {
		return err
	}
	info, err := os.Stat(filepath.Join(dir, RecordsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lost(trace, "is missing")
	case err != nil:
		return fmt.Errorf("cannot look at the records: %w", err)
	case info.Size() == 0:
		return lost(trace, "is empty")
	}
	return nil
}

// checkTables is like checkRecords for a database without tables, which is not an empty file.
func checkTables(ctx context.Context, dir string, db *sqlite.DB) error {
	trace, err := traceOf(dir)
	if err != nil || trace == "" {
		return err
	}
	migrated, err := db.Migrated(ctx)
	if err == nil && !migrated {
		err = lost(trace, "has no tables")
	}
	return err
}

func lost(trace, what string) error {
	return fmt.Errorf("%w: it has %s, and %s %s", ErrRecordsLost, trace, RecordsFile, what)
}

// traceOf returns the first trace of an earlier start in the folder, or "".
func traceOf(dir string) (string, error) {
	for _, name := range traces() {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return name, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("cannot look at the data folder: %w", err)
		}
	}
	return "", nil
}
