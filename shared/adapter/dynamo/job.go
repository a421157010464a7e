package dynamo

import (
	stdbytes "bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/port"
)

// Attributes of a job's item other than those of records and indexes.
const (
	attrDefinition = "ver"  // the version of the definition
	attrMade       = "made" // when the job was created
)

// jobChange is a write of a job, encoded once for all tries.
type jobChange struct {
	job.Job
	// before is the revision that the write replaces, 0 for a new job.
	before     int64
	doc, nonce []byte
	// earlier is the item with the version of the definition that the write replaces. It is nil
	// if the write is not known to change the definition.
	earlier item
}

func (s *Store) jobChangeOf(j job.Job) (*jobChange, error) {
	c := &jobChange{Job: j, before: j.Revision, nonce: binary.BigEndian.AppendUint64(nil, s.config.Random())}
	c.Revision++
	var err error
	if c.doc, err = s.pack(c.Job); err != nil {
		return nil, fmt.Errorf("cannot encode job %s: %w", j.ID, err)
	}
	return c, nil
}

// pack encodes a document in the form that Config.PlainItems selects.
func (s *Store) pack(v any) ([]byte, error) {
	if s.config.PlainItems {
		return format.Encode(v)
	}
	return format.Pack(v)
}

func (c *jobChange) key(sk string) item { return keyOf(pkJob(c.Tenant, c.ID), sk) }

func versionSort(created time.Time, version int64) string {
	return fmt.Sprintf("%s%s#%010d", sortVersion, ordered(created), version)
}

// parts returns the parts that write the job and, for a new job, the empty item of its result.
// The version of a new job is above that of a deleted one.
func (c *jobChange) parts() []*part {
	put := c.key(sortJob)
	put[attrVersion], put[attrDefinition], put[attrMade] = number(c.Revision), number(c.Version), moment(c.CreatedAt)
	put[attrDoc], put[attrNonce] = document(c.doc), bytes(c.nonce)
	put[attrList], put[attrBorn] = text(jobsKey(c.Tenant)), bytes([]byte(c.ID))
	if !c.WakeAt.IsZero() {
		put[attrDue], put[attrAt] = text(dueKey(dueJob, jobShard(c.Ref()))), number(wholeSecond(c.WakeAt))
	}
	p := &part{put: put}
	parts := []*part{p}
	if c.before == 0 {
		p.absent(schema.Partition.Name)
		result := c.key(sortResult)
		if c.Version > 1 {
			result[attrDefinition] = number(c.Version)
		}
		deleted := &part{key: c.key(sortDeleted), refused: func(context.Context, item) error { return port.ErrConflict }}
		deleted.conditions = []string{fmt.Sprintf("(attribute_not_exists(%s) OR %[1]s < %s)", deleted.name(attrDefinition), deleted.value(number(c.Version)))}
		parts = append(parts, &part{put: result}, deleted)
	} else {
		p.where(attrVersion, "=", number(c.before))
		p.where(attrMade, "=", moment(c.CreatedAt))
		if c.earlier == nil {
			p.where(attrDefinition, "=", number(c.Version))
		} else {
			kept := c.key(versionSort(c.CreatedAt, numberOf(c.earlier[attrDefinition])))
			kept[attrDoc] = c.earlier[attrDoc]
			parts = append(parts, &part{put: kept})
		}
	}
	p.refused = func(_ context.Context, is item) error {
		switch {
		case stdbytes.Equal(bytesOf(is[attrNonce]), c.nonce):
			return errApplied
		case is == nil, c.before == 0, numberOf(is[attrVersion]) != c.before, !timeOf(is[attrMade]).Equal(c.CreatedAt):
			return port.ErrConflict
		}
		c.earlier = is
		return errAgain
	}
	return parts
}

// SaveJob implements port.Store.
func (s *Store) SaveJob(ctx context.Context, j job.Job, notes ...port.Note) error {
	return wrap(s.fireJob(ctx, j, nil, notes), "store job", j.ID)
}

// FireJob implements port.Store. A firing takes two items of the transaction, three
// if its run replaces an expired one.
func (s *Store) FireJob(ctx context.Context, j job.Job, firings ...port.Write) error {
	if len(firings) > port.MaxFirings {
		return fault.New(fault.Internal, "job %s: %d firings in one commit, want at most %d", j.ID, len(firings), port.MaxFirings)
	}
	return wrap(s.fireJob(ctx, j, firings, nil), "fire job", j.ID)
}

func (s *Store) fireJob(ctx context.Context, j job.Job, firings []port.Write, notes []port.Note) error {
	c, err := s.jobChangeOf(j)
	if err != nil {
		return err
	}
	noted, err := s.noteParts(notes)
	if err != nil {
		return err
	}
	changes, tasks := make([]*change, len(firings)), make([]*nameUse, len(firings))
	for i, w := range firings {
		if changes[i], err = s.changeOf(w, 1); err != nil {
			return err
		}
		tasks[i] = taskOf(changes[i])
	}
	return s.retryOutdated(ctx, func() error {
		leases, err := s.leases(ctx, changes)
		if err != nil {
			return err
		}
		parts := c.parts() // first, so that a changed job is reported before a run that exists
		for i, c := range changes {
			parts = append(parts, s.creation(c, tasks[i], leases)...)
		}
		return s.write(ctx, slices.Concat(parts, leases.parts, results(changes), noted))
	})
}

// LoadJob implements port.Store.
func (s *Store) LoadJob(ctx context.Context, tenant, jobID string) (job.Job, error) {
	j, err := s.jobAt(ctx, keyOf(pkJob(tenant, jobID), sortJob))
	return j, wrap(err, "read job", jobID)
}

func (s *Store) jobAt(ctx context.Context, key item) (job.Job, error) {
	is, err := s.get(ctx, key, true)
	if err != nil {
		return job.Job{}, err
	}
	if is == nil {
		return job.Job{}, port.ErrNotFound
	}
	return jobOf(is)
}

func jobOf(is item) (job.Job, error) {
	var j job.Job
	if err := format.Unpack(documentOf(is[attrDoc]), &j); err != nil {
		tenant, id := named(textOf(is[schema.Partition.Name]))
		return job.Job{}, fmt.Errorf("job %s of %s: %w", id, tenant, fault.Wrap(err, fault.Internal, "unreadable stored job"))
	}
	return j, nil
}

// JobVersion implements port.Store. An earlier version needs two reads.
func (s *Store) JobVersion(ctx context.Context, tenant, jobID string, version int64) (job.Job, error) {
	j, err := s.jobAt(ctx, keyOf(pkJob(tenant, jobID), sortJob))
	if err == nil && j.Version != version {
		j, err = s.jobAt(ctx, keyOf(pkJob(tenant, jobID), versionSort(j.CreatedAt, version)))
	}
	return j, wrap(err, "read a version of job", jobID)
}

// DeletedVersion implements port.Store.
func (s *Store) DeletedVersion(ctx context.Context, tenant, jobID string) (int64, error) {
	is, err := s.get(ctx, keyOf(pkJob(tenant, jobID), sortDeleted), true)
	if err != nil || is == nil {
		return 0, wrap(err, "read the last version of job", jobID)
	}
	return numberOf(is[attrDefinition]), nil
}

// DeleteJob implements port.Store. It removes the versions after the job. They cannot be read
// without it. A call that returned an error may be repeated to remove the rest.
func (s *Store) DeleteJob(ctx context.Context, j job.Job, notes ...port.Note) error {
	noted, err := s.noteParts(notes)
	if err == nil {
		err = s.deleteJob(ctx, j, noted)
	}
	return wrap(err, "delete job", j.ID)
}

func (s *Store) deleteJob(ctx context.Context, j job.Job, noted []*part) error {
	in := pkJob(j.Tenant, j.ID)
	p := &part{key: keyOf(in, sortJob), remove: true}
	p.where(attrVersion, "=", number(j.Revision))
	p.where(attrMade, "=", moment(j.CreatedAt))
	p.refused = func(context.Context, item) error { return port.ErrConflict }
	last := keyOf(in, sortDeleted)
	last[attrDefinition] = number(j.Version)
	deleted := s.write(ctx, append([]*part{p, {key: keyOf(in, sortResult), remove: true}, {put: last}}, noted...))
	if deleted != nil {
		if _, err := s.jobAt(ctx, p.key); err == nil || !errors.Is(err, port.ErrNotFound) {
			return deleted
		}
	}
	var kept []*part
	if err := s.each(ctx, s.queryPrefix(in, sortVersion+ordered(j.CreatedAt)+"#"), func(is item) bool {
		kept = append(kept, &part{key: keyOf(in, textOf(is[schema.Sort.Name])), remove: true})
		return true
	}); err != nil {
		return err
	}
	all := s.group(readers)
	for _, p := range kept {
		all.Go(func() error { return s.send(ctx, []*part{p}) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return deleted
}
