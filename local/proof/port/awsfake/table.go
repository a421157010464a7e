package awsfake

import (
	"cmp"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
)

// maxItem is the maximum size of an item in bytes. The source of this and other limits is the
// Amazon DynamoDB Developer Guide, "Quotas".
const maxItem = 400 << 10

// table is a table with its indexes.
type table struct {
	name string
	// own is the index by the table's own key. It has all rows.
	own     *index
	indexes []*index
	rows    map[[2]string]*row
	ttl     string
	stream  *stream
	// late has the index changes that are not visible yet, ordered by time.
	late lateChanges
	// replicating has the rows with earlier versions, in the order of the writes.
	replicating []*row
}

// row stores one item.
type row struct {
	key  [2]string
	item item // nil if it does not exist
	// earlier has the versions that a lagging replica may return, the oldest first.
	earlier []version
	reads   uint64
	writes  uint64
}

// version is a version of an item that a lagging replica returns until a time.
type version struct {
	item  item
	until time.Time
}

// keyOf returns the key of a row. If complete is true, the item must have no other attributes.
func (t *table) keyOf(key item, complete bool) ([2]string, error) {
	var pair [2]string
	key, err := key.checked()
	if err != nil {
		return pair, err
	}
	if complete && len(key) != 2 {
		return pair, invalid("the provided key element does not match the schema")
	}
	for i, k := range []schema.Key{t.own.partition, t.own.sort} {
		v, ok := key[k.Name]
		if !ok || kind(v) != k.Type {
			return pair, invalid("the provided key element %s does not match the schema", k.Name)
		}
		if pair[i], err = order(v); err != nil {
			return pair, err
		}
		if pair[i] == "" {
			return pair, invalid("one or more parameter values are not valid: the key %s is empty", k.Name)
		}
	}
	return pair, nil
}

// checkItem validates an item before it is stored.
func (t *table) checkItem(is item) error {
	if is.bytes() > maxItem {
		return invalid("item size has exceeded the maximum allowed size")
	}
	for _, x := range t.indexes {
		for _, k := range []schema.Key{x.partition, x.sort} {
			v, ok := is[k.Name]
			if !ok {
				continue
			}
			text, err := order(v)
			if kind(v) != k.Type || err != nil || text == "" {
				return invalid("one or more parameter values were invalid: type mismatch or empty value for index key %s", k.Name)
			}
		}
	}
	return nil
}

// itemAt returns the newest version of the item, or nil if it does not exist.
func (t *table) itemAt(key [2]string) item {
	if r := t.rows[key]; r != nil {
		return r.item
	}
	return nil
}

// seen returns the item as a strongly consistent read sees it or, if stale is true, as a read
// of a lagging replica sees it. It returns nil for a nil row.
func (r *row) seen(now time.Time, stale bool) item {
	if r == nil {
		return nil
	}
	if stale {
		for _, v := range r.earlier {
			if v.until.After(now) {
				return v.item
			}
		}
	}
	return r.item
}

// index has the items of a table, ordered by one key.
type index struct {
	name            string
	partition, sort schema.Key
	// projected has the attributes of the index's entries; nil means all.
	projected map[string]bool
	groups    map[string][]entry
	entries   map[*row]entry
	// visible maps a row to the time at which its last change reaches the index.
	visible map[*row]time.Time
}

// entry is an item in an index, with the projected attributes.
type entry struct {
	group, sort string
	row         *row
	item        item
}

func newIndex(name string, partition, sort schema.Key, projected map[string]bool) *index {
	return &index{
		name: name, partition: partition, sort: sort, projected: projected,
		groups: map[string][]entry{}, entries: map[*row]entry{}, visible: map[*row]time.Time{},
	}
}

// before compares two entries of one group.
func before(a, b entry) int {
	return cmp.Or(cmp.Compare(a.sort, b.sort), cmp.Compare(a.row.key[0], b.row.key[0]), cmp.Compare(a.row.key[1], b.row.key[1]))
}

// entryOf returns the entry for an item, or false if the item is not in the index.
func (x *index) entryOf(r *row, is item) (entry, bool) {
	group, ok := is[x.partition.Name]
	by, also := is[x.sort.Name]
	if !ok || !also {
		return entry{}, false
	}
	e := entry{row: r, item: is.only(x.projected)}
	e.group, _ = order(group) // checkItem has validated both
	e.sort, _ = order(by)
	return e, true
}

// show replaces the entry of the row with the entry for the item.
func (x *index) show(r *row, is item) {
	old, had := x.entries[r]
	e, has := x.entryOf(r, is)
	if had && has && old.group == e.group && old.sort == e.sort {
		at, _ := slices.BinarySearchFunc(x.groups[old.group], old, before)
		x.groups[old.group][at], x.entries[r] = e, e
		return
	}
	if had {
		x.hide(old)
	}
	if has {
		group := x.groups[e.group]
		at, _ := slices.BinarySearchFunc(group, e, before)
		x.groups[e.group], x.entries[r] = slices.Insert(group, at, e), e
	}
}

// hide removes an entry from the index.
func (x *index) hide(e entry) {
	group := x.groups[e.group]
	at, _ := slices.BinarySearchFunc(group, e, before)
	if group = slices.Delete(group, at, at+1); len(group) == 0 {
		delete(x.groups, e.group)
	} else {
		x.groups[e.group] = group
	}
	delete(x.entries, e.row)
}

// only returns the item with only the attributes in shown; nil means all.
func (i item) only(shown map[string]bool) item {
	if shown == nil || i == nil {
		return i
	}
	part := item{}
	for name, v := range i {
		if shown[name] {
			part[name] = v
		}
	}
	return part
}
