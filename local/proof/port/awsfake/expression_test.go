package awsfake_test

import (
	"crypto/rand"
	"errors"
	"maps"
	"regexp"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func number(n int) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}
func binary(s string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(s)} }
func list(of ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: of}
}
func key(sk string) item { return item{"pk": text("a"), "sk": text(sk)} }

// with returns a copy of the item with additional attributes.
func with(is item, more item) item {
	all := maps.Clone(is)
	maps.Copy(all, more)
	return all
}

// dynamoTest is a test with a table and its client.
type dynamoTest struct {
	*testing.T
	dynamo.API
	table *string
}

func setup(t *testing.T) dynamoTest {
	t.Helper()
	name := "sortie-" + rand.Text()
	return dynamoTest{t, database(t, name), &name}
}

// clientOf returns a client without retries.
func clientOf(cfg aws.Config) *dynamodb.Client {
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
}

func (d dynamoTest) put(is item) {
	d.Helper()
	if _, err := d.PutItem(d.Context(), &dynamodb.PutItemInput{TableName: d.table, Item: is}); err != nil {
		d.Fatal(err)
	}
}

func (d dynamoTest) want(key, want item) {
	d.Helper()
	out, err := d.GetItem(d.Context(), &dynamodb.GetItemInput{TableName: d.table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		d.Fatal(err)
	}
	d.same(want, out.Item)
}

func (d dynamoTest) same(want, got any) {
	d.Helper()
	if diff := cmp.Diff(want, got, equateSDK...); diff != "" {
		d.Errorf("(-want +got)\n%s", diff)
	}
}

// equateSDK ignores the fields that the SDK adds to the values of the API.
var equateSDK = []cmp.Option{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(
	types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{}, types.AttributeValueMemberL{},
	types.CancellationReason{},
)}

// code returns the code of an API error, or "" without an error.
func code(err error) string {
	if err == nil {
		return ""
	}
	if refused, ok := errors.AsType[smithy.APIError](err); ok {
		return refused.ErrorCode()
	}
	return err.Error()
}

var sample = with(key("sample"), item{
	"n": number(5), "s": text("abc"), "b": binary("xyz"), "l": list(number(1), text("two")),
})

var constants = item{
	":4": number(4), ":5": number(5), ":6": number(6), ":a": text("a"), ":abc": text("abc"), ":xyz": binary("xyz"), ":l": list(number(3)),
}

var placeholder = regexp.MustCompile(`[#:]\w+`)

// placeholders returns the names and constants that the expression uses.
func placeholders(expression string) (names map[string]string, values item) {
	return placeholdersOf(expression, constants)
}

func placeholdersOf(expression string, constants item) (names map[string]string, values item) {
	for _, p := range placeholder.FindAllString(expression, -1) {
		if p[0] == '#' {
			if names == nil {
				names = map[string]string{}
			}
			names[p] = p[1:]
		} else if v, ok := constants[p]; ok {
			if values == nil {
				values = item{}
			}
			values[p] = v
		}
	}
	return names, values
}

const (
	conditionFailed = "ConditionalCheckFailedException"
	malformed       = "ValidationException"
)

func TestConditions(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.put(sample)
	for expression, want := range map[string]string{
		"#n = :5": "", "#n = :6": conditionFailed, "#n = :abc": conditionFailed, "#x = :5": conditionFailed,
		"#n <> :6": "", "#n <> :5": conditionFailed, "#n <> :abc": "", "#x <> :5": "",
		"#n < :6": "", "#n < :5": conditionFailed, "#n <= :5": "", "#n <= :4": conditionFailed,
		"#n > :4": "", "#n > :5": conditionFailed, "#n >= :5": "", "#n >= :6": conditionFailed,
		"#x < :5": conditionFailed, "#x >= :5": conditionFailed, "#n > :abc": conditionFailed,
		":4 < #n": "", ":6 < #n": conditionFailed, "#s > :a": "", "#s = :abc": "", "#b = :xyz": "", "#l = :l": conditionFailed,
		"#n BETWEEN :4 AND :6": "", "#n BETWEEN :5 AND :5": "", "#n BETWEEN :6 AND :6": conditionFailed, "#x BETWEEN :4 AND :6": conditionFailed,
		"attribute_exists(#n)": "", "attribute_exists(#x)": conditionFailed,
		"attribute_not_exists(#x)": "", "attribute_not_exists(#n)": conditionFailed, "attribute_exists(#pk)": "",
		"begins_with(#s, :a)": "", "begins_with(#s, :abc)": "", "begins_with(#x, :a)": conditionFailed,
		"NOT #n = :6": "", "NOT #n = :5": conditionFailed, "NOT NOT #n = :5": "",
		"#n = :6 AND #n = :6 OR #n = :5": "", "#n = :6 AND (#n = :6 OR #n = :5)": conditionFailed,
		"#n = :5 OR #n = :6 AND #n = :4": "", "(#n = :5 OR #n = :6) AND #n = :4": conditionFailed,
		"NOT #n = :6 AND #s = :abc": "", "#n = :5 and not #s = :a": "",
		"": malformed, "#n": malformed, "#n = ": malformed, "#n == :5": malformed, "#n = :5 AND": malformed, "(#n = :5": malformed,
		"#n = :5)": malformed, "#n = :5 #s = :a": malformed, "#n = :undefined": malformed, "#n = :5 XOR #n = :5": malformed,
		"attribute_exists(:5)": malformed, "attribute_exists #n": malformed, "#n BETWEEN :4": malformed, "#n ? :5": malformed,
	} {
		names, values := placeholders(expression)
		_, err := d.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: d.table, Key: key("sample"), ConditionExpression: &expression,
			ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		})
		if got := code(err); got != want {
			t.Errorf("%q: got %q, want %q", expression, got, want)
		}
	}
	d.want(key("sample"), sample)
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	d := setup(t)
	for expression, want := range map[string]item{
		"SET #n = :6":                                     {"n": number(6)},
		"SET #n = #n + :5":                                {"n": number(10)},
		"SET #n = :4 - #n":                                {"n": number(-1)},
		"SET #x = #n":                                     {"x": number(5)},
		"SET #n = :6, #x = #n":                            {"n": number(6), "x": number(5)},
		"SET #x = if_not_exists(#x, :6)":                  {"x": number(6)},
		"SET #x = if_not_exists(#n, :6)":                  {"x": number(5)},
		"SET #x = if_not_exists(#x, :6) + :4":             {"x": number(10)},
		"SET #l = list_append(#l, :l)":                    {"l": list(number(1), text("two"), number(3))},
		"SET #l = list_append(:l, #l)":                    {"l": list(number(3), number(1), text("two"))},
		"SET #x = list_append(if_not_exists(#x, :l), :l)": {"x": list(number(3), number(3))},
		"REMOVE #n":                                       {"n": nil},
		"REMOVE #n, #s":                                   {"n": nil, "s": nil},
		"REMOVE #x":                                       {},
		"SET #x = #n REMOVE #n":                           {"x": number(5), "n": nil},
		"REMOVE #n SET #x = #n":                           {"x": number(5), "n": nil},
		"set #n = :6 remove #s":                           {"n": number(6), "s": nil},
		"":                                                nil,
		"SET":                                             nil,
		"SET #n":                                          nil,
		"SET #n = :6,":                                    nil,
		"SET #n = #x":                                     nil,
		"SET #n = #s + :5":                                nil,
		"SET #n = :5 + :abc":                              nil,
		"SET #l = list_append(#n, :l)":                    nil,
		"SET #n = :5, #n = :6":                            nil,
		"SET #n = :5 REMOVE #n":                           nil,
		"SET #n = :5 SET #s = :a":                         nil,
		"SET #pk = :a":                                    nil,
		"REMOVE #sk":                                      nil,
		"SET #n = :undefined":                             nil,
		"PUT #n = :5":                                     nil,
		"SET #x = if_not_exists(:5, :6)":                  nil,
		"SET #n = #n + ":                                  nil,
	} {
		d.put(sample)
		names, values := placeholders(expression)
		out, err := d.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: d.table, Key: key("sample"), UpdateExpression: &expression, ReturnValues: types.ReturnValueAllNew,
			ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		})
		if want == nil {
			if code(err) != malformed {
				t.Errorf("%q: got %v, want %s", expression, err, malformed)
			}
			d.want(key("sample"), sample)
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", expression, err)
			continue
		}
		changed := with(sample, want)
		maps.DeleteFunc(changed, func(_ string, v types.AttributeValue) bool { return v == nil })
		d.same(changed, out.Attributes)
		d.want(key("sample"), changed)
	}
}

func TestPlaceholdersMustBeUsed(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.put(sample)
	for name, in := range map[string]dynamodb.PutItemInput{
		"unused name":  {ExpressionAttributeNames: map[string]string{"#n": "n", "#x": "x"}, ExpressionAttributeValues: item{":5": number(5)}},
		"unused value": {ExpressionAttributeNames: map[string]string{"#n": "n"}, ExpressionAttributeValues: item{":5": number(5), ":6": number(6)}},
		"no value":     {ExpressionAttributeNames: map[string]string{"#n": "n"}},
		"no name":      {ExpressionAttributeValues: item{":5": number(5)}},
		"empty names":  {ExpressionAttributeNames: map[string]string{}, ExpressionAttributeValues: item{":5": number(5)}},
	} {
		in.TableName, in.Item, in.ConditionExpression = d.table, sample, aws.String("#n = :5")
		if _, err := d.PutItem(t.Context(), &in); code(err) != malformed {
			t.Errorf("%s: got %v, want %s", name, err, malformed)
		}
	}
}
