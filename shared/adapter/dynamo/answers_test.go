package dynamo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/local/proof/cost/units"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

func openAnswers(t *testing.T, plain bool) (h porttest.AnswersHarness, name string) {
	t.Helper()
	cfg, now := database(t), &ahead{}
	name = table(t, cfg)
	open := func() *dynamo.Answers {
		s, err := dynamo.Open(cfg, dynamo.Config{Table: name, Clock: now, PlainItems: plain})
		if err != nil {
			t.Fatal(err)
		}
		a, err := dynamo.NewAnswers(s, dynamo.FeedConfig{Retention: time.Hour, WaitInterval: 5 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	return porttest.AnswersHarness{AnswerFeed: open(), Other: open(), Retention: time.Hour, Now: now.Now, Advance: now.Advance}, name
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]bool{"packed": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			porttest.Answers(t, func(t *testing.T) porttest.AnswersHarness {
				t.Helper()
				h, _ := openAnswers(t, plain)
				return h
			})
		})
	}
}

// TestAnswerIsOneItemForEachBatch checks the cost of an append: one item below a kilobyte, with
// an expiry and in no index.
func TestAnswerIsOneItemForEachBatch(t *testing.T) {
	t.Parallel()
	cfg := database(t)
	name := table(t, cfg)
	s, err := dynamo.Open(cfg, dynamo.Config{Table: name, Clock: &ahead{}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := dynamo.NewAnswers(s, dynamo.FeedConfig{Retention: time.Hour, WaitInterval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	const stream, batches = "tasks/acme/inf_01K9XVBAQZF9EHDRXGBEADTZYY", 5
	state := `{"started":true,"attempt":1,"pieces":480,"ended":false}`
	for i := range batches { // eight tokens in 300 ms
		record := port.FeedRecord{
			ID: fmt.Sprintf("dispatcher-0011223344556677.sortie-acme-inf-01k9xvbaqzf9ehdrxgbeadtzyy-1.%d", i+1), At: time.Now(),
			Data: []byte(`{"attempt":1,"first":480,"tokens":["` + strings.Repeat(` token","`, 7) + ` token"]}`),
		}
		if _, err := a.Append(t.Context(), stream, port.Batch{After: int64(i), Records: []port.FeedRecord{record}, State: []byte(state)}); err != nil {
			t.Fatal(err)
		}
	}
	items := stored(t, dynamodb.NewFromConfig(cfg), name, "#answer#"+stream)
	if len(items) != batches {
		t.Fatalf("got %d items for %d batches, want one for each", len(items), batches)
	}
	for _, is := range items {
		if is[schema.TTL] == nil || is["list"] != nil || is["born"] != nil {
			t.Errorf("got the item %v, want one that expires and is in no index", is)
		}
		if kb := units.Kilobytes(is, size); kb > 1 {
			t.Errorf("got an item of %g KB, want the size of one write unit", kb)
		}
	}
}

func TestAnswersRefuseMarksAndEmptyBatches(t *testing.T) {
	t.Parallel()
	h, _ := openAnswers(t, false)
	for _, b := range []port.Batch{{}, {Records: []port.FeedRecord{{ID: "a"}}, Mark: []byte("m")}} {
		if _, err := h.Append(t.Context(), "s", b); !fault.Is(err, fault.Internal) {
			t.Errorf("got %v, want Internal", err)
		}
	}
}
