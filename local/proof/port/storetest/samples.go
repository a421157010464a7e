package storetest

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// century is a retention that does not end during a test.
const century = 100 * 365 * 24 * time.Hour

// sample returns a valid new run whose record does not expire.
func sample(tenant, id string) run.Run {
	return run.Run{
		Tenant: tenant, ID: id, TaskID: "task of " + id, BatchID: "batch-1", CorrelationID: "req-" + id,
		Work: spec.Work{
			Kind: "export", Format: "mods", PI: "01K9XVBAQZF9EHDRXGBEADTZYY", Image: "exports:latest",
			Options: json.RawMessage(`{"note":"<a & b> \"ü\" 漢字","maxDepth":10,"recursive":true}`),
		},
		Policy: spec.Policy{
			StartTimeout: 10 * time.Minute, TimeLimit: time.Hour,
			HeartbeatInterval: 30 * time.Second, HeartbeatTimeout: 90 * time.Second,
			CancelGrace: 30 * time.Second, QueueTimeout: time.Hour,
			OutputRetention: 24 * time.Hour, RecordRetention: century,
			Retry: spec.Retry{
				MaxAttempts: 3, MaxFurtherStarts: 3, InitialDelay: 2 * time.Second, Multiplier: 2,
				MaxDelay: time.Minute, Jitter: 0.25,
			},
		},
	}
}

// shortLived returns a sample whose record expires one hour after its end, in 2001.
func shortLived(tenant, id string) run.Run {
	r := sample(tenant, id)
	r.Policy.RecordRetention = time.Hour
	return r
}

// startFacts returns the facts that move an admitted run to Running, on a machine.
func startFacts(machine string) []run.Fact {
	return []run.Fact{
		run.TokenStored{Step: run.StepContainerCreating, Generation: 1, Token: "token 1"},
		run.MachineCreated{Attempt: 1, Machine: platform.Machine{Runner: "fly", App: "app", ID: machine}},
		run.MachineRunning{Attempt: 1},
		run.TokenStored{Step: run.StepRunning, Generation: 2, Token: "token 2"},
	}
}

// successFacts returns the facts that move a running run to its end with an output.
func successFacts() []run.Fact {
	upload := run.Upload{Key: "exports/x/out.xml", FileName: "out.xml", Size: 1 << 40}
	return []run.Fact{
		run.Reported{Attempt: 1, Report: run.Report{
			Digest: "d1", Success: true, Upload: &upload, Metrics: json.RawMessage(`{"entities":72}`),
		}},
		run.Settled{Output: &run.Output{Upload: upload, ETag: `"etag"`}},
	}
}

// lostFacts returns the facts of an attempt that ends without a result and is retried.
func lostFacts() []run.Fact {
	return []run.Fact{
		run.MachineGone{Attempt: 1, Exit: &run.Exit{Code: 137, Signal: 9}},
		run.Settled{Rand: 0.5},
	}
}

func admitted(pool string, limit int) run.Fact { return run.Admitted{Pool: pool, Limit: limit} }

func granted(limit int) run.Fact { return run.Granted{Limit: limit} }

func enqueued(pool string, limit int) run.Fact { return run.Enqueued{Pool: pool, Limit: limit} }

// cancel is the shortest way to a final state. It takes effect immediately without a machine;
// after an intent, the attempt must be settled first.
func cancel() run.Fact {
	return run.CancelRequested{By: "token:abc123", Reason: "no longer wanted"}
}

func isNotFound(err error) bool { return errors.Is(err, port.ErrNotFound) }

func isConflict(err error) bool { return errors.Is(err, port.ErrConflict) }

func asConflict(err error) (*port.Conflict, bool) {
	return errors.AsType[*port.Conflict](err)
}

func isNoSlot(err error) bool { return errors.Is(err, port.ErrNoSlot) }

// isInvalid reports whether err is an InvalidRequest fault of the field.
func isInvalid(err error, field string) bool {
	f, ok := errors.AsType[*fault.Fault](err)
	return ok && f.Code == fault.InvalidRequest && f.Field == field
}

func idsOf(runs []run.Run) []string {
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.ID
	}
	return ids
}

func idsOfRefs(refs []run.Ref) []string {
	ids := make([]string, len(refs))
	for i, ref := range refs {
		ids[i] = ref.ID
	}
	return ids
}
