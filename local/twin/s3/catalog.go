package s3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

var steps = []string{`
CREATE TABLE objects (
	bucket  TEXT NOT NULL,
	key     TEXT NOT NULL,
	id      TEXT NOT NULL,
	size    INTEGER NOT NULL,
	etag    TEXT NOT NULL,
	headers TEXT NOT NULL,
	at      INTEGER NOT NULL, -- Unix milliseconds
	PRIMARY KEY (bucket, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE uploads (
	id      TEXT PRIMARY KEY,
	bucket  TEXT NOT NULL,
	key     TEXT NOT NULL,
	headers TEXT NOT NULL,
	at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE parts (
	upload TEXT NOT NULL REFERENCES uploads (id),
	number INTEGER NOT NULL,
	id     TEXT NOT NULL,
	size   INTEGER NOT NULL,
	etag   TEXT NOT NULL,
	at     INTEGER NOT NULL,
	PRIMARY KEY (upload, number)
) STRICT, WITHOUT ROWID;
-- What objects and parts, by their id, are made of.
CREATE TABLE pieces (
	holder TEXT NOT NULL,
	n      INTEGER NOT NULL,
	blob   TEXT NOT NULL,
	start  INTEGER NOT NULL,
	size   INTEGER NOT NULL,
	PRIMARY KEY (holder, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX pieces_by_blob ON pieces (blob);
`, `
-- The bucket of accepted outputs has the name that it has on AWS.
UPDATE objects SET bucket = 'arke-exports-accepted' WHERE bucket = 'arke-exports-kept';
UPDATE uploads SET bucket = 'arke-exports-accepted' WHERE bucket = 'arke-exports-kept';
`}

// catalog is the index of objects and uploads.
type catalog struct{ db *sqlite.DB }

func openCatalog(ctx context.Context, db *sqlite.DB) (*catalog, error) {
	return &catalog{db}, db.Migrate(ctx, "s3", steps)
}

// headers are the headers that a client stores with an object and gets back.
type headers struct {
	ContentType        string            `json:"contentType,omitempty"`
	ContentDisposition string            `json:"contentDisposition,omitempty"`
	ContentEncoding    string            `json:"contentEncoding,omitempty"`
	ContentLanguage    string            `json:"contentLanguage,omitempty"`
	CacheControl       string            `json:"cacheControl,omitempty"`
	Expires            string            `json:"expires,omitempty"`
	Metadata           map[string]string `json:"metadata,omitempty"`
}

// object is a row of objects.
type object struct {
	bucket, key, id string
	size            int64
	etag            string // without quotes
	headers         headers
	at              time.Time
}

// piece is a range of a blob: size bytes from offset.
type piece struct {
	blob         string
	offset, size int64
}

// cut returns the pieces of size bytes from offset.
func cut(from []piece, offset, size int64) []piece {
	var to []piece
	for _, p := range from {
		if size <= 0 {
			break
		}
		if offset >= p.size {
			offset -= p.size
			continue
		}
		taken := min(p.size-offset, size)
		to = append(to, piece{p.blob, p.offset + offset, taken})
		offset, size = 0, size-taken
	}
	return to
}

const objectColumns = "bucket, key, id, size, etag, headers, at"

func scanObject(scan func(...any) error) (object, error) {
	var o object
	var text string
	var at int64
	if err := scan(&o.bucket, &o.key, &o.id, &o.size, &o.etag, &text, &at); err != nil {
		return object{}, err
	}
	o.at = time.UnixMilli(at).UTC()
	if err := json.Unmarshal([]byte(text), &o.headers); err != nil {
		return object{}, fmt.Errorf("cannot read the headers of %s: %w", o.key, err)
	}
	return o, nil
}

// find returns an object, and false if it does not exist.
func find(tx *sqlite.Tx, bucket, key string) (object, bool, error) {
	o, err := scanObject(tx.QueryRow("SELECT "+objectColumns+" FROM objects WHERE bucket = ? AND key = ?", bucket, key).Scan)
	if errors.Is(err, sqlite.ErrNoRow) {
		return object{}, false, nil
	}
	return o, err == nil, err
}

// put stores o under its key. It returns the blobs that are no longer used.
func put(tx *sqlite.Tx, o object, pieces []piece) (free []string, err error) {
	free, err = remove(tx, o.bucket, o.key)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o.headers)
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec("INSERT INTO objects ("+objectColumns+") VALUES (?, ?, ?, ?, ?, ?, ?)",
		o.bucket, o.key, o.id, o.size, o.etag, string(text), o.at.UnixMilli())
	if err != nil {
		return nil, err
	}
	return free, savePieces(tx, o.id, pieces)
}

// remove removes the object from the catalog, if it exists. It returns the blobs that are no
// longer used.
func remove(tx *sqlite.Tx, bucket, key string) (free []string, err error) {
	var id string
	err = tx.QueryRow("DELETE FROM objects WHERE bucket = ? AND key = ? RETURNING id", bucket, key).Scan(&id)
	if errors.Is(err, sqlite.ErrNoRow) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return release(tx, id)
}

// savePieces records the pieces of a holder.
func savePieces(tx *sqlite.Tx, holder string, pieces []piece) error {
	for n, p := range pieces {
		_, err := tx.Exec("INSERT INTO pieces (holder, n, blob, start, size) VALUES (?, ?, ?, ?, ?)", holder, n, p.blob, p.offset, p.size)
		if err != nil {
			return err
		}
	}
	return nil
}

// held returns the pieces of a holder.
func held(tx *sqlite.Tx, holder string) ([]piece, error) {
	var pieces []piece
	rows := tx.Query("SELECT blob, start, size FROM pieces WHERE holder = ? ORDER BY n", holder)
	for rows.Next() {
		var p piece
		if err := rows.Scan(&p.blob, &p.offset, &p.size); err != nil {
			return nil, err
		}
		pieces = append(pieces, p)
	}
	return pieces, rows.Err()
}

// release removes the holder and returns the blobs that no other holder uses.
func release(tx *sqlite.Tx, holder string) (free []string, err error) {
	pieces, err := held(tx, holder)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec("DELETE FROM pieces WHERE holder = ?", holder); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, p := range pieces {
		if seen[p.blob] {
			continue
		}
		seen[p.blob] = true
		known, err := knows(tx, p.blob)
		if err != nil {
			return nil, err
		}
		if !known {
			free = append(free, p.blob)
		}
	}
	return free, nil
}

// knows reports whether any piece uses the blob.
func knows(tx *sqlite.Tx, blob string) (known bool, err error) {
	err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM pieces WHERE blob = ?)", blob).Scan(&known)
	return known, err
}
