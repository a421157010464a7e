package dynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// troubled is an empty database that refuses its first calls.
type troubled struct {
	dynamo.API
	refusals []error
	calls    int
	tokens   map[string]bool
}

func (d *troubled) answer() error {
	d.calls++
	if d.calls <= len(d.refusals) {
		return d.refusals[d.calls-1]
	}
	return nil
}

func (d *troubled) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{}, d.answer()
}

func (d *troubled) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	d.tokens[aws.ToString(in.ClientRequestToken)] = true
	return &dynamodb.TransactWriteItemsOutput{}, d.answer()
}

func setup(t *testing.T, refusals ...error) (*troubled, *dynamo.Store) {
	t.Helper()
	db := &troubled{refusals: refusals, tokens: map[string]bool{}}
	s, err := dynamo.New(db, dynamo.Config{Table: "sortie", Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	return db, s
}

func times(n int, err error) []error {
	all := make([]error, n)
	for i := range all {
		all[i] = err
	}
	return all
}

var (
	throttled = &types.ProvisionedThroughputExceededException{Message: aws.String("The level of configured throughput was exceeded")}
	ref       = run.Ref{Tenant: "acme", ID: "a"}
)

func TestThrottlingIsRetried(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"throughput":              throttled,
		"requests":                &types.RequestLimitExceeded{},
		"server error":            &types.InternalServerError{},
		"transaction conflict":    &types.TransactionConflictException{},
		"transaction in progress": &types.TransactionInProgressException{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, s := setup(t, times(5, refusal)...)
				if _, err := s.Load(t.Context(), ref); !errors.Is(err, port.ErrNotFound) || db.calls != 6 {
					t.Fatalf("after %d calls: got %v", db.calls, err)
				}
			})
		})
	}
}

// TestConflictRetryKeepsItsToken checks that a retry has the same request
// token, so that a transaction whose answer was lost is applied once.
func TestConflictRetryKeepsItsToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		met := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{
			{Code: aws.String("None")}, {Code: aws.String("TransactionConflict")},
		}}
		db, s := setup(t, times(4, met)...)
		d := run.New(run.Run{Tenant: "acme", ID: "a", TaskID: "a"}, time.Now())
		_, err := s.Create(t.Context(), port.WriteOf(d), &port.IdempotencyKey{Key: "k", Digest: "d"})
		if err != nil || db.calls != 5 || len(db.tokens) != 1 || db.tokens[""] {
			t.Fatalf("after %d calls with the tokens %v: got %v", db.calls, db.tokens, err)
		}
	})
}

func TestRetriesEndAtTheDeadline(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ deadline, at time.Duration }{
		"deadline of the caller": {3 * time.Second, 3 * time.Second},
		"late deadline":          {time.Hour, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, s := setup(t, times(10_000, throttled)...)
				ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
				defer cancel()
				began := time.Now()
				_, err := s.Load(ctx, ref)
				if !fault.Is(err, fault.Unavailable) || !errors.As(err, new(*types.ProvisionedThroughputExceededException)) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(began); took > test.at || took < test.at/2 || db.calls < 5 {
					t.Errorf("got the error after %s and %d calls, want nearly %s", took, db.calls, test.at)
				}
			})
		})
	}
}

func TestPermanentErrorIsNotRetried(t *testing.T) {
	t.Parallel()
	db, s := setup(t, times(9, &types.ResourceNotFoundException{Message: aws.String("Requested resource not found")})...)
	if _, err := s.Load(t.Context(), ref); !fault.Is(err, fault.Unavailable) || db.calls != 1 {
		t.Fatalf("after %d calls: got %v", db.calls, err)
	}
}

// TestFaultsHideAWSMessages sends errors of AWS through the whole SDK.
func TestFaultsHideAWSMessages(t *testing.T) {
	t.Parallel()
	refuse := func(code string) awstest.Call {
		return func(json.RawMessage) (any, error) {
			return nil, awstest.Refusal{Code: "com.amazonaws.dynamodb.v20120810#" + code, Message: "User: arn:aws:iam::123456789012:user/x is not allowed"}
		}
	}
	cfg := awstest.Serve(t, map[string]awstest.Call{
		"GetItem": refuse("AccessDeniedException"), "PutItem": refuse("ValidationException"),
		"UpdateItem": refuse("ResourceNotFoundException"), "Query": refuse("ValidationException"),
		"Scan": refuse("AccessDeniedException"),
	})
	s, err := dynamo.Open(cfg, dynamo.Config{Table: "sortie", Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	d := run.New(run.Run{Tenant: "acme", ID: "a", TaskID: "a"}, time.Now())
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Load":      func() error { _, err := s.Load(ctx, ref); return err },
		"Create":    func() error { _, err := s.Create(ctx, port.WriteOf(d), nil); return err },
		"Commit":    func() error { return s.Commit(ctx, port.WriteOf(d)) },
		"Heartbeat": func() error { _, err := s.Heartbeat(ctx, ref, run.Heartbeat{}); return err },
		"List":      func() error { _, _, err := s.List(ctx, "acme", port.Page{Limit: 1}); return err },
		"Due":       func() error { _, _, err := s.Due(ctx, time.Now(), "", 1); return err },
		"Pools":     func() error { _, err := s.Pools(ctx); return err },
		"Reconcile": func() error { _, err := s.Reconcile(ctx, "acme", "p"); return err },
	} {
		err := call()
		f := fault.Of(err)
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: got %v, want an Unavailable fault", name, err)
			continue
		}
		for _, word := range []string{"arn:", "Exception", "api error", "operation error", "https response"} {
			if strings.Contains(f.Message, word) {
				t.Errorf("%s: got message %q", name, f.Message)
			}
		}
	}
}

func TestConfigNamesAllProblems(t *testing.T) {
	t.Parallel()
	_, err := dynamo.New(nil, dynamo.Config{TTLGrace: -1})
	if err == nil {
		t.Fatal("got success")
	}
	for _, word := range []string{"table", "clock", "grace"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("got an error without the %s: %v", word, err)
		}
	}
}

// sparing is a database whose first batches leave all keys unprocessed.
type sparing struct {
	troubled
	spares int
}

func (d *sparing) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	if d.calls++; d.calls <= d.spares {
		return &dynamodb.BatchGetItemOutput{UnprocessedKeys: in.RequestItems}, nil
	}
	return &dynamodb.BatchGetItemOutput{}, nil
}

// TestThrottledBatchIsRetriedWithPauses: DynamoDB reports a throttled batch as
// unprocessed keys, not as an error.
func TestThrottledBatchIsRetriedWithPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &sparing{troubled{}, 5}
		s, err := dynamo.New(db, dynamo.Config{Table: "sortie", Clock: clock.System{}})
		if err != nil {
			t.Fatal(err)
		}
		w := port.WriteOf(run.New(run.Run{Tenant: "acme", ID: "a", TaskID: "a"}, time.Now()))
		w.Lease = run.LeaseRelease // the run is read first, in a batch
		began := time.Now()
		if err := s.Commit(t.Context(), w); !errors.Is(err, port.ErrConflict) || db.calls != 6 {
			t.Errorf("after %d calls: got %v", db.calls, err)
		}
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("got five retries within %s, want pauses between them", took)
		}
	})
}
