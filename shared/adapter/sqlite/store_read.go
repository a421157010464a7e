package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Load implements port.Store.
func (s *Store) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	if r, ok := s.newest.get(ref); ok && ctx.Err() == nil && (!s.expired(r) || r.BytesLeft()) {
		return r, nil
	}
	r, err := s.one(ctx, "SELECT doc FROM runs WHERE tenant = ? AND id = ? AND "+notPurgedSQL, ref.Tenant, ref.ID)
	return r, wrap(err, "read run", ref.ID)
}

// Find implements port.Store.
func (s *Store) Find(ctx context.Context, tenant, id string) (run.Run, error) {
	if r, ok := s.newest.find(tenant, id); ok && ctx.Err() == nil && !s.expired(r) {
		return r, nil
	}
	r, err := s.one(ctx, "SELECT doc FROM runs WHERE tenant = ?1 AND (id = ?2 OR task_id = ?2) AND "+notExpiredSQL, tenant, id)
	return r, wrap(err, "read task", id)
}

// FindByKey implements port.Store.
func (s *Store) FindByKey(ctx context.Context, tenant string, key port.IdempotencyKey) (run.Run, error) {
	var known []byte
	err := s.db.Read(ctx, func(tx *Tx) (err error) {
		known, err = useOfKey(tx, tenant, key, s.now())
		return err
	})
	switch {
	case err != nil:
		return run.Run{}, wrap(err, "read the run of", "an idempotency key")
	case known == nil:
		return run.Run{}, port.ErrNotFound
	}
	return s.decodeRun(known)
}

func (s *Store) expired(r run.Run) bool {
	return !r.ExpiresAt.IsZero() && nanos(r.ExpiresAt) <= s.now()
}

func (s *Store) one(ctx context.Context, query, tenant, id string) (run.Run, error) {
	var doc []byte
	since := s.newest.now()
	err := s.db.Read(ctx, func(tx *Tx) error {
		return tx.QueryRow(query, tenant, id, s.now()).Scan(&doc)
	})
	if errors.Is(err, ErrNoRow) {
		return run.Run{}, port.ErrNotFound
	}
	if err != nil {
		return run.Run{}, err
	}
	r, err := s.decodeRun(doc)
	if err == nil {
		s.newest.put(&r, since)
	}
	return r, err
}

// docs returns the rows of a query with one column.
func (s *Store) docs(ctx context.Context, query string, args ...any) (docs [][]byte, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		docs = nil
		rows := tx.Query(query, args...)
		for rows.Next() {
			var doc []byte
			if err := rows.Scan(&doc); err != nil {
				return err
			}
			docs = append(docs, doc)
		}
		return rows.Err()
	})
	return docs, err
}

// listQuery returns the query of a page after the place last, or of the first page if that is
// nil. Runs of one commit have the same time. SQLite does not use the number of the row to
// continue in an index, hence two ranges.
func (s *Store) listQuery(tenant string, page port.Page, last []byte) (query string, args []any) {
	of := "SELECT n, created_at, doc FROM runs WHERE tenant = ?1 || '' AND (expires_at IS NULL OR expires_at > ?2)"
	args = []any{tenant, s.now(), page.Limit + 1}
	add := func(condition string, arg any) {
		args = append(args, arg)
		of += fmt.Sprintf(condition, len(args))
	}
	if page.JobID != "" {
		add(" AND job = ?%d || ''", run.Listed(page.JobID, page.Children))
	}
	if page.State != "" {
		add(" AND state = ?%d || ''", page.State)
	}
	from := place{created: math.MaxInt64}
	switch {
	case last != nil:
		from = placeOf(last)
	case !page.Before.IsZero():
		from.created = nanos(page.Before)
	}
	args = append(args, from.created)
	at := len(args)
	query = fmt.Sprintf("%s AND created_at < ?%d", of, at)
	if last != nil {
		args = append(args, from.n)
		query = fmt.Sprintf("%s AND created_at = 0 + ?%d AND n < ?%d UNION ALL %s", of, at, at+1, query)
	}
	return query + " ORDER BY created_at DESC, n DESC LIMIT 0 + ?3", args
}

// List implements port.Store. It returns an InvalidRequest for "cursor" if the cursor belongs
// to another list, and for "limit" if the limit is out of range. Runs created at the same
// moment are ordered by their commits, newest first.
func (s *Store) List(ctx context.Context, tenant string, page port.Page) ([]run.Run, string, error) {
	if err := checkLimit(page); err != nil {
		return nil, "", err
	}
	in := listOf(tenant, page)
	last, err := in.after(page.Cursor)
	if err != nil {
		return nil, "", err
	}
	query, args := s.listQuery(tenant, page, last)
	var docs [][]byte
	var places []place
	err = s.db.Read(ctx, func(tx *Tx) error {
		docs, places = nil, nil
		rows := tx.Query(query, args...)
		for rows.Next() {
			var doc []byte
			var at place
			if err := rows.Scan(&at.n, &at.created, &doc); err != nil {
				return err
			}
			docs, places = append(docs, doc), append(places, at)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, "", wrap(err, "list the runs of", tenant)
	}
	next := ""
	if len(docs) > page.Limit {
		docs = docs[:page.Limit]
		next = in.cursor(places[page.Limit-1].bytes())
	}
	runs, err := s.decodeRuns(docs)
	return runs, next, err
}
