package awsfake_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestWritesOfOneItem(t *testing.T) {
	t.Parallel()
	d, ctx := setup(t), t.Context()
	for name, test := range map[string]struct {
		is   item
		want string
	}{
		"another type of key":       {item{"pk": number(1), "sk": text("x")}, malformed},
		"no sort key":               {item{"pk": text("a")}, malformed},
		"empty key":                 {item{"pk": text("a"), "sk": text("")}, malformed},
		"another type of index key": {with(key("x"), item{"due": number(1)}), malformed},
		"empty index key":           {with(key("x"), item{"due": text("")}), malformed},
		"too large":                 {with(key("x"), item{"s": text(strings.Repeat("x", 400<<10))}), malformed},
		"large":                     {with(key("x"), item{"s": text(strings.Repeat("x", 399<<10))}), ""},
		"no number":                 {with(key("x"), item{"n": &types.AttributeValueMemberN{Value: "x"}}), malformed},
	} {
		if _, err := d.PutItem(ctx, &dynamodb.PutItemInput{TableName: d.table, Item: test.is}); code(err) != test.want {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	d.put(with(key("n"), item{"n": &types.AttributeValueMemberN{Value: "+01.50"}}))
	d.want(key("n"), with(key("n"), item{"n": &types.AttributeValueMemberN{Value: "1.5"}}))
	// A deletion of a missing item succeeds, and an update creates the item.
	if _, err := d.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: d.table, Key: key("missing")}); err != nil {
		t.Error(err)
	}
	if _, err := d.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: d.table, Key: key("missing")}); err != nil {
		t.Error(err)
	}
	d.want(key("missing"), key("missing"))
	_, err := d.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("other"), Key: key("x")})
	if code(err) != "ResourceNotFoundException" {
		t.Errorf("unknown table: got %v", err)
	}
}

// TestRefusalHasTheItem checks that the error for a failed condition has the item if the
// request asks for it.
func TestRefusalHasTheItem(t *testing.T) {
	t.Parallel()
	d := setup(t)
	d.put(sample)
	for _, shows := range []types.ReturnValuesOnConditionCheckFailure{
		types.ReturnValuesOnConditionCheckFailureNone, types.ReturnValuesOnConditionCheckFailureAllOld,
	} {
		_, err := d.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: d.table, Item: key("sample"), ConditionExpression: aws.String("attribute_not_exists(#pk)"),
			ExpressionAttributeNames: map[string]string{"#pk": "pk"}, ReturnValuesOnConditionCheckFailure: shows,
		})
		refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
		if !ok || (len(refused.Item) > 0) != (shows == types.ReturnValuesOnConditionCheckFailureAllOld) {
			t.Errorf("%s: got %v", shows, err)
		}
	}
}

// due returns an item of the index "due".
func due(sk string, at int) item {
	return with(key(sk), item{"due": text("act"), "at": number(at), "s": text("not projected")})
}

func TestQueries(t *testing.T) {
	t.Parallel()
	d := setup(t)
	for n, sk := range []string{"a", "b1", "b2", "b3", "c"} {
		d.put(due(sk, 10*(n+1)))
	}
	d.put(item{"pk": text("other"), "sk": text("x"), "due": text("act"), "at": number(30)})
	d.put(with(key("z"), item{"due": text("act")})) // without the sort key of the index
	table := "#pk = :a"
	index := "#due = :act"
	values := item{":a": text("a"), ":act": text("act"), ":b1": text("b1"), ":b3": text("b3"), ":b": text("b"), ":20": number(20), ":40": number(40), ":minus": number(-5)}
	for name, test := range map[string]struct {
		index, condition, filter string
		limit                    int32
		backward                 bool
		want                     string // the sort keys of each page
		code                     string
	}{
		"whole":            {condition: table, want: "a b1 b2 b3 c z|"},
		"backward":         {condition: table, backward: true, want: "z c b3 b2 b1 a|"},
		"between":          {condition: table + " AND #sk BETWEEN :b1 AND :b3", want: "b1 b2 b3|"},
		"reversed between": {condition: table + " AND #sk BETWEEN :b3 AND :b1", code: malformed},
		"prefix":           {condition: table + " AND begins_with(#sk, :b)", want: "b1 b2 b3|"},
		"less":             {condition: table + " AND #sk < :b1", want: "a|"},
		"at most":          {condition: table + " AND #sk <= :b1", want: "a b1|"},
		"greater":          {condition: table + " AND #sk > :b3", want: "c z|"},
		"at least":         {condition: table + " AND #sk >= :b3", want: "b3 c z|"},
		"equal":            {condition: table + " AND #sk = :b3", want: "b3|"},
		"pages":            {condition: table, limit: 4, want: "a b1 b2 b3|c z|"},
		"backward pages":   {condition: table, limit: 4, backward: true, want: "z c b3 b2|b1 a|"},
		"full last page":   {condition: table, limit: 3, want: "a b1 b2|b3 c z||"},
		"filter":           {condition: table, filter: "#at > :20", want: "b2 b3 c|"},
		"filtered pages":   {condition: table, filter: "#at > :20", limit: 2, want: "|b2 b3|c||"},
		"index":            {index: "due", condition: index + " AND #at < :20", want: "a|"},
		"index numbers":    {index: "due", condition: index + " AND #at > :40", want: "c|"},
		"negative number":  {index: "due", condition: index + " AND #at < :minus", want: "|"},
		"index backward":   {index: "due", condition: index + " AND #at >= :40", backward: true, want: "c b3|"},
		"another index":    {index: "none", condition: index, code: malformed},
		"no key":           {condition: "#sk = :b1", code: malformed},
		"other type":       {condition: "#pk = :20", code: malformed},
		"not equal":        {condition: table + " AND #sk <> :b1", code: malformed},
		"other attribute":  {condition: table + " AND #at = :20", code: malformed},
		"or":               {condition: table + " OR #sk = :b1", code: malformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := &dynamodb.QueryInput{TableName: d.table, KeyConditionExpression: &test.condition}
			in.ExpressionAttributeNames, in.ExpressionAttributeValues = placeholdersOf(test.condition+test.filter, values)
			if test.filter != "" {
				in.FilterExpression = &test.filter
			}
			if test.index != "" {
				in.IndexName = &test.index
			} else {
				in.ConsistentRead = aws.Bool(true)
			}
			if test.limit > 0 {
				in.Limit = &test.limit
			}
			in.ScanIndexForward = aws.Bool(!test.backward)
			got := ""
			for more := true; more; more = len(in.ExclusiveStartKey) > 0 {
				out, err := d.Query(t.Context(), in)
				if code(err) != test.code {
					t.Fatalf("got %v, want %q", err, test.code)
				}
				if err != nil {
					return
				}
				var page []string
				for _, is := range out.Items {
					page = append(page, is["sk"].(*types.AttributeValueMemberS).Value)
					if test.index != "" && is["s"] != nil {
						t.Errorf("got an attribute that the index does not have: %v", is)
					}
				}
				got += strings.Join(page, " ") + "|"
				in.ExclusiveStartKey = out.LastEvaluatedKey
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestIndexPagesWithEqualKeys reads index entries with the same key in pages.
func TestIndexPagesWithEqualKeys(t *testing.T) {
	t.Parallel()
	d := setup(t)
	for n := range 7 {
		d.put(due(fmt.Sprint(n), 5))
	}
	seen := map[string]bool{}
	in := &dynamodb.QueryInput{
		TableName: d.table, IndexName: aws.String("due"), Limit: aws.Int32(2), KeyConditionExpression: aws.String("#due = :due"),
		ExpressionAttributeNames: map[string]string{"#due": "due"}, ExpressionAttributeValues: item{":due": text("act")},
	}
	for more := true; more; more = len(in.ExclusiveStartKey) > 0 {
		out, err := d.Query(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, is := range out.Items {
			sk := is["sk"].(*types.AttributeValueMemberS).Value
			if seen[sk] {
				t.Errorf("got %s twice", sk)
			}
			seen[sk] = true
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
	if len(seen) != 7 {
		t.Errorf("got %d entries, want 7", len(seen))
	}
}

// TestPageEndsAtOneMegabyte checks that the item that exceeds the limit is still on the page.
func TestPageEndsAtOneMegabyte(t *testing.T) {
	t.Parallel()
	d := setup(t)
	for n := range 5 {
		d.put(with(key(fmt.Sprint(n)), item{"s": text(strings.Repeat("x", 300<<10))}))
	}
	out, err := d.Query(t.Context(), &dynamodb.QueryInput{
		TableName: d.table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("#pk = :pk"), Select: types.SelectCount,
		ExpressionAttributeNames: map[string]string{"#pk": "pk"}, ExpressionAttributeValues: item{":pk": text("a")},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil || out.Count != 4 || len(out.LastEvaluatedKey) == 0 {
		t.Fatalf("got %d items, more %v, %v; want 4 and more", out.Count, len(out.LastEvaluatedKey) > 0, err)
	}
	if units := *out.ConsumedCapacity.CapacityUnits; units < 299 || units > 302 {
		t.Errorf("got %v units, want about 300", units)
	}
}

// TestScanReadsEachItemOnce reads a table and the entries of an index in pages.
func TestScanReadsEachItemOnce(t *testing.T) {
	t.Parallel()
	d := setup(t)
	for n := range 5 {
		is := key(fmt.Sprint(n))
		if n > 1 {
			is = with(is, item{"due": text(fmt.Sprint("kind", n%2)), "at": number(n)})
		}
		d.put(is)
	}
	due := "due"
	for name, row := range map[string]struct {
		index *string
		want  int
	}{"table": {nil, 5}, "index": {&due, 3}} {
		in := &dynamodb.ScanInput{TableName: d.table, IndexName: row.index, Limit: aws.Int32(2), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
		seen := map[string]bool{}
		for pages := 1; ; pages++ {
			out, err := d.Scan(t.Context(), in)
			if err != nil || len(out.Items) > 2 || out.ConsumedCapacity == nil {
				t.Fatalf("%s: got %+v (%v), want at most two items and their units", name, out, err)
			}
			for _, is := range out.Items {
				sk := is["sk"].(*types.AttributeValueMemberS).Value //nolint:forcetypeassert // of the sort key
				if seen[sk] {
					t.Errorf("%s: got item %s twice", name, sk)
				}
				seen[sk] = true
			}
			if in.ExclusiveStartKey = out.LastEvaluatedKey; len(out.LastEvaluatedKey) == 0 || pages > 5 {
				break
			}
		}
		if len(seen) != row.want {
			t.Errorf("%s: got %d items, want %d", name, len(seen), row.want)
		}
	}
	if _, err := d.Scan(t.Context(), &dynamodb.ScanInput{TableName: d.table, IndexName: &due, ConsistentRead: aws.Bool(true)}); code(err) != malformed {
		t.Errorf("got %v for a consistent scan of an index, want %s", err, malformed)
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	d := setup(t)
	get := func(projection *string, keys ...item) (*dynamodb.BatchGetItemOutput, error) {
		part := types.KeysAndAttributes{Keys: keys, ConsistentRead: aws.Bool(true), ProjectionExpression: projection}
		if projection != nil {
			part.ExpressionAttributeNames, _ = placeholders(*projection)
		}
		return d.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{*d.table: part}})
	}
	d.put(sample)
	out, err := get(nil, key("sample"), key("missing"))
	if err != nil || len(out.UnprocessedKeys) > 0 {
		t.Fatal(out, err)
	}
	d.same([]item{sample}, out.Responses[*d.table])
	if out, err = get(aws.String("#n, #x"), key("sample")); err != nil {
		t.Fatal(err)
	}
	d.same([]item{{"n": number(5)}}, out.Responses[*d.table])
	var many []item
	for n := range 101 {
		many = append(many, key(fmt.Sprint(n)))
	}
	for name, keys := range map[string][]item{"twice": {key("a"), key("a")}, "too many": many, "none": {}, "no key": {{"pk": text("a")}}} {
		if _, err := get(nil, keys...); code(err) != malformed {
			t.Errorf("%s: got %v, want %s", name, err, malformed)
		}
	}
	if _, err := get(aws.String("#n, #n"), key("sample")); code(err) != malformed {
		t.Errorf("an attribute twice: got %v, want %s", err, malformed)
	}
}
