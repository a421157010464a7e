package dynamo

import (
	stdbytes "bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// List implements port.Store. A cursor of another list is an InvalidRequest for
// "cursor", a limit out of range one for "limit". The order of runs created at
// the same moment is arbitrary but constant.
func (s *Store) List(ctx context.Context, tenant string, page port.Page) ([]run.Run, string, error) {
	if page.Limit < 1 || page.Limit > 1000 {
		return nil, "", fault.Invalid("limit", "want 1 to 1000")
	}
	var from []byte
	if page.Cursor != "" {
		var ok bool
		if from, ok = placeOf(page.Cursor, tenant, page.State); !ok {
			return nil, "", fault.Invalid("cursor", "not a cursor of this list")
		}
	}
	runs, next, err := s.list(ctx, tenant, page, from)
	return runs, next, wrap(err, "list the runs of", tenant)
}

// listScan is the largest number of index entries that one page with a state looks
// at. It bounds the work of a page if few runs have the state.
const listScan = 2000

func (s *Store) list(ctx context.Context, tenant string, page port.Page, from []byte) ([]run.Run, string, error) {
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
		if page.State.Terminal() { // the index has the states of ended runs
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
				return runs, cursorOf(born(runs[page.Limit-1]), tenant, page.State), nil
			}
			runs = append(runs, r.Run)
		}
		if page.State != "" && scanned >= listScan {
			return runs, cursorOf(last, tenant, page.State), nil
		}
	}
}

// listQueries returns the queries for the halves of the tenant's runs, living
// and ended, that can have the state.
func (s *Store) listQueries(tenant string, page port.Page, from []byte) (queries []*dynamodb.QueryInput) {
	size := page.Limit/listShards + 8
	if page.State != "" {
		size = listScan / listShards
	}
	for _, half := range []string{living, ended} {
		if page.State != "" && page.State.Terminal() != (half == ended) {
			continue
		}
		for n := range listShards {
			q := s.indexQuery(schema.IndexList, attrList, listKey(tenant, half, strconv.Itoa(n)))
			q.ScanIndexForward = aws.Bool(false)
			q.Limit = aws.Int32(int32(size)) //nolint:gosec // the limit of a page is checked
			if from != nil {
				*q.KeyConditionExpression += " AND #sort < :sort"
				q.ExpressionAttributeNames["#sort"] = attrBorn
				q.ExpressionAttributeValues[":sort"] = bytes(from)
			}
			queries = append(queries, q)
		}
	}
	return queries
}

// indexQuery reads one partition key of an index, eventually consistent.
func (s *Store) indexQuery(index, attribute, key string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &s.config.Table, IndexName: &index, ReturnConsumedCapacity: s.wanted(),
		KeyConditionExpression:    aws.String("#key = :key"),
		ExpressionAttributeNames:  map[string]string{"#key": attribute},
		ExpressionAttributeValues: item{":key": text(key)},
	}
}

// A cursor is the place of the last run of a page and a prefix of a hash over
// it and its list, which detects truncated and mistyped cursors and those of
// other lists. It protects no secret.
const (
	placeSize = 16
	sumSize   = 8
)

var cursorText = base64.RawURLEncoding.Strict()

func cursorOf(place []byte, tenant string, state run.State) string {
	return cursorText.EncodeToString(append(place, sumOf(place, tenant, state)...))
}

func placeOf(cursor, tenant string, state run.State) ([]byte, bool) {
	raw, err := cursorText.DecodeString(cursor)
	if err != nil || len(raw) != placeSize+sumSize {
		return nil, false
	}
	place := raw[:placeSize:placeSize]
	// The decoder ignores line breaks, which no cursor has.
	return place, cursorOf(place, tenant, state) == cursor
}

func sumOf(place []byte, tenant string, state run.State) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "list of runs 2: %x %q %q", place, tenant, state))
	return sum[:sumSize]
}
