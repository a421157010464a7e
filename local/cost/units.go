package cost

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// item is an item of the table, as DynamoDB's JSON has it.
type item map[string]map[string]any

// transactionTimes is how often each item of a transaction is written, says the
// guide: once to prepare, once to commit.
const transactionTimes = 2

// written are the write units that it costs to make one item of another, or to
// find that it may not be made, with the indexes (Amazon DynamoDB Developer
// Guide, "Read and write operations").
func written(before, after item) float64 {
	units := max(kilobytes(before), kilobytes(after), 1)
	for _, index := range schema.Indexes() {
		was, is := entry(index, before), entry(index, after)
		switch {
		case reflect.DeepEqual(was, is):
		case was != nil && is != nil && sameKey(index, was, is):
			units++
		default:
			units += kilobytes(was) + kilobytes(is)
		}
	}
	return units
}

// entry is the item as the index has it, nil where it does not.
func entry(index schema.Index, whole item) item {
	if whole[index.Partition.Name] == nil || whole[index.Sort.Name] == nil {
		return nil
	}
	projected := slices.Concat(
		[]string{schema.Partition.Name, schema.Sort.Name, index.Partition.Name, index.Sort.Name}, index.Include,
	)
	has := maps.Clone(whole)
	maps.DeleteFunc(has, func(name string, _ map[string]any) bool { return !slices.Contains(projected, name) })
	return has
}

func sameKey(index schema.Index, a, b item) bool {
	return reflect.DeepEqual(a[index.Partition.Name], b[index.Partition.Name]) &&
		reflect.DeepEqual(a[index.Sort.Name], b[index.Sort.Name])
}

// kilobytes is the item's size, rounded up to whole ones.
func kilobytes(is item) float64 {
	total := 0
	for name, value := range is {
		total += len(name) + size(value)
	}
	return float64((total + 1023) / 1024)
}

// size of a value; one of a kind that the table does not have counts as its JSON.
func size(value map[string]any) int {
	for kind, v := range value {
		text, isText := v.(string)
		switch {
		case kind == "S" && isText:
			return len(text)
		case kind == "B" && isText:
			return base64.StdEncoding.DecodedLen(len(text)) - strings.Count(text, "=")
		case kind == "N" && isText:
			return (len(strings.Trim(text, "-0"))+1)/2 + 1
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return 0
	}
	return len(text)
}
