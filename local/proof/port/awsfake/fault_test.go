package awsfake_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// faulty returns a table of the fake, independent of the build tags.
func faulty(t *testing.T, c awsfake.DynamoDBConfig) (dynamoTest, *awsfake.DynamoDB) {
	t.Helper()
	db := awsfake.NewDynamoDB(c)
	if err := awsfake.CreateTable(t.Context(), db.AWS(), "sortie"); err != nil {
		t.Fatal(err)
	}
	return dynamoTest{t, clientOf(db.AWS()), aws.String("sortie")}, db
}

func (d dynamoTest) eventual(key item) item {
	d.Helper()
	out, err := d.GetItem(d.Context(), &dynamodb.GetItemInput{TableName: d.table, Key: key})
	if err != nil {
		d.Fatal(err)
	}
	return out.Item
}

// indexed returns the times in the index "due" by sort key.
func (d dynamoTest) indexed() map[string]string {
	d.Helper()
	out, err := d.Query(d.Context(), &dynamodb.QueryInput{
		TableName: d.table, IndexName: aws.String("due"), KeyConditionExpression: aws.String("#due = :due"),
		ExpressionAttributeNames: map[string]string{"#due": "due"}, ExpressionAttributeValues: item{":due": text("act")},
	})
	if err != nil {
		d.Fatal(err)
	}
	entries := map[string]string{}
	for _, is := range out.Items {
		entries[is["sk"].(*types.AttributeValueMemberS).Value] = is["at"].(*types.AttributeValueMemberN).Value
	}
	return entries
}

var epoch = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// TestReadsAndIndexesLag writes, changes and deletes an item. A consistent read sees each
// change immediately. The other reads see the previous version until the lag has passed.
func TestReadsAndIndexesLag(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(epoch)
	d, db := faulty(t, awsfake.DynamoDBConfig{Clock: now, Seed: 1, Lag: time.Second, Stale: 1})
	d.put(due("x", 1))
	d.same(item(nil), d.eventual(key("x")))
	d.same(map[string]string{}, d.indexed())
	now.Advance(time.Second)
	d.same(due("x", 1), d.eventual(key("x")))
	d.same(map[string]string{"x": "1"}, d.indexed())
	d.put(due("x", 2))
	d.want(key("x"), due("x", 2))
	d.same(due("x", 1), d.eventual(key("x")))
	d.same(map[string]string{"x": "1"}, d.indexed())
	db.Settle()
	d.same(due("x", 2), d.eventual(key("x")))
	d.same(map[string]string{"x": "2"}, d.indexed())
	if _, err := d.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: d.table, Key: key("x")}); err != nil {
		t.Fatal(err)
	}
	d.want(key("x"), nil)
	d.same(due("x", 2), d.eventual(key("x")))
	d.same(map[string]string{"x": "2"}, d.indexed())
	now.Advance(time.Second)
	d.same(item(nil), d.eventual(key("x")))
	d.same(map[string]string{}, d.indexed())
}

// TestIndexFollowsWritesInOrder changes an item many times. The index must show the writes in
// their order.
func TestIndexFollowsWritesInOrder(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(epoch)
	d, _ := faulty(t, awsfake.DynamoDBConfig{Clock: now, Seed: 2, Lag: time.Second, Stale: 0.5})
	last := ""
	for n := range 200 {
		d.put(due("x", 100+n))
		now.Advance(50 * time.Millisecond)
		got := d.indexed()["x"]
		if got < last {
			t.Fatalf("got %s after %s", got, last)
		}
		last = got
	}
	if last < "275" || last == "299" {
		t.Errorf("got %s after 200 writes, want one of the last, but not the newest", last)
	}
}

// TestDeletedItemCanBeWrittenAgain alternately writes and deletes an item, between writes of
// another item, before replicas and indexes have applied earlier writes.
func TestDeletedItemCanBeWrittenAgain(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(epoch)
	d, _ := faulty(t, awsfake.DynamoDBConfig{Clock: now, Seed: 3, Lag: time.Second, Stale: 0.5})
	for n := range 400 {
		want := due("x", 100+n)
		if n%2 == 0 {
			d.put(want)
		} else if want = nil; d.transact(nil, d.deleting("x")) != nil {
			t.Fatal("the item was not deleted")
		}
		d.put(due("y", 100+n))
		now.Advance(time.Duration(n*37%700) * time.Millisecond)
		d.want(key("x"), want)
	}
}

func TestFates(t *testing.T) {
	t.Parallel()
	var fate awsfake.Fate
	d, _ := faulty(t, awsfake.DynamoDBConfig{Clock: clock.NewVirtual(epoch), Plan: func(awsfake.Call) awsfake.Fate { return fate }})
	add := func() error {
		_, err := d.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: d.table, Key: key("x"), UpdateExpression: aws.String("SET #n = if_not_exists(#n, :5) + :5"),
			ExpressionAttributeNames: map[string]string{"#n": "n"}, ExpressionAttributeValues: item{":5": number(5)},
		})
		return err
	}
	for _, step := range []struct {
		fate    awsfake.Fate
		applied int
		failed  bool
	}{
		{awsfake.Applied, 10, false},
		{awsfake.Lost, 10, true},
		{awsfake.Lost, 10, true},
		{awsfake.Unsure, 15, true},
		{awsfake.Unsure, 20, true},
		{awsfake.Throttled, 20, true},
		{awsfake.Conflicted, 20, true},
		{awsfake.Partial, 25, false},
	} {
		fate = step.fate
		if err := add(); (err != nil) != step.failed {
			t.Errorf("fate %d: got %v", step.fate, err)
		}
		fate = awsfake.Applied
		d.want(key("x"), with(key("x"), item{"n": number(step.applied)}))
	}
	for _, step := range []struct {
		fate awsfake.Fate
		want string
	}{
		{awsfake.Conflicted, "None0 TransactionConflict0"}, {awsfake.Throttled, "None0 ThrottlingError0"},
	} {
		fate = step.fate
		if got := reasons(d.transact(nil, d.adding("x"), d.adding("y"))); got != step.want {
			t.Errorf("got %s, want %s", got, step.want)
		}
	}
	fate = awsfake.Applied
	d.want(key("x"), with(key("x"), item{"n": number(25)}))
}

// TestUnsureTransactionIsInProgress repeats a transaction whose answer was lost. The first
// retry fails because the transaction is in progress. The next one succeeds, and the
// transaction was applied once.
func TestUnsureTransactionIsInProgress(t *testing.T) {
	t.Parallel()
	fate, now := awsfake.Unsure, clock.NewVirtual(epoch)
	d, _ := faulty(t, awsfake.DynamoDBConfig{Clock: now, Plan: func(awsfake.Call) awsfake.Fate { return fate }})
	token := aws.String("t")
	if err := d.transact(token, d.adding("x"), d.adding("y")); err == nil {
		t.Error("got success, want a lost answer")
	}
	fate = awsfake.Applied
	if err := d.transact(token, d.adding("x"), d.adding("y")); code(err) != "TransactionInProgressException" {
		t.Errorf("first retry: got %v, want TransactionInProgressException", err)
	}
	for _, want := range []int{10, 15} {
		if err := d.transact(token, d.adding("x"), d.adding("y")); err != nil {
			t.Error(err)
		}
		d.want(key("x"), with(key("x"), item{"n": number(want)}))
		now.Advance(11 * time.Minute) // the service forgets the token after ten minutes
	}
}

func TestTransactionOfOneItemTwiceIsRefused(t *testing.T) {
	t.Parallel()
	d, _ := faulty(t, awsfake.DynamoDBConfig{Clock: clock.NewVirtual(epoch)})
	if err := d.transact(nil, d.adding("x"), d.deleting("x")); code(err) != malformed {
		t.Errorf("got %v, want %s", err, malformed)
	}
}

func TestExpiredItemsAreDeleted(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(epoch)
	d, db := faulty(t, awsfake.DynamoDBConfig{Clock: now})
	_, err := clientOf(db.AWS()).UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: d.table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	soon, later := item{"ttl": number(int(epoch.Unix()) + 10)}, item{"ttl": number(int(epoch.Unix()) + 100)}
	d.put(with(key("soon"), soon))
	d.put(with(key("later"), later))
	d.put(key("never"))
	for _, want := range []int{0, 1, 0} {
		if n := db.Expire(); n != want {
			t.Errorf("after %s: got %d deleted, want %d", now.Now().Sub(epoch), n, want)
		}
		now.Advance(20 * time.Second)
	}
	d.want(key("soon"), nil)
	d.want(key("later"), with(key("later"), later))
}

func TestUnknownRequestsAreRefused(t *testing.T) {
	t.Parallel()
	d, db := faulty(t, awsfake.DynamoDBConfig{Clock: clock.NewVirtual(epoch)})
	_, unknown := clientOf(db.AWS()).ListTables(t.Context(), &dynamodb.ListTablesInput{})
	_, legacy := d.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: d.table, Key: key("x"), AttributesToGet: []string{"n"}})
	_, sets := d.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: d.table, Item: with(key("x"), item{
		"s": &types.AttributeValueMemberSS{Value: []string{"a"}},
	})})
	_, reserved := d.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: d.table, Item: key("x"), ConditionExpression: aws.String("attribute_exists(name)")})
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"operation": {unknown, "UnknownOperationException"}, "field": {legacy, malformed}, "type": {sets, malformed}, "name": {reserved, malformed},
	} {
		if code(test.err) != test.want {
			t.Errorf("%s: got %v, want %s", name, test.err, test.want)
		}
	}
}
