// Package units counts the write units that DynamoDB bills for (Amazon DynamoDB
// Developer Guide, "Read and write operations", "Item sizes and formats"), from an
// item before and after, with the table's indexes.
//
// It is for whoever measures the adapter: its tests, which have the SDK's values,
// and the costs of a deployment, which have those of JSON on the wire. Both tell it
// how large a value of theirs is. It refuses to count reads, which are as they are
// told.
package units

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// Transaction is how often each item of a transaction is written, says the guide:
// once to prepare, once to commit. An entry of an index that changes in one is
// counted as often; the guide says nothing about it, and this is the worse case.
const Transaction = 2

// Written are the units that it costs to make one item of another, or to find
// that it may not be made. An item that there is not is nil. size is a value's, in
// bytes.
func Written[V any](before, after map[string]V, size func(V) int) float64 {
	units := max(Kilobytes(before, size), Kilobytes(after, size), 1)
	for _, index := range schema.Indexes() {
		was, is := entry(index, before), entry(index, after)
		switch {
		case reflect.DeepEqual(was, is):
		case was != nil && is != nil && sameKey(index, was, is):
			units++
		default:
			units += Kilobytes(was, size) + Kilobytes(is, size)
		}
	}
	return units
}

// entry is the item as the index has it, nil where it does not.
func entry[V any](index schema.Index, whole map[string]V) map[string]V {
	for _, key := range []schema.Key{index.Partition, index.Sort} {
		if _, has := whole[key.Name]; !has {
			return nil
		}
	}
	projected := slices.Concat(
		[]string{schema.Partition.Name, schema.Sort.Name, index.Partition.Name, index.Sort.Name}, index.Include,
	)
	has := maps.Clone(whole)
	maps.DeleteFunc(has, func(name string, _ V) bool { return !slices.Contains(projected, name) })
	return has
}

func sameKey[V any](index schema.Index, a, b map[string]V) bool {
	return reflect.DeepEqual(a[index.Partition.Name], b[index.Partition.Name]) &&
		reflect.DeepEqual(a[index.Sort.Name], b[index.Sort.Name])
}

// Kilobytes is an item's size, rounded up to whole ones; 0 for none.
func Kilobytes[V any](is map[string]V, size func(V) int) float64 {
	total := 0
	for name, value := range is {
		total += len(name) + size(value)
	}
	return float64((total + 1023) / 1024)
}

// Number is the size of a number in bytes, from its text: one for two digits, and
// one more.
func Number(text string) int { return (len(strings.Trim(text, "-0"))+1)/2 + 1 }
