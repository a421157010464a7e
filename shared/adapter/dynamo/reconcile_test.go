package dynamo_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// queued returns the sort keys of the queue items of pool p.
func (i *interleaved) queued() (keys []string) {
	i.Helper()
	out, err := i.client.Query(i.Context(), &dynamodb.QueryInput{
		TableName: aws.String("sortie"), ConsistentRead: aws.Bool(true),
		KeyConditionExpression:   aws.String("#pk = :pk AND begins_with(#sk, :sk)"),
		ExpressionAttributeNames: map[string]string{"#pk": schema.Partition.Name, "#sk": schema.Sort.Name},
		ExpressionAttributeValues: item{
			":pk": inPool("")[schema.Partition.Name], ":sk": &types.AttributeValueMemberS{Value: "line#"},
		},
	})
	i.ok(err)
	for _, is := range out.Items {
		keys = append(keys, is[schema.Sort.Name].(*types.AttributeValueMemberS).Value)
	}
	return keys
}

// TestSlotGrantedDuringReconcile grants a slot to a run between the reads of the pool
// and of the record. Reconcile does not add a second one.
func TestSlotGrantedDuringReconcile(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	a, b := i.created("a", run.Enqueued{Pool: "p", Limit: 2}), i.created("b")
	for _, sk := range i.queued() {
		i.remove(sk)
	}
	i.beforeGet = func() {
		admitted := i.decided(b, run.Admitted{Pool: "p", Limit: 1})
		i.ok(i.Commit(t.Context(), admitted))
		i.ok(i.Commit(t.Context(), i.decided(a, run.Granted{Limit: 2})))
		admitted.Run.Version++
		i.ok(i.Commit(t.Context(), released(admitted.Run)))
	}
	_, err := i.Reconcile(t.Context(), "default", "p")
	i.ok(err)
	if held := i.held(); len(held) != 1 || held["slot#000001"] != "a" {
		t.Errorf("got slots %v, want the second of a alone", held)
	}
}

// TestReleaseAfterReconcileMovedTheSlot changes the number of a slot between the
// read of the record and the commit that releases the slot.
func TestReleaseAfterReconcileMovedTheSlot(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	a := i.created("a", run.Admitted{Pool: "p", Limit: 1})
	i.occupy("slot#000000", "x")
	i.before = func() {
		_, err := i.Reconcile(t.Context(), "default", "p")
		i.ok(err)
		if held := i.held(); len(held) != 1 || held["slot#000001"] != "a" {
			t.Errorf("got slots %v after the reconcile, want the second of a alone", held)
		}
	}
	i.ok(i.Commit(t.Context(), released(a)))
	if held := i.held(); len(held) != 0 {
		t.Errorf("got slots %v, want none", held)
	}
}

// TestConcurrentReconcilesGiveOneSlot runs a second Reconcile before the write of the
// first one.
func TestConcurrentReconcilesGiveOneSlot(t *testing.T) {
	t.Parallel()
	i := interleave(t)
	i.created("a", run.Admitted{Pool: "p", Limit: 1})
	i.occupy("slot#000000", "x")
	i.before = func() {
		i.occupy("slot#000001", "y")
		_, err := i.Reconcile(t.Context(), "default", "p")
		i.ok(err)
		i.remove("slot#000001")
	}
	_, err := i.Reconcile(t.Context(), "default", "p")
	i.ok(err)
	if held := i.held(); len(held) != 1 || held["slot#000002"] != "a" {
		t.Errorf("got slots %v, want the third of a alone", held)
	}
}
