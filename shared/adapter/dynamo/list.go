package dynamo

import (
	stdbytes "bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// List implements port.Store. It returns an InvalidRequest for "cursor" if the cursor belongs
// to another list, and for "limit" if the limit is out of range. The order of runs created at
// the same moment is arbitrary but constant.
func (s *Store) List(ctx context.Context, tenant string, page port.Page) ([]run.Run, string, error) {
	from, err := listingOf(tenant, page).start(page)
	if err != nil {
		return nil, "", err
	}
	runs, next, err := s.list(ctx, tenant, page, from)
	return runs, next, wrap(err, "list the runs of", tenant)
}

// listScan is the largest number of index entries that one page with a state reads. It limits
// the work if few runs have the state.
const listScan = 2000

func (s *Store) list(ctx context.Context, tenant string, page port.Page, from []byte) ([]run.Run, string, error) {
	in := listingOf(tenant, page)
	m := s.merge(func(a, b item) bool { return stdbytes.Compare(bytesOf(a[attrBorn]), bytesOf(b[attrBorn])) > 0 },
		s.listQueries(tenant, page, from))
	runs := []run.Run{}
	for scanned := 0; ; {
		entries, err := m.take(ctx, page.Limit+1-len(runs), always)
		if err != nil {
			return nil, "", err
		}
		if len(entries) == 0 {
			return runs, "", nil
		}
		last := bytesOf(entries[len(entries)-1][attrBorn])
		scanned += len(entries)
		if page.State.Terminal() && page.JobID == "" { // the index of all runs has the states of ended ones
			entries = slices.DeleteFunc(entries, func(e item) bool { return textOf(e[attrEnd]) != string(page.State) })
		}
		records, err := s.records(ctx, entries, true)
		if err != nil {
			return nil, "", err
		}
		for _, r := range records {
			if r.damaged != nil {
				return nil, "", r.damaged
			}
			if !s.alive(r.Run) || page.State != "" && r.State != page.State {
				continue
			}
			if len(runs) == page.Limit {
				return runs, in.cursor(born(runs[page.Limit-1])), nil
			}
			runs = append(runs, r.Run)
		}
		if page.State != "" && scanned >= listScan {
			return runs, in.cursor(last), nil
		}
	}
}

// listQueries returns the query for the runs of a job. For all runs of a tenant it returns
// those for the halves, living and ended, that can have the state.
func (s *Store) listQueries(tenant string, page port.Page, from []byte) (queries []*dynamodb.QueryInput) {
	add := func(q *dynamodb.QueryInput, size int) {
		q.ScanIndexForward = aws.Bool(false)
		q.Limit = aws.Int32(int32(size)) //nolint:gosec // the limit of a page is checked
		if from != nil {
			*q.KeyConditionExpression += " AND #sort < :sort"
			q.ExpressionAttributeNames["#sort"] = attrBorn
			q.ExpressionAttributeValues[":sort"] = bytes(from)
		}
		queries = append(queries, q)
	}
	if page.JobID != "" {
		add(s.indexQuery(schema.IndexJobs, attrJob, pkJob(tenant, run.Listed(page.JobID, page.Children))), page.Limit+1)
		return queries
	}
	size := page.Limit/listShards + 8
	if page.State != "" {
		size = listScan / listShards
	}
	for _, half := range []string{living, ended} {
		if page.State != "" && page.State.Terminal() != (half == ended) {
			continue
		}
		for n := range listShards {
			add(s.indexQuery(schema.IndexList, attrList, listKey(tenant, half, strconv.Itoa(n))), size)
		}
	}
	return queries
}

// indexQuery returns the query for one partition key of an index, eventually consistent.
func (s *Store) indexQuery(index, attribute, key string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &s.config.Table, IndexName: &index, ReturnConsumedCapacity: s.returnConsumed(),
		KeyConditionExpression:    aws.String("#key = :key"),
		ExpressionAttributeNames:  map[string]string{"#key": attribute},
		ExpressionAttributeValues: item{":key": text(key)},
	}
}

// listing identifies a list: its kind with the version of its cursors, its owner, and its
// filter.
type listing struct {
	kind, scope string
	state       run.State
}

// listingOf returns the listing of runs to which the page belongs.
func listingOf(tenant string, page port.Page) listing {
	if page.JobID != "" {
		return listing{"runs of a job 1", pkJob(tenant, run.Listed(page.JobID, page.Children)), page.State}
	}
	return listing{"runs 2", tenant, page.State}
}

// sumSize is the length of the hash in a cursor in bytes. A cursor is the position of the last
// entry of a page and a prefix of a hash over the position and its list. The hash detects
// truncated and mistyped cursors and those of other lists. It protects no secret.
const sumSize = 8

var cursorText = base64.RawURLEncoding.Strict()

func (l listing) cursor(place []byte) string {
	return cursorText.EncodeToString(slices.Concat(place, l.sum(place)))
}

// start returns the place after which the page starts, nil for the start of the list. It returns a
// fault for an invalid limit or cursor.
func (l listing) start(page port.Page) ([]byte, error) {
	if page.Limit < 1 || page.Limit > 1000 {
		return nil, fault.Invalid("limit", "want 1 to 1000")
	}
	if page.Cursor == "" && page.Before.IsZero() {
		return nil, nil
	}
	if page.Cursor == "" {
		return binary.BigEndian.AppendUint64(nil, nanos(page.Before)), nil
	}
	raw, err := cursorText.DecodeString(page.Cursor)
	if err == nil && len(raw) > sumSize {
		// The decoder ignores line breaks, which no cursor has.
		if place := raw[:len(raw)-sumSize]; l.cursor(place) == page.Cursor {
			return place, nil
		}
	}
	return nil, fault.Invalid("cursor", "not a cursor of this list")
}

func (l listing) sum(place []byte) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "list of %s: %x %q %q", l.kind, place, l.scope, l.state))
	return sum[:sumSize]
}
