package dynamo_test

import (
	crypto "crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// export returns a run as the API creates it.
func export(id string) run.Run {
	return run.Run{
		Tenant: "default", ID: id, TaskID: id, Workspace: "default", CorrelationID: "0f8fad5b-d9cb-469f-a165-70867728950e",
		Work: spec.Work{
			Kind: "export", Format: "mods", PI: "01K9XVBAQZF9EHDRXGBEADTZYY", Image: "registry.fly.io/arke-mods-export-worker:latest",
			Options: json.RawMessage(`{"recursive":false,"maxDepth":5,"parallelBatchSize":10,"includeOcr":true,"cheimarrosMode":"full"}`),
		},
		Policy: spec.Policy{
			StartTimeout: 10 * time.Minute, TimeLimit: time.Hour, HeartbeatInterval: 30 * time.Second,
			HeartbeatTimeout: 90 * time.Second, CancelGrace: 30 * time.Second, QueueTimeout: 24 * time.Hour,
			OutputRetention: 24 * time.Hour, RecordRetention: 7 * 24 * time.Hour,
			Retry: spec.Retry{MaxAttempts: 3, MaxFurtherStarts: 3, InitialDelay: 2 * time.Second, Multiplier: 2, MaxDelay: time.Minute, Jitter: 0.25},
		},
	}
}

// token returns random text of the length of a Step Functions task token.
func token() string {
	raw := make([]byte, 480)
	_, _ = crypto.Read(raw)
	return base64.StdEncoding.EncodeToString(raw)
}

// commit is one commit of an export.
type commit struct {
	name      string
	fact      run.Fact
	heartbeat func(now time.Time) run.HeartbeatChange
}

func exportCommits() []commit {
	upload := run.Upload{Key: "exports/export_mods_1772352000000_9f3a/01K9XVBAQZF9EHDRXGBEADTZYY.mods.xml", FileName: "01K9XVBAQZF9EHDRXGBEADTZYY.mods.xml", Size: 1 << 20}
	second := token()
	return []commit{
		{name: "admitted, takes its slot", fact: run.Admitted{Pool: "default", Limit: 10}},
		{name: "token of ContainerCreating", fact: run.TokenStored{Step: run.StepContainerCreating, Generation: 1, Token: token()}},
		{name: "machine created", fact: run.MachineCreated{Attempt: 1, Machine: platform.Machine{Runner: "fly", App: "arke-mods-export-worker", ID: "3d8d9014b32e89"}}},
		{name: "started, opens its heartbeats", fact: run.MachineRunning{Attempt: 1}, heartbeat: func(now time.Time) run.HeartbeatChange {
			return run.HeartbeatChange{Open: &run.Heartbeat{Attempt: 1, WorkerID: "3d8d9014b32e89", At: now}}
		}},
		{name: "token of Running", fact: run.TokenStored{Step: run.StepRunning, Generation: 2, Token: second}, heartbeat: func(time.Time) run.HeartbeatChange {
			return run.HeartbeatChange{Token: &second, Generation: 2}
		}},
		{name: "completed, closes its heartbeats", fact: run.Reported{Attempt: 1, Report: run.Report{
			Digest: "4c1055bf182d25dce3eaffbd6454eaf6", Success: true, Upload: &upload, Metrics: json.RawMessage(`{"entities":72,"durationMs":48211}`),
		}}, heartbeat: func(time.Time) run.HeartbeatChange { return run.HeartbeatChange{Close: true} }},
		{name: "settled, releases its slot", fact: run.Settled{Output: &run.Output{
			Upload: upload, ETag: `"d41d8cd98f00b204e9800998ecf8427e"`,
		}}},
		{name: "downloaded", fact: run.OutputExpiring{Message: "downloaded"}},
		{name: "output deleted", fact: run.OutputDeleted{}},
	}
}

// TestPlainExportCostsAtMostSeventyWriteUnits makes the writes of an export of
// one minute in a limited pool: with an idempotency key, two heartbeats of its
// worker and one download of its output.
func TestPlainExportCostsAtMostSeventyWriteUnits(t *testing.T) {
	t.Parallel()
	ctx, cfg := t.Context(), database(t)
	spent := &meter{API: dynamodb.NewFromConfig(cfg), T: t, table: table(t, cfg)}
	hour := time.Now().UTC().Truncate(time.Hour) // so that no start limit crosses an hour
	s, err := dynamo.New(spent, dynamo.Config{Table: spent.table, Clock: clock.NewVirtual(hour), Consumed: spent.consumed})
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	sumW, sumR := 0.0, 0.0
	row := func(name string) {
		wru, rru := spent.take()
		sumW, sumR = sumW+wru, sumR+rru
		fmt.Fprintf(&table, "%-34s %3.0f WRU %4.1f RRU\n", name, wru, rru)
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	life := func(id string, row func(string)) {
		now := hour
		d := run.New(export(id), now)
		_, err := s.Create(ctx, port.WriteOf(d), &port.IdempotencyKey{Key: "0f8fad5b-" + id, Digest: strings.Repeat("d", 64)})
		ok(err)
		row("accepted, with its key")
		for _, c := range exportCommits() {
			now = now.Add(8*time.Second + rand.N(time.Second))
			r, err := s.Load(ctx, d.Run.Ref())
			ok(err)
			d, err = run.Decide(r, c.fact, now)
			ok(err)
			if c.heartbeat != nil {
				d.Heartbeat = c.heartbeat(now)
			}
			if d.Heartbeat.Close { // their number goes into the record
				_, err := s.LastHeartbeat(ctx, r.Ref())
				ok(err)
			}
			ok(s.Commit(ctx, port.WriteOf(d)))
			row(c.name)
			if c.heartbeat != nil && d.Heartbeat.Token != nil {
				for range 2 {
					_, err = s.Heartbeat(ctx, r.Ref(), run.Heartbeat{Attempt: 1, WorkerID: "3d8d9014b32e89", At: now, Progress: new(50), Message: "half of it"})
					ok(err)
					row("heartbeat")
				}
			}
		}
	}
	life("export_mods_1772352000000_first", func(string) { spent.take() }) // registers the pool
	life("export_mods_1772352000000_9f3a4b2c", row)
	fmt.Fprintf(&table, "%-34s %3.0f WRU %4.1f RRU", "in total", sumW, sumR)
	t.Logf("what an export costs:\n%s", table.String())
	if sumW > 70 {
		t.Error("got more than 70 write units")
	}
}

// TestLimitedPoolGrantsAHundredPerSecond: all grants of a pool write under one
// partition key, which DynamoDB limits to 1,000 units per second. A hundred
// grants must not cost more.
func TestLimitedPoolGrantsAHundredPerSecond(t *testing.T) {
	t.Parallel()
	ctx, cfg := t.Context(), database(t)
	spent := &meter{API: dynamodb.NewFromConfig(cfg), T: t, table: table(t, cfg)}
	s, err := dynamo.New(spent, dynamo.Config{Table: spent.table, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	decided := func(r run.Run, f run.Fact) port.Write {
		t.Helper()
		d, err := run.Decide(r, f, time.Now().UTC())
		if err != nil || !d.Changed {
			t.Fatalf("%T in %s: %v", f, r.State, err)
		}
		return port.WriteOf(d)
	}
	commit := func(writes ...port.Write) {
		t.Helper()
		if err := s.Commit(ctx, writes...); err != nil {
			t.Fatal(err)
		}
	}
	made := func(id string) run.Run {
		t.Helper()
		d := run.New(export(id), time.Now().UTC())
		if _, err := s.Create(ctx, port.WriteOf(d), nil); err != nil {
			t.Fatal(err)
		}
		r, err := s.Load(ctx, d.Run.Ref())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	holder, waiter := made("holder"), made("waiter")
	commit(decided(holder, run.Admitted{Pool: "p", Limit: 1}))
	commit(decided(waiter, run.Enqueued{Pool: "p", Limit: 1}))
	now := func(r run.Run) run.Run {
		t.Helper()
		r, err := s.Load(ctx, r.Ref())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	holder, waiter = now(holder), now(waiter)
	holder.Slot.State, holder.Slot.Since = "", time.Time{}
	spent.keys = map[string]float64{}
	commit(port.Write{Run: holder, Lease: run.LeaseRelease}, decided(waiter, run.Granted{Limit: 1}))
	const second, grants = 1_000, 100
	for key, units := range spent.keys {
		t.Logf("%s: %v write units", key, units)
		if units > second/grants {
			t.Errorf("%s: got %v write units per grant, %v grants per second", key, units, math.Floor(second/units))
		}
	}
	if len(spent.keys) < 3 {
		t.Errorf("got writes to %v, want two runs and their pool", spent.keys)
	}
}
