package dynamo

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ port.EventKeyStore = (*Store)(nil)

// eventKeys is the partition key of the public keys of events. The id of a key is its
// sort key.
const eventKeys = "#eventkeys"

// AddEventKey implements port.EventKeyStore.
func (s *Store) AddEventKey(ctx context.Context, id string, at time.Time, key json.RawMessage) error {
	put := keyOf(eventKeys, id)
	put[attrMade], put[attrDoc] = moment(at), text(string(key))
	p := &part{put: put, refused: func(context.Context, item) error { return errApplied }}
	p.absent(schema.Partition.Name)
	return wrap(s.retryOutdated(ctx, func() error { return s.write(ctx, []*part{p}) }), "store key of events", id)
}

// StoredEventKeys implements port.EventKeyStore.
func (s *Store) StoredEventKeys(ctx context.Context) ([]json.RawMessage, error) {
	var found []item
	err := s.each(ctx, s.queryPartition(eventKeys), func(is item) bool {
		found = append(found, is)
		return true
	})
	slices.SortFunc(found, func(a, b item) int { return timeOf(b[attrMade]).Compare(timeOf(a[attrMade])) })
	var keys []json.RawMessage
	for _, is := range found {
		keys = append(keys, json.RawMessage(textOf(is[attrDoc])))
	}
	return keys, wrap(err, "read", "the keys of events")
}
