package dynamo

import (
	"context"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Attributes of a heartbeat item, and of the item about reception. None is
// indexed, so a heartbeat costs one write unit.
const (
	heartbeatAttempt    = "attempt"
	heartbeatWorker     = "worker"
	heartbeatAt         = "heard"
	heartbeatProgress   = "progress"
	heartbeatMessage    = "message"
	heartbeatToken      = "token"
	heartbeatGeneration = "generation"
	heartbeatCancel     = "cancel"
	heartbeatTokenAt    = "tokenAt"
	heartbeatPrevious   = "previous"
	heartbeatForward    = "forward"
	heartbeatTimeout    = "timeout"
	heartbeatReceived   = "received"
	noteSince           = "since"
	noteAt              = "probed"
	noteCrowded         = "crowded"
)

// Heartbeat implements port.Store. A heartbeat older than the stored one takes
// two writes.
func (s *Store) Heartbeat(ctx context.Context, ref run.Ref, b run.Heartbeat) (run.Heartbeat, error) {
	now, err := s.heartbeatOnce(ctx, ref, b, false)
	if reasons := refused(err); reasons != nil {
		is := reasons[0].Item
		if is == nil || numberOf(is[heartbeatAttempt]) != int64(b.Attempt) || textOf(is[heartbeatWorker]) != b.WorkerID {
			return run.Heartbeat{}, port.ErrNotFound
		}
		now, err = s.heartbeatOnce(ctx, ref, b, true)
		if refused(err) != nil {
			return run.Heartbeat{}, port.ErrNotFound
		}
	}
	return now, wrap(err, "store a heartbeat of run", ref.ID)
}

func (s *Store) heartbeatOnce(ctx context.Context, ref run.Ref, b run.Heartbeat, overtaken bool) (run.Heartbeat, error) {
	p := &part{key: heartbeatKey(ref)}
	p.where(heartbeatAttempt, "=", number(int64(b.Attempt)))
	p.where(heartbeatWorker, "=", text(b.WorkerID))
	if overtaken {
		// An update needs a value; this one is equal to the stored one.
		p.set(heartbeatAttempt, number(int64(b.Attempt)))
	} else {
		p.where(heartbeatAt, "<=", moment(b.At))
		p.sets = append(p.sets, p.name(heartbeatPrevious)+" = "+p.name(heartbeatAt)) // the value before this update
		p.set(heartbeatAt, moment(b.At))
	}
	if b.Progress != nil {
		p.set(heartbeatProgress, number(int64(*b.Progress)))
	}
	if b.Message != "" {
		p.set(heartbeatMessage, text(b.Message))
	}
	if b.Received > 0 {
		p.add(heartbeatReceived, int64(b.Received))
	}
	out, err := call(ctx, s, s.api.UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &s.config.Table, Key: p.key, UpdateExpression: p.update(), ConditionExpression: p.condition(),
		ExpressionAttributeNames: p.names, ExpressionAttributeValues: p.values, ReturnValues: types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: oldItem, ReturnConsumedCapacity: s.returnConsumed(),
	})
	if err != nil {
		return run.Heartbeat{}, err
	}
	return heartbeatOf(out.Attributes), nil
}

// LastHeartbeat implements port.Store.
func (s *Store) LastHeartbeat(ctx context.Context, ref run.Ref) (run.Heartbeat, error) {
	is, err := s.get(ctx, heartbeatKey(ref), true)
	if err == nil && is == nil {
		err = port.ErrNotFound
	}
	if err != nil {
		return run.Heartbeat{}, wrap(err, "read the last heartbeat of run", ref.ID)
	}
	return heartbeatOf(is), nil
}

// moment encodes a time as a number of Unix nanoseconds.
func moment(t time.Time) types.AttributeValue { return number(int64(nanos(t) ^ 1<<63)) } //nolint:gosec // keeps the bits

func timeOf(v types.AttributeValue) time.Time {
	if v == nil {
		return time.Time{}
	}
	return time.Unix(0, numberOf(v)).UTC()
}

func heartbeatOf(is item) run.Heartbeat {
	b := run.Heartbeat{
		Attempt: int(numberOf(is[heartbeatAttempt])), WorkerID: textOf(is[heartbeatWorker]), At: timeOf(is[heartbeatAt]),
		Message: textOf(is[heartbeatMessage]), Token: textOf(is[heartbeatToken]), Generation: int(numberOf(is[heartbeatGeneration])),
		TokenAt: timeOf(is[heartbeatTokenAt]), Previous: timeOf(is[heartbeatPrevious]),
		ForwardEvery: time.Duration(numberOf(is[heartbeatForward])), Timeout: time.Duration(numberOf(is[heartbeatTimeout])),
		Received: int(numberOf(is[heartbeatReceived])),
	}
	if v, ok := is[heartbeatProgress]; ok {
		b.Progress = new(int(numberOf(v)))
	}
	if v, ok := is[heartbeatCancel]; ok {
		b.Cancel = new(textOf(v))
	}
	return b
}

// heartbeat returns the part of the commit for the run's heartbeat item, or
// nil.
func (c *change) heartbeat() *part {
	change := c.Heartbeat
	p := &part{key: heartbeatKey(c.Run.Ref())}
	if !change.Evaluated.IsZero() {
		p.where(heartbeatAt, "=", moment(change.Evaluated))
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
			p.set(heartbeatToken, text(*change.Token))
			p.set(heartbeatGeneration, number(int64(change.Generation)))
			p.set(heartbeatTokenAt, moment(change.TokenAt))
		}
		if change.Cancel != nil {
			p.set(heartbeatCancel, text(*change.Cancel))
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

// opened returns the item of a first heartbeat, with the changes of the same commit.
func opened(key item, b run.Heartbeat, change run.HeartbeatChange) item {
	if change.Token != nil {
		b.Token, b.Generation, b.TokenAt = *change.Token, change.Generation, change.TokenAt
	}
	if change.Cancel != nil {
		b.Cancel = change.Cancel
	}
	is := item{
		heartbeatAttempt: number(int64(b.Attempt)), heartbeatWorker: text(b.WorkerID), heartbeatAt: moment(b.At),
		heartbeatToken: text(b.Token), heartbeatGeneration: number(int64(b.Generation)),
	}
	if b.Progress != nil {
		is[heartbeatProgress] = number(int64(*b.Progress))
	}
	if b.Message != "" {
		is[heartbeatMessage] = text(b.Message)
	}
	if b.Cancel != nil {
		is[heartbeatCancel] = text(*b.Cancel)
	}
	for name, at := range map[string]time.Time{heartbeatTokenAt: b.TokenAt, heartbeatPrevious: b.Previous} {
		if !at.IsZero() {
			is[name] = moment(at)
		}
	}
	if b.Received > 0 {
		is[heartbeatReceived] = number(int64(b.Received))
	}
	if b.ForwardEvery > 0 {
		is[heartbeatForward] = number(int64(b.ForwardEvery))
	}
	if due := b.DueAt(); !due.IsZero() {
		// Heartbeats do not move the entry in the index. Its time is the first at which the
		// item can be due.
		is[heartbeatTimeout] = number(int64(b.Timeout))
		tenant, id := named(textOf(key[schema.Partition.Name]))
		is[attrDue] = text(dueKey(dueHeartbeat, shard(run.Ref{Tenant: tenant, ID: id}, heartbeatShards)))
		is[attrAt] = number(due.Unix())
	}
	maps.Copy(is, key)
	return is
}

// Reception implements port.Store.
func (s *Store) Reception(ctx context.Context) (port.Reception, error) {
	is, err := s.get(ctx, keyOf(reception, sortNote), true)
	return receptionOf(is), wrap(err, "read", "the reception of heartbeats")
}

func receptionOf(is item) port.Reception {
	return port.Reception{Since: timeOf(is[noteSince]), At: timeOf(is[noteAt]), Crowded: is[noteCrowded] != nil}
}

// RecordReception implements port.Store.
func (s *Store) RecordReception(ctx context.Context, before, after port.Reception) error {
	p := &part{key: keyOf(reception, sortNote)}
	for _, change := range []struct {
		name          string
		before, after time.Time
	}{{noteSince, before.Since, after.Since}, {noteAt, before.At, after.At}} {
		if change.before.IsZero() {
			p.absent(change.name)
		} else {
			p.where(change.name, "=", moment(change.before))
		}
		if change.after.IsZero() {
			p.drop(change.name)
		} else {
			p.set(change.name, moment(change.after))
		}
	}
	if before.Crowded {
		p.present(noteCrowded)
	} else {
		p.absent(noteCrowded)
	}
	if after.Crowded {
		p.set(noteCrowded, number(1))
	} else {
		p.drop(noteCrowded)
	}
	err := s.send(ctx, []*part{p})
	if reasons := refused(err); reasons != nil {
		if receptionOf(reasons[0].Item) == after { // an earlier try was applied
			return nil
		}
		return port.ErrConflict
	}
	return wrap(err, "store", "the reception of heartbeats")
}
