package porttest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// noise returns bytes that cannot be compressed.
func noise(n int) []byte {
	random := rand.New(rand.NewPCG(1, uint64(n))) //nolint:gosec // test data
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

func recordsAreReadBack(f feedTest) {
	var want []port.FeedRecord
	for i, data := range [][]byte{
		nil, []byte("{}"), []byte(`{"a": "<&>\u2028 ` + "\u2028" + `"}` + "\n"), []byte("\x00\xff\xfe"), noise(1000),
		[]byte(strings.Repeat(`{"repeated":true}`, 5000)), bytes.Repeat([]byte{0}, port.MaxFeedData), noise(port.MaxFeedData),
	} {
		want = append(want, port.FeedRecord{
			Position: int64(i + 1), ID: fmt.Sprintf("urn:orch:event:%d/ž 🐎#%%", i), Data: data,
			At: f.Now().UTC().Add(-time.Duration(i) * time.Hour).Truncate(time.Second).Add(123456789),
		})
	}
	want[0].ID = strings.Repeat("i", port.MaxFeedID)
	for _, batch := range [][]port.FeedRecord{want[:3], want[3:6], want[6:7], want[7:]} {
		f.append("s", port.Batch{Records: batch})
	}
	for after := range want {
		got, err := f.Other.Read(f.Context(), "s", int64(after), 100)
		f.ok(err)
		f.same("records", got, want[after:])
	}
}

func positionsOfIDs(f feedTest) {
	f.add("s", "a", "b")
	f.add("s", "c")
	f.same("positions", f.positions("s", "a", "c", "x", "A", "", "b "), map[string]int64{"a": 1, "c": 3})
	f.same("positions", f.positions("s"), map[string]int64{})
	var ids []string
	want := map[string]int64{}
	for i := range port.MaxFeedRecords {
		ids = append(ids, fmt.Sprintf("id-%d", i))
		want[ids[i]] = int64(4 + i)
	}
	f.add("s", ids...)
	f.same("positions", f.positions("s", ids...), want)
	// The record of an event that reached the feed late.
	f.Advance(f.Retention / 2)
	f.add("s", "late")
	old := f.records("late", "a", "y")
	for i := range old {
		old[i].At = old[i].At.Add(-f.Retention / 2)
	}
	found, err := f.Positions(f.Context(), "s", old)
	f.ok(err)
	f.same("positions", found, map[string]int64{"late": int64(4 + len(ids)), "a": 1})
}

// positionsOfAnotherWriter alternates between two writers, so that neither knows the other's
// records from its own appends.
func positionsOfAnotherWriter(f feedTest) {
	want := map[string]int64{}
	var ids []string
	for i := range 9 {
		writer := f.Feed
		if i%3 == 1 {
			writer = f.Other
		}
		head, err := writer.Head(f.Context(), "s")
		f.ok(err)
		id := fmt.Sprint("id-", i)
		_, err = writer.Append(f.Context(), "s", port.Batch{After: head.Newest, Records: f.records(id)})
		f.ok(err)
		ids, want[id] = append(ids, id), int64(i+1)
		f.Advance(time.Second)
		for _, reader := range []port.Feed{f.Feed, f.Other} {
			records := f.records(ids...)
			for n := range records {
				records[n].At = records[n].At.Add(-time.Duration(i-n+1) * time.Second)
			}
			found, err := reader.Positions(f.Context(), "s", records)
			f.ok(err)
			f.same("positions", found, want)
		}
	}
}

func readInPages(f feedTest) {
	var ids []string
	for i := range 50 {
		ids = append(ids, fmt.Sprint("id-", i))
	}
	for from := 0; from < len(ids); from += 7 {
		f.add("s", ids[from:min(from+7, len(ids))]...)
	}
	for _, limit := range []int{1, 3, 7, 8, 49, 50, 51} {
		var got []string
		for after := int64(0); ; {
			page, err := f.Read(f.Context(), "s", after, limit)
			f.ok(err)
			if len(page) > limit {
				f.Fatalf("got %d records, want at most %d", len(page), limit)
			}
			for _, r := range page {
				got, after = append(got, r.ID), r.Position
			}
			if len(page) < limit {
				break
			}
		}
		f.same(fmt.Sprint("records in pages of ", limit), got, ids)
	}
	for _, test := range []struct {
		after int64
		limit int
		want  int
	}{{-5, 100, 50}, {50, 10, 0}, {51, 10, 0}, {1 << 50, 10, 0}, {0, 0, 0}, {0, -1, 0}} {
		if page, err := f.Read(f.Context(), "s", test.after, test.limit); len(page) != test.want || err != nil {
			f.Errorf("read behind %d with limit %d: got %d records, %v, want %d", test.after, test.limit, len(page), err, test.want)
		}
	}
}

func pageOfBytes(f feedTest) {
	var ids []string
	for i := range 12 {
		records := f.records(fmt.Sprint("a", i), fmt.Sprint("b", i))
		for n := range records {
			records[n].Data = noise(port.MaxFeedData - 10)
		}
		f.append("s", port.Batch{Records: records})
		ids = append(ids, records[0].ID, records[1].ID)
	}
	var got []string
	for after := int64(0); after < 24; {
		page, err := f.Read(f.Context(), "s", after, 1000)
		f.ok(err)
		size := 0
		for _, r := range page {
			size += len(r.Data)
			got, after = append(got, r.ID), r.Position
		}
		if len(page) == 0 || size > port.MaxFeedPage {
			f.Fatalf("got a page of %d records with %d bytes, want some with at most %d", len(page), size, port.MaxFeedPage)
		}
	}
	f.same("records", got, ids)
}

func batchLimits(f feedTest) {
	sized := func(sizes ...int) (records []port.FeedRecord) {
		for i, size := range sizes {
			records = append(records, port.FeedRecord{ID: fmt.Sprint(i), At: f.Now(), Data: make([]byte, size)})
		}
		return records
	}
	first := f.append("s", port.Batch{Records: f.records("first"), State: []byte("state")})
	for name, b := range map[string]port.Batch{
		"a record":        {Records: sized(1, port.MaxFeedData+1)},
		"the batch":       {Records: sized(port.MaxFeedData, port.MaxFeedData)},
		"many records":    {Records: sized(make([]int, port.MaxFeedRecords+1)...)},
		"an empty id":     {Records: f.records("a", "")},
		"a long id":       {Records: f.records("a", strings.Repeat("i", port.MaxFeedID+1))},
		"an invalid id":   {Records: f.records("\xff")},
		"the state":       {Records: f.records("a"), State: make([]byte, port.MaxFeedState+1)},
		"the mark":        {Records: f.records("a"), Mark: make([]byte, port.MaxFeedMark+1)},
		"before the head": {Records: f.records("a"), After: -2},
	} {
		b.After += first.Newest
		if _, err := f.Append(f.Context(), "s", b); !fault.Is(err, fault.Internal) {
			f.Errorf("%s: got %v, want an Internal fault", name, err)
		}
	}
	f.wantHead("s", first)
	if _, err := f.Append(f.Context(), "empty", port.Batch{Mark: []byte("m")}); !fault.Is(err, fault.Internal) {
		f.Errorf("mark of an empty stream: got %v, want an Internal fault", err)
	}
	f.wantHead("empty", port.Head{})
}

// largestBatches appends batches of the maximum size with data that is difficult to store.
func largestBatches(f feedTest) {
	fill := func(fill func(n int) []byte, count, each int) (records []port.FeedRecord) {
		for i := range count {
			id := fmt.Sprintf("%0*d", min(port.MaxFeedID, port.MaxFeedBatch/count/2), i)
			records = append(records, port.FeedRecord{ID: id, At: f.Now().UTC(), Data: fill(each - len(id))})
		}
		return records
	}
	zeros := func(n int) []byte { return make([]byte, n) }
	invalid := func(n int) []byte { return bytes.Repeat([]byte{0xff}, n) }
	for name, records := range map[string][]port.FeedRecord{
		"two of noise":      fill(noise, 2, port.MaxFeedBatch/2),
		"two of zeros":      fill(zeros, 2, port.MaxFeedBatch/2),
		"many of noise":     fill(noise, port.MaxFeedRecords, port.MaxFeedBatch/port.MaxFeedRecords),
		"many of zeros":     fill(zeros, port.MaxFeedRecords, port.MaxFeedBatch/port.MaxFeedRecords),
		"many without text": fill(invalid, port.MaxFeedRecords, port.MaxFeedBatch/port.MaxFeedRecords),
	} {
		f.append(name, port.Batch{Records: records, State: noise(port.MaxFeedState), Mark: noise(port.MaxFeedMark)})
		for i := range records {
			records[i].Position = int64(i + 1)
		}
		var got []port.FeedRecord
		for after := int64(0); after < int64(len(records)); after = got[len(got)-1].Position {
			page, err := f.Read(f.Context(), name, after, 1000)
			f.ok(err)
			if len(page) == 0 {
				f.Fatalf("%s: got no records behind %d of %d", name, after, len(records))
			}
			got = append(got, page...)
		}
		f.same(name, got, records)
	}
}
