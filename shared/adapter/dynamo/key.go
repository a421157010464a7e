package dynamo

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// item is an item of the table, or some attributes of one.
type item = map[string]types.AttributeValue

// Sort keys of the items under one partition key. Each slot and each queued run
// of a pool is an item.
const (
	sortRun       = "run"
	sortHeartbeat = "beat"
	sortEvents    = "events#"
	sortPool      = "pool"
	sortSlot      = "slot#"
	sortQueue     = "line#"
	sortTurn      = "turn#"
	sortKey       = "key"
	sortTask      = "task"
	sortNote      = "note"
	sortJob       = "job"
	sortResult    = "result"
	sortDeleted   = "deleted"
	sortVersion   = "version#"
	sortRecord    = "record"
	sortWarm      = "warm#"
	sortAccount   = "account"
)

// Partition keys of the items without a tenant: those of tenants start with the
// tenant, which has no '#'.
const (
	reception = "#reception"
	claim     = "#claim"
	// limiters is followed by the name of a pool. All tenants share its start limiter, as
	// they share the platform's limit.
	limiters = "#gate#"
)

func keyOf(pk, sk string) item {
	return item{schema.Partition.Name: text(pk), schema.Sort.Name: text(sk)}
}

// within returns a partition key of a tenant. The tenant is escaped; the name
// comes last and may contain anything.
func within(tenant, kind, name string) string {
	return url.PathEscape(tenant) + "#" + kind + "#" + name
}

func pkRun(ref run.Ref) string                            { return within(ref.Tenant, "run", ref.ID) }
func pkPool(tenant, pool string) string                   { return within(tenant, "pool", pool) }
func pkWarm(tenant, pool string) string                   { return within(tenant, "warm", pool) }
func pkKey(tenant, key string) string                     { return within(tenant, "key", key) }
func pkTask(tenant, taskID string) string                 { return within(tenant, "task", taskID) }
func runKey(ref run.Ref) item                             { return keyOf(pkRun(ref), sortRun) }
func heartbeatKey(ref run.Ref) item                       { return keyOf(pkRun(ref), sortHeartbeat) }
func slotKey(in string, number int) item                  { return keyOf(in, slotSort(number)) }
func slotSort(number int) string                          { return fmt.Sprintf("%s%06d", sortSlot, number) }
func pkJob(tenant, jobID string) string                   { return within(tenant, "job", jobID) }
func queueKey(in string, s platform.Slot, id string) item { return keyOf(in, queueSort(s, id)) }
func eventsPrefix(born time.Time) string                  { return fmt.Sprintf("%s%s#", sortEvents, ordered(born)) }
func eventsSort(p string, last int) string                { return fmt.Sprintf("%s%010d", p, last) }

// queueSort returns the sort key of a queued run. The order of a slot without a round is its
// age, as in the keys of earlier versions. Runs that those have queued are at the head of the
// queue and leave it under that key.
func queueSort(s platform.Slot, id string) string { return sortQueue + s.Order() + "#" + id }

// queueItem returns the item of a queued run.
func queueItem(in string, s platform.Slot, id string) item {
	is := queueKey(in, s, id)
	if turn := s.Turn(); turn != "" {
		is[attrTurn] = text(turn)
	}
	return is
}

func slotNumber(sk string) (n int, ok bool) { return numbered(strings.CutPrefix(sk, sortSlot)) }

func numbered(digits string, ok bool) (int, bool) {
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}

// enqueued returns the id of the run in the sort key of a queue item.
func enqueued(sk string) (id string, ok bool) {
	place, ok := strings.CutPrefix(sk, sortQueue)
	if !ok {
		return "", false
	}
	_, id, ok = strings.Cut(place, "#")
	return id, ok
}

// named returns the tenant and the name in a partition key.
func named(pk string) (tenant, name string) {
	escaped, rest, _ := strings.Cut(pk, "#")
	_, name, _ = strings.Cut(rest, "#")
	tenant, err := url.PathUnescape(escaped)
	if err != nil {
		tenant = escaped
	}
	return tenant, name
}

// nanos returns the time in Unix nanoseconds, shifted so that the smallest value is 0. Times
// outside the range of 64 bits (1678 to 2262) are limited to it.
func nanos(t time.Time) uint64 {
	n := t.UnixNano()
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		n = math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		n = math.MaxInt64
	}
	return uint64(n) ^ 1<<63 //nolint:gosec // keeps the bits
}

// ordered encodes a time as text with the same order.
func ordered(t time.Time) string { return fmt.Sprintf("%016x", nanos(t)) }

// born orders a tenant's runs by creation. The second half of its bytes
// distinguishes runs created at the same moment.
func born(r run.Run) []byte {
	sum := sha256.Sum256([]byte(r.ID))
	return append(binary.BigEndian.AppendUint64(nil, nanos(r.CreatedAt)), sum[:8]...)
}

// Runs are spread over the partition keys of an index: listShards for each
// tenant and half, dueShards for each kind of due work.
const (
	listShards = 8
	dueShards  = 16
)

func shard(ref run.Ref, of int) string { return shardOf(pkRun(ref), of) }

func shardOf(pk string, of int) string {
	sum := sha256.Sum256([]byte(pk))
	return strconv.Itoa(int(sum[0]) % of)
}
