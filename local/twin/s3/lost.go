package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

const (
	catalogFile = "catalog.db"
	blobsFolder = "blobs"
)

// ErrCatalogLost means that the folder has the bytes of objects, but no catalog that names
// them. A start would delete them. Nothing was changed.
var ErrCatalogLost = errors.New("the folder has objects, but no catalog of them")

// checkCatalog returns ErrCatalogLost if there are objects and the catalog is missing or empty.
func checkCatalog(dir string) error {
	if info, err := os.Stat(filepath.Join(dir, catalogFile)); err == nil && info.Size() > 0 {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return lostIfObjects(dir, "is missing or empty")
}

// checkTables is like checkCatalog for a database without tables, which is not an empty file.
func checkTables(ctx context.Context, dir string, db *sqlite.DB) error {
	if migrated, err := db.Migrated(ctx); err != nil || migrated {
		return err
	}
	return lostIfObjects(dir, "has no tables")
}

func lostIfObjects(dir, what string) error {
	err := filepath.WalkDir(filepath.Join(dir, blobsFolder), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			err = fmt.Errorf("%w: %s in %s %s", ErrCatalogLost, catalogFile, dir, what)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
