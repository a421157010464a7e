// Package units counts the write units that DynamoDB bills for (Amazon DynamoDB
// Developer Guide, "Read and write operations", "Item sizes and formats") from
// an item before and after a write and the table's indexes.
//
// Tests of the adapter, with values of the SDK, and the cost figures of a
// deployment, with values in JSON, share it; callers provide the size of a
// value. It does not count reads, which report their units.
package units

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// Transaction is how often an item in a transaction is written, as the guide
// says: once to prepare, once to commit. Index entries that change in a
// transaction count twice too; the guide does not say, and this is the worse
// case.
const Transaction = 2

// Written returns the units of a write, or of a refused one. A missing item is
// nil. size returns the size of a value in bytes.
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

// entry returns the index entry of an item, or nil if it has no entry.
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

// Kilobytes returns an item's size, rounded up; 0 for nil.
func Kilobytes[V any](is map[string]V, size func(V) int) float64 {
	total := 0
	for name, value := range is {
		total += len(name) + size(value)
	}
	return float64((total + 1023) / 1024)
}

// Number returns the size of a number in bytes: one for two digits, and one.
func Number(text string) int { return (len(strings.Trim(text, "-0"))+1)/2 + 1 }
