package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Upload is an output as the worker reported it.
type Upload struct {
	Key      string `json:"key"`
	FileName string `json:"fileName"`
	// Size is in bytes, or SizeUnknown.
	Size int64 `json:"size"`
	// Digest is "sha256:" and the hexadecimal SHA-256 of the bytes; empty if unknown. The
	// digest of an Output was verified.
	Digest string `json:"digest,omitempty"`
}

// SizeUnknown is the size of an output whose worker did not report one.
const SizeUnknown = -1

// HasSize reports whether an object of this size can be the upload.
func (u Upload) HasSize(size int64) bool { return u.Size == size || u.Size == SizeUnknown }

// Output is the accepted output.
type Output struct {
	Upload
	ETag string `json:"etag"`
	// Text is the content of a text of at most limit.OutputText that the run passes on, without
	// trailing line ends; nil otherwise.
	Text       *string   `json:"text,omitempty"`
	AcceptedAt time.Time `json:"acceptedAt"`
	// ExpiresAt is when the output is no longer served; zero while the run is held.
	ExpiresAt time.Time `json:"expiresAt"`
	// DeleteRequestedAt is when a client deleted the output; zero if no client did.
	DeleteRequestedAt time.Time `json:"deleteRequestedAt,omitzero"`
	// DeletedAt is when the bytes were deleted; zero until then.
	DeletedAt time.Time `json:"deletedAt,omitzero"`
}

// Expired reports whether the output is no longer served.
func (o Output) Expired(now time.Time) bool { return !o.ExpiresAt.IsZero() && !o.ExpiresAt.After(now) }

// ServesOutput reports whether clients may read the output of the run: it has succeeded, or its
// children have ended, whatever their results.
func (r Run) ServesOutput() bool {
	if r.FansOut() {
		return r.State.Terminal() && r.Output != nil
	}
	return r.State == Completed && !r.Skipped
}

// BytesLeft reports whether bytes of the run are stored: its output, its input, logs, or
// uploads of a lost attempt. It is true for a held run, whose record must not be purged.
func (r Run) BytesLeft() bool {
	return r.Output != nil && r.Output.DeletedAt.IsZero() || r.RecordBytesLeft() || r.Attempt.UploadsLeft || r.Held
}

// RecordBytesLeft reports whether bytes are stored that are kept as long as the record: the
// input, logs, or the description of the runs that the run came after.
func (r Run) RecordBytesLeft() bool {
	return r.LogsLeft() || r.Input() != nil || r.Attempt.Number > 0 && r.StoresUpstream()
}

// LogsLeft reports whether logs of the run are stored.
func (r Run) LogsLeft() bool { return len(r.Logs) > 0 || r.Attempt.SendsOutput }

// Input returns the stored standard input of the run's program, or the request of an inference run
// that is an object; nil without one, or after its deletion.
func (r Run) Input() *spec.Input {
	if input := r.Work.StoredInput(); input != nil && !input.Deleted {
		return input
	}
	return nil
}

// BytesDue returns when stored bytes of the run must be deleted next: the output and the logs
// when they expire, the input when the record expires, and the uploads of a lost attempt at
// once. For a held run it is when its retention is checked. Failures to delete delay it. It is
// zero without stored bytes, or if the time is not known yet.
func (r Run) BytesDue() time.Time {
	var due time.Time
	if r.Output != nil && r.Output.DeletedAt.IsZero() {
		due = r.Output.ExpiresAt
	}
	if r.RecordBytesLeft() && !r.Held && (due.IsZero() || r.ExpiresAt.Before(due)) {
		due = r.ExpiresAt
	}
	if r.LogsLeft() && !r.LogsExpireAt.IsZero() {
		due = sooner(due, r.LogsExpireAt)
	}
	if r.Held {
		due = sooner(due, r.firstCheck())
	}
	if r.Attempt.UploadsLeft {
		due = r.EndedAt
	}
	if due.IsZero() {
		return due
	}
	return later(due, r.Deletion.NotBefore)
}

// Deletion counts the consecutive failures to delete stored bytes of a run.
type Deletion struct {
	Failures int `json:"failures,omitempty"`
	// NotBefore is when the next try is due; zero without a failure.
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// OutputExpiring moves the expiry of the output to an earlier time. A later one changes
// nothing. A download does not change the output of a held run or with Policy.KeepDownloaded.
type OutputExpiring struct {
	At time.Time
	// Deleted: a client deletes the output.
	Deleted bool
	Message string
	// By is the client that reads or deletes the output.
	By Actor
}

func (f OutputExpiring) apply(d *draft) error {
	held := d.Policy.KeepDownloaded || d.Held
	if d.Output == nil || held && !f.Deleted || !d.Output.ExpiresAt.IsZero() && !f.At.Before(d.Output.ExpiresAt) {
		return nil
	}
	output := *d.Output
	output.ExpiresAt = f.At.UTC()
	if f.Deleted {
		output.DeleteRequestedAt, d.Deletion = d.now, Deletion{}
	}
	d.Output = &output
	d.emit(Event{Type: EventOutputExpiring, Message: f.Message})
	return nil
}

// OutputDeleted: the bytes of the output were deleted.
type OutputDeleted struct{}

func (OutputDeleted) apply(d *draft) error {
	if d.Output == nil || !d.Output.DeletedAt.IsZero() {
		return nil
	}
	output := *d.Output
	output.DeletedAt = d.now
	d.Output, d.Deletion = &output, Deletion{}
	d.emit(Event{Type: EventOutputDeleted})
	return nil
}

// UploadsCleared: the uploads of a lost attempt were deleted, including their accepted copies.
type UploadsCleared struct{}

func (UploadsCleared) apply(d *draft) error {
	if d.Attempt.UploadsLeft {
		d.Attempt.UploadsLeft, d.Deletion, d.changed = false, Deletion{}, true
	}
	return nil
}

// RecordBytesDeleted: the input and the logs of the run were deleted.
type RecordBytesDeleted struct{}

func (RecordBytesDeleted) apply(d *draft) error {
	if !d.RecordBytesLeft() {
		return nil
	}
	if input := d.Input(); input != nil {
		d.Work = d.Work.WithInput(&spec.Input{Key: input.Key, Size: input.Size, Deleted: true})
	}
	if d.StoresUpstream() {
		place := *d.Graph
		place.Upstream, d.Graph = nil, &place
	}
	d.Logs, d.Attempt.SendsOutput, d.Deletion, d.changed = nil, false, Deletion{}, true
	return nil
}

// LogsDeleted: the logs of the run were deleted before its record expired.
type LogsDeleted struct{}

func (LogsDeleted) apply(d *draft) error {
	if d.LogsLeft() {
		d.Logs, d.Attempt.SendsOutput, d.Deletion, d.changed = nil, false, Deletion{}, true
	}
	return nil
}

// DeletionFailed: the sweep could not delete stored bytes that are due. The next try is
// delayed, longer after each failure, so that other runs get their turn. It emits no event,
// because the run did nothing.
type DeletionFailed struct{}

func (DeletionFailed) apply(d *draft) error {
	if due := d.BytesDue(); due.IsZero() || d.now.Before(due) {
		return nil
	}
	d.Deletion.Failures++
	d.Deletion.NotBefore = d.now.Add(repairBackoff.Delay(d.Deletion.Failures - 1))
	d.changed = true
	return nil
}
