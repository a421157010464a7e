package porttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/shared/port"
)

// Resources is the conformance suite of port.ResourceStore. open has the same contract as in
// Webhooks.
func Resources(t *testing.T, open func(t *testing.T) (s port.ResourceStore, settle func())) {
	onStores(t, open, func(s onStore[port.ResourceStore]) *resourceTest { return &resourceTest{s} }, map[string]func(*resourceTest){
		"resource is read back":                  resourceIsReadBack,
		"one of many changes of a resource wins": resourceRace,
		"resources are written together":         resourcesAreAtomic,
		"removed resource is gone":               removedResourceIsGone,
		"resources in pages by label":            resourcesInPages,
		"due resources are found":                resourcesAreDue,
	})
}

type resourceTest struct{ onStore[port.ResourceStore] }

func (s *resourceTest) write(save []port.Resource, remove ...port.Resource) {
	s.Helper()
	if err := s.store.WriteResources(s.ctx, save, remove); err != nil {
		s.Fatal(err)
	}
}

func (s *resourceTest) conflict(save []port.Resource, remove ...port.Resource) {
	s.Helper()
	if err := s.store.WriteResources(s.ctx, save, remove); !errors.Is(err, port.ErrConflict) {
		s.Fatalf("got %v, want ErrConflict", err)
	}
}

// stored checks the stored resource. A want of version 0 means that the resource must not
// exist.
func (s *resourceTest) stored(want port.Resource) {
	s.Helper()
	got, err := s.store.LoadResource(s.ctx, want.ResourceRef)
	if want.Version == 0 {
		if !errors.Is(err, port.ErrNotFound) {
			s.Fatalf("got %+v, %v, want ErrNotFound", got, err)
		}
		return
	}
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		s.Fatalf("want -, got +\n%s", diff)
	}
}

// listed reads a list in pages and checks the IDs.
func (s *resourceTest) listed(tenant, kind, label string, limit int, want ...string) {
	s.Helper()
	s.settle()
	var got []string
	for cursor := ""; ; {
		page, next, err := s.store.Resources(s.ctx, tenant, kind, label, port.Page{Cursor: cursor, Limit: limit})
		if err != nil || len(page) > limit {
			s.Fatalf("got %d resources, %v, want at most %d", len(page), err, limit)
		}
		for _, r := range page {
			got = append(got, r.ID)
		}
		if cursor = next; next == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		s.Fatalf("list %s/%s/%q: want -, got +\n%s", tenant, kind, label, diff)
	}
}

func (s *resourceTest) sample(tenant, kind, id string, labels ...string) port.Resource {
	return port.Resource{
		ResourceRef: port.ResourceRef{Tenant: tenant, Kind: kind, ID: id}, Labels: labels, CreatedAt: s.now,
		Document: json.RawMessage(`{"id":"` + id + `","text":"ž <&>"}`),
	}
}

func resourceIsReadBack(s *resourceTest) {
	r := s.sample("acme", "thing", "a/b#c", "", "tag:x/y#z")
	r.DueAt = s.now.Add(time.Hour)
	s.stored(r)
	s.write([]port.Resource{r})
	s.conflict([]port.Resource{r})
	r.Version = 1
	s.stored(r)
	for _, other := range []port.ResourceRef{{Tenant: "other", Kind: r.Kind, ID: r.ID}, {Tenant: r.Tenant, Kind: "other", ID: r.ID}, {Tenant: r.Tenant, Kind: r.Kind, ID: "other"}} {
		s.stored(port.Resource{ResourceRef: other})
	}
	r.Document, r.DueAt = json.RawMessage(`{"changed":true}`), time.Time{}
	s.write([]port.Resource{r})
	s.conflict([]port.Resource{r})
	r.Version = 2
	s.stored(r)
}

func resourceRace(s *resourceTest) {
	const writers = 8
	for version := range int64(3) {
		var wait sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for n := range writers {
			wait.Go(func() {
				r := s.sample("acme", "thing", "raced")
				r.Version, r.Document = version, json.RawMessage(fmt.Sprintf(`{"writer":%d}`, n))
				err := s.store.WriteResources(s.ctx, []port.Resource{r}, nil)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won++
				case !errors.Is(err, port.ErrConflict):
					s.Errorf("got %v, want ErrConflict", err)
				}
			})
		}
		wait.Wait()
		if won != 1 {
			s.Fatalf("version %d: got %d successful writes, want 1", version, won)
		}
	}
}

func resourcesAreAtomic(s *resourceTest) {
	a, b, c := s.sample("acme", "thing", "a", ""), s.sample("acme", "thing", "b", ""), s.sample("acme", "thing", "c", "")
	b.CreatedAt = a.CreatedAt.Add(time.Second)
	s.write([]port.Resource{a, b})
	a.Version, b.Version = 1, 1
	stale := b
	stale.Version = 5
	changed := a
	changed.Document = json.RawMessage(`{}`)
	s.conflict([]port.Resource{changed, c, stale})
	s.conflict([]port.Resource{changed, c}, stale)
	s.stored(a)
	s.stored(c)
	s.listed("acme", "thing", "", 10, "b", "a")
	s.write([]port.Resource{changed, c}, b)
	changed.Version, c.Version, b.Version = 2, 1, 0
	s.stored(changed)
	s.stored(c)
	s.stored(b)
}

func removedResourceIsGone(s *resourceTest) {
	r := s.sample("acme", "thing", "a", "", "tag")
	r.DueAt = s.now
	s.write([]port.Resource{r})
	r.Version = 1
	s.conflict(nil, func() port.Resource { old := r; old.Version = 2; return old }())
	s.write(nil, r)
	s.conflict(nil, r)
	s.stored(s.sample("acme", "thing", "a"))
	s.listed("acme", "thing", "", 10)
	s.listed("acme", "thing", "tag", 10)
	r.Version, r.Labels = 0, []string{""}
	s.write([]port.Resource{r})
	s.listed("acme", "thing", "", 10, "a")
	s.listed("acme", "thing", "tag", 10)
}

func resourcesInPages(s *resourceTest) {
	var all, odd []string
	for n := range 7 {
		r := s.sample("acme", "thing", fmt.Sprintf("r%d", n), "")
		r.CreatedAt = s.now.Add(time.Duration(n) * time.Nanosecond)
		all = append([]string{r.ID}, all...)
		s.write([]port.Resource{r})
		if n%2 == 1 { // a label that the second write has added
			r.Version, r.Labels = 1, []string{"", "odd"}
			odd = append([]string{r.ID}, odd...)
			s.write([]port.Resource{r})
		}
	}
	s.write([]port.Resource{s.sample("acme", "other", "x", ""), s.sample("acme/thing", "thing", "y", ""), s.sample("acme", "thing", "unlisted")})
	for _, limit := range []int{1, 3, 7, 1000} {
		s.listed("acme", "thing", "", limit, all...)
		s.listed("acme", "thing", "odd", limit, odd...)
	}
	s.listed("acme", "thing", "none", 3)
	_, next, err := s.store.Resources(s.ctx, "acme", "thing", "", port.Page{Limit: 3})
	if err != nil || next == "" {
		s.Fatalf("got the cursor %q, %v, want one", next, err)
	}
	if _, _, err := s.store.Resources(s.ctx, "acme", "thing", "odd", port.Page{Limit: 3, Cursor: next}); err == nil {
		s.Error("got a page for the cursor of another list, want a fault")
	}
}

func resourcesAreDue(s *resourceTest) {
	for n, id := range []string{"late", "later", "future", "never"} {
		r := s.sample("acme", "thing", id)
		if id != "never" {
			r.DueAt = s.now.Add(time.Duration(n-2) * 10 * time.Second)
		}
		s.write([]port.Resource{r})
	}
	other := s.sample("acme", "other", "x")
	other.DueAt = s.now.Add(-time.Hour)
	s.write([]port.Resource{other})
	due := func(now time.Time) (ids []string) {
		s.Helper()
		s.settle()
		for after := ""; ; {
			page, next, err := s.store.ResourcesDue(s.ctx, "thing", now, after, 1)
			if err != nil {
				s.Fatal(err)
			}
			for _, ref := range page {
				if ref.Tenant != "acme" || ref.Kind != "thing" {
					s.Errorf("got %+v, want a thing of acme", ref)
				}
				ids = append(ids, ref.ID)
			}
			if after = next; next == "" {
				return ids
			}
		}
	}
	if got := due(s.now.Add(-2 * time.Second)); !slices.Equal(got, []string{"late", "later"}) {
		s.Errorf("got %v, want the two that are due", got)
	}
	r := s.sample("acme", "thing", "late")
	r.Version = 1
	s.write([]port.Resource{r})
	if got := due(s.now.Add(2 * time.Second)); !slices.Equal(got, []string{"later", "future"}) {
		s.Errorf("got %v, want those with a time", got)
	}
}
