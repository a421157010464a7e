package dynamo

import (
	"context"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Attributes of a heartbeat item, and of the note about reception. It holds no
// attribute of an index, and so a heartbeat is one write unit.
const (
	beatAttempt    = "attempt"
	beatWorker     = "worker"
	beatAt         = "heard"
	beatProgress   = "progress"
	beatMessage    = "message"
	beatToken      = "token"
	beatGeneration = "generation"
	beatCancel     = "cancel"
	noteSince      = "since"
	noteProbed     = "probed"
)

// Beat implements orchestrator.Store. One that was overtaken is two writes.
func (s *Store) Heartbeat(ctx context.Context, ref run.Ref, b run.Heartbeat) (run.Heartbeat, error) {
	now, err := s.heartbeatOnce(ctx, ref, b, false)
	if reasons := refused(err); reasons != nil {
		is := reasons[0].Item
		if is == nil || numberOf(is[beatAttempt]) != int64(b.Attempt) || textOf(is[beatWorker]) != b.WorkerID {
			return run.Heartbeat{}, port.ErrNotFound
		}
		now, err = s.heartbeatOnce(ctx, ref, b, true)
		if refused(err) != nil {
			return run.Heartbeat{}, port.ErrNotFound
		}
	}
	return now, told(err, "note a heartbeat of run", ref.ID)
}

func (s *Store) heartbeatOnce(ctx context.Context, ref run.Ref, b run.Heartbeat, overtaken bool) (run.Heartbeat, error) {
	p := &part{key: heartbeatKey(ref)}
	p.where(beatAttempt, "=", number(int64(b.Attempt)))
	p.where(beatWorker, "=", text(b.WorkerID))
	if overtaken {
		// Any write has to write something: what is there already.
		p.set(beatAttempt, number(int64(b.Attempt)))
	} else {
		p.where(beatAt, "<=", moment(b.At))
		p.set(beatAt, moment(b.At))
	}
	if b.Progress != nil {
		p.set(beatProgress, number(int64(*b.Progress)))
	}
	if b.Message != "" {
		p.set(beatMessage, text(b.Message))
	}
	out, err := call(ctx, s, s.api.UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &s.config.Table, Key: p.key, UpdateExpression: p.update(), ConditionExpression: p.condition(),
		ExpressionAttributeNames: p.names, ExpressionAttributeValues: p.values, ReturnValues: types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: oldItem, ReturnConsumedCapacity: s.wanted(),
	})
	if err != nil {
		return run.Heartbeat{}, err
	}
	return heartbeatOf(out.Attributes), nil
}

// LastBeat implements orchestrator.Store.
func (s *Store) LastHeartbeat(ctx context.Context, ref run.Ref) (run.Heartbeat, error) {
	is, err := s.get(ctx, heartbeatKey(ref), true)
	if err == nil && is == nil {
		err = port.ErrNotFound
	}
	if err != nil {
		return run.Heartbeat{}, told(err, "read the last heartbeat of run", ref.ID)
	}
	return heartbeatOf(is), nil
}

// moment is a time as a number that keeps its order and its nanoseconds.
func moment(t time.Time) types.AttributeValue { return number(int64(nanos(t) ^ 1<<63)) } //nolint:gosec // keeps the bits

func timeOf(v types.AttributeValue) time.Time {
	if v == nil {
		return time.Time{}
	}
	return time.Unix(0, numberOf(v)).UTC()
}

func heartbeatOf(is item) run.Heartbeat {
	b := run.Heartbeat{
		Attempt: int(numberOf(is[beatAttempt])), WorkerID: textOf(is[beatWorker]), At: timeOf(is[beatAt]),
		Message: textOf(is[beatMessage]), Token: textOf(is[beatToken]), Generation: int(numberOf(is[beatGeneration])),
	}
	if v, ok := is[beatProgress]; ok {
		b.Progress = new(int(numberOf(v)))
	}
	if v, ok := is[beatCancel]; ok {
		b.Cancel = new(textOf(v))
	}
	return b
}

// beat is the part that the commit has in the run's heartbeat item; nil for
// none.
func (c *change) heartbeat() *part {
	change := c.Heartbeat
	p := &part{key: heartbeatKey(c.Run.Ref())}
	if !change.Evaluated.IsZero() {
		p.where(beatAt, "=", moment(change.Evaluated))
		p.refused = func(context.Context, item) error { return &port.Conflict{Ref: c.Run.Ref()} }
	}
	switch {
	case change.Close:
		p.remove = true
	case change.Open != nil:
		p.put = opened(p.key, *change.Open, change)
	case c.heartbeatless && p.refused == nil:
		return nil
	case change.Token != nil || change.Cancel != nil:
		if change.Token != nil {
			p.set(beatToken, text(*change.Token))
			p.set(beatGeneration, number(int64(change.Generation)))
		}
		if change.Cancel != nil {
			p.set(beatCancel, text(*change.Cancel))
		}
		p.present(schema.Partition.Name)
		if p.refused == nil {
			p.refused = func(context.Context, item) error { c.heartbeatless = true; return errAgain }
		}
	case p.refused == nil:
		return nil
	}
	return p
}

// opened is the item of a beat, with what the same commit changes in it.
func opened(key item, b run.Heartbeat, change run.HeartbeatChange) item {
	if change.Token != nil {
		b.Token, b.Generation = *change.Token, change.Generation
	}
	if change.Cancel != nil {
		b.Cancel = change.Cancel
	}
	is := item{
		beatAttempt: number(int64(b.Attempt)), beatWorker: text(b.WorkerID), beatAt: moment(b.At),
		beatToken: text(b.Token), beatGeneration: number(int64(b.Generation)),
	}
	if b.Progress != nil {
		is[beatProgress] = number(int64(*b.Progress))
	}
	if b.Message != "" {
		is[beatMessage] = text(b.Message)
	}
	if b.Cancel != nil {
		is[beatCancel] = text(*b.Cancel)
	}
	maps.Copy(is, key)
	return is
}

// Reception implements orchestrator.Store.
func (s *Store) Reception(ctx context.Context) (port.Reception, error) {
	is, err := s.get(ctx, keyOf(reception, sortNote), true)
	return port.Reception{Since: timeOf(is[noteSince]), ProbedAt: timeOf(is[noteProbed])},
		told(err, "read", "since when callbacks are received")
}

// NoteReception implements orchestrator.Store.
func (s *Store) RecordReception(ctx context.Context, r port.Reception) error {
	note := keyOf(reception, sortNote)
	if !r.Since.IsZero() {
		note[noteSince] = moment(r.Since)
	}
	if !r.ProbedAt.IsZero() {
		note[noteProbed] = moment(r.ProbedAt)
	}
	return told(s.send(ctx, []*part{{put: note}}), "note", "since when callbacks are received")
}
