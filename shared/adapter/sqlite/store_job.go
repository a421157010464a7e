package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// SaveJob implements port.Store.
func (s *Store) SaveJob(ctx context.Context, j job.Job, notes ...port.Note) error {
	return s.saveJob(ctx, j, nil, notes)
}

// FireJob implements port.Store.
func (s *Store) FireJob(ctx context.Context, j job.Job, firings ...port.Write) error {
	if len(firings) > port.MaxFirings {
		return fault.New(fault.Internal, "job %s: %d firings in one commit, want at most %d", j.ID, len(firings), port.MaxFirings)
	}
	records := make([]record, len(firings))
	for i := range firings {
		var err error
		if records[i], err = s.recordOf(&firings[i], 1); err != nil {
			return err
		}
	}
	return s.saveJob(ctx, j, records, nil)
}

func (s *Store) saveJob(ctx context.Context, j job.Job, firings []record, notes []port.Note) error {
	before := j.Revision
	j.Revision++
	doc, err := encode(&j)
	if err != nil {
		return fmt.Errorf("cannot encode job %s: %w", j.ID, err)
	}
	since := s.newest.now()
	err = s.write(ctx, notes, func(tx *Tx) error {
		if err := writeJob(tx, j, before, doc); err != nil {
			return err
		}
		for _, rec := range firings {
			n, err := insertRun(tx, rec, s.now())
			if err != nil {
				return err
			}
			if err := writeBeside(tx, n, rec); err != nil {
				return err
			}
		}
		return checkSlots(tx, firings...)
	})
	if err != nil {
		return wrap(err, "store job", j.ID)
	}
	for _, rec := range firings {
		s.newest.addCreated(rec.Run, since)
	}
	return nil
}

// writeJob stores the job if the stored revision is before. It stores the record of a replaced
// version too.
func writeJob(tx *Tx, j job.Job, before int64, doc []byte) error {
	if before == 0 {
		return orConflict(tx.Exec(`INSERT INTO jobs (tenant, id, revision, version, created_at, wake_at, doc)
			SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
			WHERE NOT EXISTS (SELECT 1 FROM deleted_jobs WHERE tenant = ?1 AND id = ?2 AND version >= ?4) ON CONFLICT DO NOTHING`,
			j.Tenant, j.ID, j.Revision, j.Version, nanos(j.CreatedAt), moment(j.WakeAt), doc))
	}
	var n, version int64
	err := tx.QueryRow("SELECT n, version FROM jobs WHERE tenant = ? AND id = ? AND revision = ? AND created_at = ?",
		j.Tenant, j.ID, before, nanos(j.CreatedAt)).Scan(&n, &version)
	if errors.Is(err, ErrNoRow) {
		return port.ErrConflict
	}
	if err != nil {
		return err
	}
	if version != j.Version {
		if _, err := tx.Exec("INSERT INTO job_versions (job, version, doc) SELECT n, version, doc FROM jobs WHERE n = ?", n); err != nil {
			return err
		}
	}
	_, err = tx.Exec("UPDATE jobs SET revision = ?, version = ?, wake_at = ?, doc = ? WHERE n = ?",
		j.Revision, j.Version, moment(j.WakeAt), doc, n)
	return err
}

// LoadJob implements port.Store.
func (s *Store) LoadJob(ctx context.Context, tenant, jobID string) (job.Job, error) {
	var j job.Job
	err := s.document(ctx, &j, "SELECT doc FROM jobs WHERE tenant = ? AND id = ?", tenant, jobID)
	return j, wrap(err, "read job", jobID)
}

// JobVersion implements port.Store.
func (s *Store) JobVersion(ctx context.Context, tenant, jobID string, version int64) (job.Job, error) {
	var j job.Job
	err := s.document(ctx, &j, `SELECT doc FROM jobs WHERE tenant = ?1 AND id = ?2 AND version = 0 + ?3
		UNION ALL SELECT job_versions.doc FROM jobs JOIN job_versions ON job_versions.job = jobs.n
		WHERE jobs.tenant = ?1 || '' AND jobs.id = ?2 || '' AND job_versions.version = 0 + ?3`, tenant, jobID, version)
	return j, wrap(err, "read a version of job", jobID)
}

// LastResult implements port.Store.
func (s *Store) LastResult(ctx context.Context, tenant, jobID string) (run.Result, error) {
	var r run.Result
	err := s.document(ctx, &r, `SELECT job_results.doc FROM jobs JOIN job_results ON job_results.job = jobs.n
		WHERE jobs.tenant = ? || '' AND jobs.id = ? || ''`, tenant, jobID)
	return r, wrap(err, "read the last result of job", jobID)
}

// document decodes the first row of a query with one column, or returns
// port.ErrNotFound.
func (s *Store) document(ctx context.Context, into any, query string, args ...any) error {
	var doc []byte
	err := s.db.Read(ctx, func(tx *Tx) error { return tx.QueryRow(query, args...).Scan(&doc) })
	switch {
	case errors.Is(err, ErrNoRow):
		return port.ErrNotFound
	case err == nil:
		err = json.Unmarshal(doc, into)
	}
	return err
}

// writeResult stores the result of a run that ends with the write. It stores no result if the
// job was deleted, even if a later job has its id.
func writeResult(tx *Tx, w *port.Write) error {
	result, ok := w.Result()
	if !ok {
		return nil
	}
	doc, err := encode(&result)
	if err != nil {
		return fmt.Errorf("cannot encode the result of run %s: %w", result.RunID, err)
	}
	_, err = tx.Exec(`INSERT INTO job_results (job, ended_at, doc) SELECT n, ?3, ?4 FROM jobs WHERE tenant = ?1 AND id = ?2
		AND NOT EXISTS (SELECT 1 FROM deleted_jobs WHERE tenant = ?1 AND id = ?2 AND version >= ?5)
		ON CONFLICT DO UPDATE SET ended_at = excluded.ended_at, doc = excluded.doc WHERE excluded.ended_at >= ended_at`,
		w.Run.Tenant, w.Run.JobID, nanos(result.EndedAt), doc, w.Run.JobVersion)
	return err
}

// DeleteJob implements port.Store.
func (s *Store) DeleteJob(ctx context.Context, j job.Job, notes ...port.Note) error {
	return wrap(s.write(ctx, notes, func(tx *Tx) error {
		if _, err := tx.Exec(`INSERT INTO deleted_jobs (tenant, id, version) SELECT tenant, id, version FROM jobs WHERE tenant = ? AND id = ?
			ON CONFLICT DO UPDATE SET version = excluded.version`, j.Tenant, j.ID); err != nil {
			return err
		}
		return orConflict(tx.Exec("DELETE FROM jobs WHERE tenant = ? AND id = ? AND revision = ? AND created_at = ?",
			j.Tenant, j.ID, j.Revision, nanos(j.CreatedAt)))
	}), "delete job", j.ID)
}

// DeletedVersion implements port.Store.
func (s *Store) DeletedVersion(ctx context.Context, tenant, jobID string) (version int64, err error) {
	err = s.db.Read(ctx, func(tx *Tx) error {
		return tx.QueryRow("SELECT version FROM deleted_jobs WHERE tenant = ? AND id = ?", tenant, jobID).Scan(&version)
	})
	if errors.Is(err, ErrNoRow) {
		return 0, nil
	}
	return version, wrap(err, "read the last version of job", jobID)
}

// Jobs implements port.Store. It returns the same faults as List.
func (s *Store) Jobs(ctx context.Context, tenant string, page port.Page) ([]job.Job, string, error) {
	jobs, next, err := documentPage(ctx, s, "jobs", tenant, page, func(j job.Job) string { return j.ID })
	return jobs, next, wrap(err, "list the jobs of", tenant)
}

// documentPage returns a page of the documents of a tenant in a table, ordered by id.
func documentPage[T any](
	ctx context.Context, s *Store, table, tenant string, page port.Page, id func(T) string,
) (found []T, next string, err error) {
	if err := checkLimit(page); err != nil {
		return nil, "", err
	}
	in := list{kind: table + " 1", scope: tenant}
	from, err := in.after(page.Cursor)
	if err != nil {
		return nil, "", err
	}
	docs, err := s.docs(ctx, "SELECT doc FROM "+table+" WHERE tenant = ? || '' AND id > ? ORDER BY id LIMIT 0 + ?", tenant, string(from), page.Limit+1)
	if err != nil {
		return nil, "", err
	}
	more := len(docs) > page.Limit
	docs = docs[:min(len(docs), page.Limit)]
	found = make([]T, len(docs))
	for i, doc := range docs {
		if err := json.Unmarshal(doc, &found[i]); err != nil {
			return nil, "", fmt.Errorf("cannot decode a record of %s: %w", table, err)
		}
	}
	if !more {
		return found, "", nil
	}
	return found, in.cursor([]byte(id(found[page.Limit-1]))), nil
}

// JobsDue implements port.Store.
func (s *Store) JobsDue(ctx context.Context, now time.Time, after string, limit int) ([]job.Ref, string, error) {
	rows, next, err := s.duePage(ctx, "jobs", "wake_at", now, after, limit, "")
	due := make([]job.Ref, len(rows))
	for i, row := range rows {
		due[i] = job.Ref(row)
	}
	return due, next, wrap(err, "read", "the jobs that are due")
}
