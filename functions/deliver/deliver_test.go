package deliver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/deliver"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
)

// batch returns a batch in the form in which SQS delivers it to Lambda (Using Lambda with
// Amazon SQS).
func batch(t *testing.T, bodies ...string) (b deliver.Batch) {
	t.Helper()
	var records []map[string]any
	for i, body := range bodies {
		records = append(records, map[string]any{
			"messageId": fmt.Sprint("m", i), "receiptHandle": "h", "body": body, "attributes": map[string]string{"ApproximateReceiveCount": "1"},
			"messageAttributes": map[string]any{}, "md5OfBody": "x", "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:us-east-1:1:q", "awsRegion": "us-east-1",
		})
	}
	document, err := json.Marshal(map[string]any{"Records": records})
	if err == nil {
		err = json.Unmarshal(document, &b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wake(id string) string { return fmt.Sprintf(`{"tenant":"acme","webhook":%q}`, id) }

func TestFailedMessagesAreReturned(t *testing.T) {
	t.Parallel()
	good, bad := webhook.ID(time.Now(), "good"), webhook.ID(time.Now(), "bad")
	var mu sync.Mutex
	var delivered, reported []string
	handle := deliver.Handler(func(_ context.Context, ref webhook.Ref) error {
		mu.Lock()
		defer mu.Unlock()
		delivered = append(delivered, ref.Tenant+"/"+ref.ID)
		if ref.ID == bad {
			return errors.New("the table does not respond")
		}
		return nil
	}, func(_ context.Context, id string, _ error) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, id)
	})
	answer, err := handle(t.Context(), batch(t, wake(good), wake(bad), "not JSON", `{"tenant":"acme","webhook":"x"}`, wake(good)))
	if err != nil || len(answer.Failures) != 1 || answer.Failures[0].ID != "m1" {
		t.Errorf("got %+v, %v, want the second message again", answer, err)
	}
	slices.Sort(delivered)
	slices.Sort(reported)
	want := []string{"acme/" + bad, "acme/" + good} // once, with two messages
	slices.Sort(want)
	if !slices.Equal(delivered, want) || !slices.Equal(reported, []string{"m1", "m2", "m3"}) {
		t.Errorf("got %v delivered and %v reported, want %v", delivered, reported, want)
	}
	document, err := json.Marshal(answer)
	if want := `{"batchItemFailures":[{"itemIdentifier":"m1"}]}`; err != nil || string(document) != want {
		t.Errorf("got %s, want %s", document, want)
	}
	if empty, err := handle(t.Context(), deliver.Batch{}); err != nil || empty.Failures == nil {
		t.Errorf("got %+v, %v, want an empty list: without one, Lambda takes the batch as delivered", empty, err)
	}
}

// TestSlowWebhookDelaysNoOther blocks one webhook of a batch until the other is delivered.
func TestSlowWebhookDelaysNoOther(t *testing.T) {
	t.Parallel()
	slow, fast := webhook.ID(time.Now(), "slow"), webhook.ID(time.Now(), "fast")
	done := make(chan struct{})
	handle := deliver.Handler(func(ctx context.Context, ref webhook.Ref) error {
		if ref.ID == fast {
			close(done)
			return nil
		}
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, func(_ context.Context, id string, err error) { t.Errorf("message %s: %v", id, err) })
	if answer, err := handle(t.Context(), batch(t, wake(slow), wake(fast))); err != nil || len(answer.Failures) != 0 {
		t.Errorf("got %+v, %v, want both delivered", answer, err)
	}
}
