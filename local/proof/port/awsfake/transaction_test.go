package awsfake_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (d dynamoTest) transact(token *string, actions ...types.TransactWriteItem) error {
	_, err := d.TransactWriteItems(d.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: actions, ClientRequestToken: token})
	return err
}

func (d dynamoTest) putting(is item, condition string) types.TransactWriteItem {
	put := &types.Put{TableName: d.table, Item: is, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld}
	if condition != "" {
		put.ConditionExpression = &condition
		put.ExpressionAttributeNames, put.ExpressionAttributeValues = placeholders(condition)
	}
	return types.TransactWriteItem{Put: put}
}

func (d dynamoTest) deleting(sk string) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: d.table, Key: key(sk)}}
}

func (d dynamoTest) checking(sk, condition string) types.TransactWriteItem {
	names, values := placeholders(condition)
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: d.table, Key: key(sk), ConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}}
}

func (d dynamoTest) adding(sk string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: d.table, Key: key(sk), UpdateExpression: aws.String("SET #n = if_not_exists(#n, :5) + :5"),
		ExpressionAttributeNames: map[string]string{"#n": "n"}, ExpressionAttributeValues: item{":5": number(5)},
	}}
}

// reasons returns the codes of the cancellation reasons of a transaction.
func reasons(err error) string {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return code(err)
	}
	var codes []string
	for _, r := range cancelled.CancellationReasons {
		codes = append(codes, fmt.Sprint(*r.Code, len(r.Item)))
	}
	return strings.Join(codes, " ")
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.put(sample)
	err := d.transact(nil,
		d.putting(key("a"), "attribute_not_exists(#pk)"), d.deleting("b"), d.checking("sample", "#n = :5"), d.adding("c"))
	if err != nil {
		t.Fatal(err)
	}
	d.want(key("a"), key("a"))
	d.want(key("c"), with(key("c"), item{"n": number(10)}))
	// One failed condition cancels all actions. A reason has the item if the action asks for
	// it.
	err = d.transact(nil, d.putting(sample, "#n = :6"), d.checking("a", "attribute_not_exists(#pk)"), d.adding("c"))
	if got, want := reasons(err), "ConditionalCheckFailed6 ConditionalCheckFailed0 None0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	d.want(key("c"), with(key("c"), item{"n": number(10)}))
	for name, actions := range map[string]int{"none": 0, "too many": 101} {
		many := []types.TransactWriteItem{}
		for n := range actions {
			many = append(many, d.deleting(fmt.Sprint(n)))
		}
		if err := d.transact(nil, many...); code(err) != malformed {
			t.Errorf("%s: got %v, want %s", name, err, malformed)
		}
	}
	if err := d.transact(nil, d.checking("a", "#n =")); code(err) != malformed {
		t.Errorf("malformed condition: got %v, want %s", err, malformed)
	}
}

// TestTransactionTokenAppliesOnce repeats a transaction with its token.
func TestTransactionTokenAppliesOnce(t *testing.T) {
	t.Parallel()
	d := setup(t)
	token := aws.String(rand.Text())
	for range 3 {
		if err := d.transact(token, d.adding("c"), d.deleting("b")); err != nil {
			t.Fatal(err)
		}
	}
	d.want(key("c"), with(key("c"), item{"n": number(10)}))
	if err := d.transact(token, d.adding("c")); code(err) != "IdempotentParameterMismatchException" {
		t.Errorf("another transaction with the token: got %v", err)
	}
	// A cancelled transaction does not use up its token.
	token = aws.String(rand.Text())
	if err := d.transact(token, d.checking("b", "attribute_exists(#pk)"), d.adding("c")); reasons(err) == "" {
		t.Error("got success, want a cancelled transaction")
	}
	d.put(key("b"))
	if err := d.transact(token, d.checking("b", "attribute_exists(#pk)"), d.adding("c")); err != nil {
		t.Error(err)
	}
	d.want(key("c"), with(key("c"), item{"n": number(15)}))
}
