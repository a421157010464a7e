package dynamo

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/cost/units"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

func stores(t *testing.T) (packed, plain *Store) {
	t.Helper()
	var all [2]*Store
	for i := range all {
		var err error
		if all[i], err = New(nil, Config{Table: "sortie", Clock: clock.System{}, PlainItems: i == 1}); err != nil {
			t.Fatal(err)
		}
	}
	return all[0], all[1]
}

// exportCommits are the writes of an export that succeeds, in their order.
func exportCommits(t *testing.T) []port.Write {
	t.Helper()
	now := time.Date(2026, 11, 21, 9, 0, 0, 123_456_789, time.UTC)
	const id = "export_mods_1795251600000_3f1c9a7b"
	d := run.New(run.Run{
		Tenant: "default", ID: id, TaskID: id, Workspace: "main", CorrelationID: "req-4c5d7a9b-1f2e-4d3c-8b6a-90817263",
		Work: spec.Work{
			Kind: "export", Format: "mods", PI: "01K9XVBAQZF9EHDRXGBEADTZYY", Image: "registry.fly.io/exports:latest",
			Options: []byte(`{"recursive":true,"maxDepth":10,"parallelBatchSize":10,"includeOcr":true,"cheimarrosMode":"full"}`),
		},
		Policy: spec.Policy{
			StartTimeout: 10 * time.Minute, TimeLimit: time.Hour, HeartbeatInterval: 30 * time.Second,
			HeartbeatTimeout: 90 * time.Second, CancelGrace: 30 * time.Second, QueueTimeout: time.Hour,
			OutputRetention: 24 * time.Hour, RecordRetention: 7 * 24 * time.Hour,
			Retry: spec.Retry{MaxAttempts: 3, MaxFurtherStarts: 3, InitialDelay: 2 * time.Second, Multiplier: 2, MaxDelay: time.Minute},
		},
	}, now)
	writes := []port.Write{port.WriteOf(d)}
	token := func(n byte) string { // 500 incompressible characters, as in task tokens of Step Functions
		var random []byte
		for i := range byte(12) {
			sum := sha256.Sum256([]byte{n, i})
			random = append(random, sum[:]...)
		}
		return base64.StdEncoding.EncodeToString(random)[:500]
	}
	upload := run.Upload{Key: "exports/" + id + "/output.xml", FileName: "output.xml", Size: 1 << 20}
	for i, fact := range []run.Fact{
		run.Admitted{Pool: "default", Limit: 10},
		run.TokenStored{Step: run.StepContainerCreating, Generation: 1, Token: token(1)},
		run.MachineCreated{Attempt: 1, Machine: platform.Machine{Runner: "fly", App: "exports", ID: "148ed123abcd89"}},
		run.MachineRunning{Attempt: 1},
		run.TokenStored{Step: run.StepRunning, Generation: 2, Token: token(2)},
		run.Reported{Attempt: 1, Report: run.Report{Digest: fmt.Sprintf("%x", sha256.Sum256(nil)), Success: true, Upload: &upload}},
		run.Settled{Output: &run.Output{Upload: upload, ETag: `"d41d8cd98f00b204e9800998ecf8427e"`}},
	} {
		var err error
		r := d.Run
		r.Version++
		if d, err = run.Decide(r, fact, now.Add(time.Duration(i+1)*time.Second)); err != nil {
			t.Fatal(err)
		}
		writes = append(writes, port.WriteOf(d))
	}
	return writes
}

// TestPlainAndPackedItemsAreRead stores each commit of an export in both forms
// and appends the events of one form to those of the other.
func TestPlainAndPackedItemsAreRead(t *testing.T) {
	t.Parallel()
	packed, plain := stores(t)
	var events []run.Event
	var stored []types.AttributeValue
	for i, w := range exportCommits(t) {
		for j, s := range []*Store{packed, plain} {
			c, err := s.changeOf(w, w.Run.Version+1)
			if err != nil {
				t.Fatal(err)
			}
			is := c.attributes(false)
			if _, text := is[attrDoc].(*types.AttributeValueMemberS); text != (s == plain) {
				t.Fatalf("commit %d: got record of type %T", i, is[attrDoc])
			}
			got, err := recordOf(is)
			if err != nil {
				t.Fatal(err)
			}
			want := w.Run
			want.Version++
			if diff := cmp.Diff(want, got.Run); diff != "" {
				t.Errorf("commit %d: (-want +got)\n%s", i, diff)
			}
			if i%2 == j {
				stored = append(stored, list(c.events).(*types.AttributeValueMemberL).Value...)
				events = append(events, w.Events...)
			}
		}
	}
	got, err := eventsOf(item{attrEvents: &types.AttributeValueMemberL{Value: stored}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(events, got); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
}

// TestCompressionSavesWriteUnits checks the numbers of the package comment.
func TestCompressionSavesWriteUnits(t *testing.T) {
	t.Parallel()
	measure := func(s *Store) (wru, bytes int) {
		var events [][]byte
		for _, w := range exportCommits(t) {
			c, err := s.changeOf(w, w.Run.Version+1)
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, c.events...)
			is := c.attributes(false)
			maps.Copy(is, runKey(w.Run.Ref()))
			is[attrEvents] = list(events)
			size := 0
			for name, value := range is {
				size += len(name) + sizeOf(value)
			}
			wru += int(units.Kilobytes(is, sizeOf))
			bytes += size
		}
		return wru, bytes
	}
	packed, plain := stores(t)
	wru, bytes := measure(packed)
	plainWRU, plainBytes := measure(plain)
	t.Logf("packed %d WRU, %d bytes; plain %d WRU, %d bytes", wru, bytes, plainWRU, plainBytes)
	if wru > 10 || plainWRU < 2*wru {
		t.Errorf("got %d write units packed and %d plain, want at most 10 and at least twice as many", wru, plainWRU)
	}
}

// sizeOf returns the size of a value as DynamoDB counts it.
func sizeOf(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return units.Number(v.Value)
	case *types.AttributeValueMemberL:
		size := 3
		for _, each := range v.Value {
			size += 1 + sizeOf(each)
		}
		return size
	}
	return 0
}
