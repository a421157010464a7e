package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// pages reads a list to its end and returns the IDs. Each page has at most page.Limit runs. It
// calls between after each page.
func (s *storeTest) pages(tenant string, page port.Page, between func()) (ids []string) {
	s.Helper()
	for range 100 {
		runs, next, err := s.store.List(s.ctx, tenant, page)
		s.ok(err)
		if len(runs) > page.Limit {
			s.Fatalf("page of %d: got %d runs", page.Limit, len(runs))
		}
		ids = append(ids, idsOf(runs)...)
		if next == "" {
			return ids
		}
		between()
		page.Cursor = next
	}
	s.Fatal("got a cursor after 100 pages, want the end of the list")
	return nil
}

func listNewestFirst(s *storeTest) {
	var want []run.Run
	for i := range 5 {
		want = slices.Insert(want, 0, s.create(sample("acme", fmt.Sprint(9-i))))
	}
	// A commit does not move a run in the list.
	want[2] = s.apply(want[2], admitted("default", 0))
	got, next, err := s.store.List(s.ctx, "acme", port.Page{Limit: 1000})
	s.ok(err)
	s.same(want, got)
	if next != "" {
		s.Fatal("got a cursor on the last page, want an empty one")
	}
}

func listInPages(s *storeTest) {
	start := s.now
	var want []string
	for i := range 23 {
		s.now = start.Add(time.Duration(i/4) * time.Millisecond) // four with the same creation time
		want = append(want, s.create(sample("acme", fmt.Sprintf("run-%02d", i))).ID)
	}
	for _, limit := range []int{1, 2, 7, 22, 23, 24} {
		got := s.pages("acme", port.Page{Limit: limit}, func() {})
		slices.Sort(got)
		if !slices.Equal(got, want) {
			s.Fatalf("pages of %d: got %v", limit, got)
		}
	}
	// New runs come before the first page and do not change later pages.
	newer := 0
	got := s.pages("acme", port.Page{Limit: 4}, func() {
		newer++
		s.now = start.Add(time.Minute)
		s.create(sample("acme", fmt.Sprintf("newer-%d", newer)))
	})
	slices.Sort(got)
	if !slices.Equal(got, want) {
		s.Fatalf("with new runs between the pages: got %v", got)
	}
}

func listBefore(s *storeTest) {
	start := s.now
	var want []string
	for i := range 6 {
		s.now = start.Add(time.Duration(i/2) * time.Nanosecond) // two with the same creation time
		r := s.create(sample("acme", fmt.Sprint("run-", i)))
		if i < 4 {
			want = append(want, s.apply(r, cancel()).ID)
		}
	}
	for name, page := range map[string]port.Page{"all": {}, "in a state": {State: run.Cancelled}} {
		for _, page.Limit = range []int{1, 3, 1000} {
			page.Before = s.now
			got := s.pages("acme", page, func() {})
			slices.Sort(got)
			if !slices.Equal(got, want) {
				s.Fatalf("%s, in pages of %d: got %v, want %v", name, page.Limit, got, want)
			}
		}
	}
	if got := s.pages("acme", port.Page{Before: start, Limit: 3}, func() {}); len(got) != 0 {
		s.Fatalf("before the first run: got %v", got)
	}
}

func listByState(s *storeTest) {
	var want []string
	for i := range 6 {
		r := s.create(sample("acme", fmt.Sprint("run-", i)))
		if i%2 == 0 {
			s.apply(r, cancel())
			want = slices.Insert(want, 0, r.ID)
		}
	}
	got := s.pages("acme", port.Page{State: run.Cancelled, Limit: 2}, func() {})
	s.same(want, got)
	if got := s.pages("acme", port.Page{State: run.Pending, Limit: 2}, func() {}); len(got) != 3 {
		s.Fatalf("pending: got %v", got)
	}
	if got := s.pages("acme", port.Page{State: run.Running, Limit: 2}, func() {}); len(got) != 0 {
		s.Fatalf("running: got %v", got)
	}
}

func badCursor(s *storeTest) {
	for i := range 3 {
		s.create(sample("acme", fmt.Sprint("run-", i)))
	}
	_, cursor, err := s.store.List(s.ctx, "acme", port.Page{Limit: 1})
	s.ok(err)
	if cursor == "" {
		s.Fatal("got no cursor, want a second page of three runs")
	}
	bad := []string{
		"x", "run-1", "0", "../..", cursor[1:], cursor[:len(cursor)-1], cursor + "A", cursor + cursor,
		cursor + "\n", cursor[:4] + "\r\n" + cursor[4:], strings.Repeat("A", len(cursor)),
	}
	for i := range cursor {
		other := "A"
		if cursor[i] == 'A' {
			other = "B"
		}
		bad = append(bad, cursor[:i]+other+cursor[i+1:])
	}
	for _, each := range bad {
		runs, next, err := s.store.List(s.ctx, "acme", port.Page{Cursor: each, Limit: 1})
		if !isInvalid(err, "cursor") || len(runs) > 0 || next != "" {
			s.Fatalf("cursor %q: got %v, %q, %v; want a fault of field cursor", each, idsOf(runs), next, err)
		}
	}
}
