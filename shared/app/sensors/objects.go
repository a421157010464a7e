package sensors

import (
	"context"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/base/batch"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/port"
)

// takeObjects lists the bucket after the last listed key and starts the runs of new objects. If it
// lists from the start to the end, it forgets the objects that are gone.
func (s *Polls) takeObjects(ctx context.Context, j job.Job, by sensor.Credentials, m *memory) (more bool, err error) {
	of := *j.Definition.Sensor.Bucket
	whole, listed, started := m.state.After == "", map[sensor.Mark]bool{}, 0
	for after := m.state.After; ; {
		asked := s.now()
		page, err := s.buckets.Objects(ctx, of, by, after)
		if err != nil {
			return false, err
		}
		for _, o := range page.Objects {
			listed[o.Mark()] = true
		}
		found := m.unknown(of, page, skew(page.At, asked))
		if whole && len(listed) > sensor.MaxObjects || !whole && m.seen.Len()+len(found) > sensor.MaxObjects {
			m.state.After = "" // a poll from the start forgets the objects that are gone
			return false, fault.New(fault.Unavailable, "more than %d objects; want a narrower prefix, or remove objects that are done", sensor.MaxObjects)
		}
		rest := len(found) > startLimit-started
		found = found[:min(len(found), startLimit-started)]
		if err := s.startObjects(ctx, j, of, found, m); err != nil {
			m.state.After = after
			return false, err
		}
		if started += len(found); rest {
			m.state.After = after
			return true, nil
		}
		if len(page.Objects) > 0 {
			after = page.Objects[len(page.Objects)-1].Key
		}
		if m.state.After = after; !page.More {
			break
		}
	}
	m.state.Begins = false
	if whole {
		m.seen.Keep(listed)
	}
	return false, nil
}

// unknown returns the objects of a page that need a run, and remembers those that are older than the
// sensor.
func (m *memory) unknown(of sensor.Bucket, page port.ObjectPage, skew time.Duration) (found []sensor.Object) {
	for _, o := range page.Objects {
		switch {
		case m.seen.Has(o.Mark()):
		case !of.Existing && m.state.Old(o, skew):
			m.seen.Add(o.Mark())
		default:
			found = append(found, o)
		}
	}
	return found
}

// skew returns how much the clock of a store is ahead, from the time of its answer; 0 if that is
// unknown or within the precision of the answer.
func skew(at, asked time.Time) time.Duration {
	const precision = 2 * time.Second
	if by := at.Sub(asked); !at.IsZero() && by.Abs() > precision {
		return by
	}
	return 0
}

// startObjects starts the runs of objects, and remembers those that have one. It returns the first
// error.
func (s *Polls) startObjects(ctx context.Context, j job.Job, of sensor.Bucket, objects []sensor.Object, m *memory) error {
	refused := make([]string, len(objects))
	var first error
	for part := range slices.Chunk(batch.Indexes(len(objects)), min(startsAtOnce, s.workers)) {
		failed := batch.Each(s.workers, part, func(i int) (err error) {
			e, malformed := objects[i].Event(of)
			refused[i], err = s.start(ctx, j, e, malformed)
			return err
		})
		for n, i := range part {
			if failed[n] != nil {
				if first == nil {
					first = failed[n]
				}
				continue
			}
			m.seen.Add(objects[i].Mark())
			if refused[i] != "" {
				s.refuse(ctx, j, m, objects[i].Key, refused[i])
			}
		}
		if first != nil {
			return first
		}
	}
	return nil
}

// refuse notes an item that can have no run.
func (s *Polls) refuse(ctx context.Context, j job.Job, m *memory, item, why string) {
	s.log.WarnContext(ctx, "an item of a sensor can have no run", "job_id", j.ID, "reason", why)
	m.state = m.state.Refuse(item, why, s.now())
}
