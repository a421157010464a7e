package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// resourceSteps are the migrations of the resources; see DB.Migrate. The deletion of a resource
// deletes its labels.
var resourceSteps = []string{`
CREATE TABLE resources (
	n          INTEGER PRIMARY KEY,
	tenant     TEXT NOT NULL,
	kind       TEXT NOT NULL,
	id         TEXT NOT NULL,
	version    INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	due_at     INTEGER, -- NULL: never
	doc        BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX resources_id ON resources (tenant, kind, id);
CREATE INDEX resources_due ON resources (kind, due_at) WHERE due_at IS NOT NULL;

CREATE TABLE resource_labels (
	tenant     TEXT NOT NULL,
	kind       TEXT NOT NULL,
	label      TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	resource   INTEGER NOT NULL REFERENCES resources (n) ON DELETE CASCADE,
	PRIMARY KEY (tenant, kind, label, created_at, resource)
) STRICT, WITHOUT ROWID;
CREATE INDEX resource_labels_of ON resource_labels (resource);
`}

// resourceDoc is the document of a resource, with its labels.
type resourceDoc struct {
	Labels   []string        `json:"labels,omitempty"`
	Document json.RawMessage `json:"document"`
}

// WriteResources implements port.ResourceStore.
func (s *Store) WriteResources(ctx context.Context, save, remove []port.Resource, notes ...port.Note) error {
	return wrap(s.write(ctx, notes, func(tx *Tx) error {
		for _, r := range remove {
			if err := orConflict(tx.Exec("DELETE FROM resources WHERE tenant = ? AND kind = ? AND id = ? AND version = ?",
				r.Tenant, r.Kind, r.ID, r.Version)); err != nil {
				return err
			}
		}
		for _, r := range save {
			if err := saveResource(tx, r); err != nil {
				return err
			}
		}
		return nil
	}), "store", "resources")
}

func saveResource(tx *Tx, r port.Resource) error {
	doc, err := encode(&resourceDoc{r.Labels, r.Document})
	if err != nil {
		return fmt.Errorf("cannot encode %s %s: %w", r.Kind, r.ID, err)
	}
	if r.Version == 0 {
		err = orConflict(tx.Exec(`INSERT INTO resources (tenant, kind, id, version, created_at, due_at, doc)
			VALUES (?, ?, ?, 1, ?, ?, ?) ON CONFLICT DO NOTHING`, r.Tenant, r.Kind, r.ID, nanos(r.CreatedAt), moment(r.DueAt), doc))
	} else {
		err = orConflict(tx.Exec("UPDATE resources SET version = version + 1, due_at = ?, doc = ? WHERE tenant = ? AND kind = ? AND id = ? AND version = ?",
			moment(r.DueAt), doc, r.Tenant, r.Kind, r.ID, r.Version))
	}
	if err != nil {
		return err
	}
	for _, label := range r.Labels {
		if _, err := tx.Exec(`INSERT INTO resource_labels (tenant, kind, label, created_at, resource)
			SELECT tenant, kind, ?, created_at, n FROM resources WHERE tenant = ? AND kind = ? AND id = ? ON CONFLICT DO NOTHING`,
			label, r.Tenant, r.Kind, r.ID); err != nil {
			return err
		}
	}
	return nil
}

const resourceColumns = "r.n, r.tenant, r.kind, r.id, r.version, r.created_at, r.due_at, r.doc"

// resources returns the resources of a query with resourceColumns, and the number of each one's
// row.
func (s *Store) resources(ctx context.Context, query string, args ...any) (found []port.Resource, rowOf []int64, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		found, rowOf = nil, nil
		rows := tx.Query(query, args...)
		for rows.Next() {
			var r port.Resource
			var n, created int64
			var due *int64
			var doc []byte
			if err := rows.Scan(&n, &r.Tenant, &r.Kind, &r.ID, &r.Version, &created, &due, &doc); err != nil {
				return err
			}
			var stored resourceDoc
			if err := json.Unmarshal(doc, &stored); err != nil {
				return fmt.Errorf("cannot decode %s %s: %w", r.Kind, r.ID, err)
			}
			r.CreatedAt, r.Labels, r.Document = time.Unix(0, created).UTC(), stored.Labels, stored.Document
			if due != nil {
				r.DueAt = time.Unix(0, *due).UTC()
			}
			found, rowOf = append(found, r), append(rowOf, n)
		}
		return rows.Err()
	})
	return found, rowOf, err
}

// LoadResource implements port.ResourceStore.
func (s *Store) LoadResource(ctx context.Context, ref port.ResourceRef) (port.Resource, error) {
	found, _, err := s.resources(ctx, "SELECT "+resourceColumns+" FROM resources r WHERE tenant = ? AND kind = ? AND id = ?", ref.Tenant, ref.Kind, ref.ID)
	if err == nil && len(found) == 0 {
		err = port.ErrNotFound
	}
	if err != nil {
		return port.Resource{}, wrap(err, "read "+ref.Kind, ref.ID)
	}
	return found[0], nil
}

// Resources implements port.ResourceStore. It returns the same faults as List.
func (s *Store) Resources(ctx context.Context, tenant, kind, label string, page port.Page) ([]port.Resource, string, error) {
	if err := checkLimit(page); err != nil {
		return nil, "", err
	}
	in := list{kind: "resources 1", scope: tenant + "/" + kind + "/" + label}
	place, err := in.after(page.Cursor)
	if err != nil {
		return nil, "", err
	}
	query := "SELECT " + resourceColumns + " FROM resource_labels l JOIN resources r ON r.n = l.resource WHERE l.tenant = ? || '' AND l.kind = ? || '' AND l.label = ? || ''"
	args := []any{tenant, kind, label}
	if place != nil {
		at, n, _ := strings.Cut(string(place), "/")
		before, err := strconv.ParseInt(at, 10, 64)
		row, err2 := strconv.ParseInt(n, 10, 64)
		if err != nil || err2 != nil {
			return nil, "", fault.Invalid("cursor", "not a cursor of this list")
		}
		query, args = query+" AND (l.created_at, l.resource) < (?, ?)", append(args, before, row)
	}
	found, rowOf, err := s.resources(ctx, query+" ORDER BY l.created_at DESC, l.resource DESC LIMIT 0 + ?", append(args, page.Limit+1)...)
	if err != nil || len(found) <= page.Limit {
		return found, "", wrap(err, "list the resources of", tenant)
	}
	last := page.Limit - 1
	return found[:page.Limit], in.cursor(fmt.Appendf(nil, "%d/%d", nanos(found[last].CreatedAt), rowOf[last])), nil
}

// ResourcesDue implements port.ResourceStore.
func (s *Store) ResourcesDue(ctx context.Context, kind string, now time.Time, after string, limit int) ([]port.ResourceRef, string, error) {
	rows, next, err := s.duePage(ctx, "resources", "due_at", now, after, limit, " AND kind = ? || ''", kind)
	due := make([]port.ResourceRef, len(rows))
	for i, row := range rows {
		due[i] = port.ResourceRef{Tenant: row.Tenant, Kind: kind, ID: row.ID}
	}
	return due, next, wrap(err, "read", "the resources that are due")
}
