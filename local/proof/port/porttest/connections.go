package porttest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/port"
)

// Connections is the conformance suite of port.Connections. open returns a store without
// connections. Its ConnectedTenants must be consistent while there are no writes.
func Connections(t *testing.T, open func(t *testing.T) port.Connections) {
	t.Helper()
	for name, test := range map[string]func(c connectionsTest){
		"a connection is stored whole":              connectionsTest.whole,
		"a connection is added once":                connectionsTest.once,
		"a version is saved once":                   connectionsTest.version,
		"a removed connection is not saved":         connectionsTest.removed,
		"connections are listed by tenant and page": connectionsTest.listed,
		"tenants are listed once":                   connectionsTest.tenants,
		"one of concurrent saves succeeds":          connectionsTest.race,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(connectionsTest{open(t), t})
		})
	}
}

type connectionsTest struct {
	port.Connections
	t *testing.T
}

var connected = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

// add stores a connection and returns the stored record.
func (c connectionsTest) add(tenant, id string) port.Connection {
	c.t.Helper()
	is := port.Connection{ID: id, Tenant: tenant, OpenedAt: connected, EndsAt: connected.Add(time.Hour)}
	if err := c.AddConnection(c.t.Context(), is); err != nil {
		c.t.Fatalf("%s: got %v, want it stored", id, err)
	}
	is.Version = 1
	return is
}

// ids returns the ids of a page.
func (c connectionsTest) ids(tenant, after string, limit int) (ids []string) {
	c.t.Helper()
	found, err := c.LoadConnections(c.t.Context(), tenant, after, limit)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, is := range found {
		ids = append(ids, is.ID)
	}
	return ids
}

func (c connectionsTest) whole() {
	want := port.Connection{
		ID: "L0SM9cOFvHcCIhw=", Tenant: "tenant-a", Filter: events.Filter{Types: []string{"job.*"}, JobID: "nightly"}, Epoch: "e1", Position: 7, Asked: "e0-3",
		Refused: true, Greeted: true, Failures: 2, OpenedAt: connected, SentAt: connected.Add(time.Second), EndsAt: connected.Add(time.Hour),
		Seat: port.Seat{Room: "room", Number: 3, Holder: "h"},
	}
	if err := c.AddConnection(c.t.Context(), want); err != nil {
		c.t.Fatal(err)
	}
	for version := int64(1); version < 3; version++ {
		want.Version = version
		found, err := c.LoadConnections(c.t.Context(), "tenant-a", "", 10)
		if diff := cmp.Diff([]port.Connection{want}, found); err != nil || diff != "" {
			c.t.Fatalf("got %v and the difference %s, want the connection", err, diff)
		}
		want.Position, want.SentAt = 9, connected.Add(time.Minute)
		if version == 1 {
			if err := c.SaveConnection(c.t.Context(), want); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	was, err := c.RemoveConnection(c.t.Context(), want.ID)
	if diff := cmp.Diff(want, was); err != nil || diff != "" {
		c.t.Errorf("got %v and the difference %s, want the removed connection", err, diff)
	}
}

func (c connectionsTest) once() {
	c.add("tenant-a", "a")
	for _, tenant := range []string{"tenant-a", "tenant-b"} {
		if err := c.AddConnection(c.t.Context(), port.Connection{ID: "a", Tenant: tenant, EndsAt: connected}); !errors.Is(err, port.ErrConflict) {
			c.t.Errorf("%s: got %v for a known id, want ErrConflict", tenant, err)
		}
	}
	if got := c.ids("tenant-b", "", 1); len(got) > 0 {
		c.t.Errorf("got %v, want nothing of a refused connection", got)
	}
}

func (c connectionsTest) version() {
	is := c.add("tenant-a", "a")
	for _, version := range []int64{0, 2} {
		other := is
		other.Version = version
		if err := c.SaveConnection(c.t.Context(), other); !errors.Is(err, port.ErrConflict) {
			c.t.Errorf("version %d: got %v, want ErrConflict", version, err)
		}
	}
	for want := range 2 {
		if err := c.SaveConnection(c.t.Context(), is); (err == nil) != (want == 0) || err != nil && !errors.Is(err, port.ErrConflict) {
			c.t.Errorf("save %d of version 1: got %v", want, err)
		}
	}
}

func (c connectionsTest) removed() {
	is := c.add("tenant-a", "a")
	if _, err := c.RemoveConnection(c.t.Context(), "a"); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.RemoveConnection(c.t.Context(), "a"); !errors.Is(err, port.ErrNotFound) {
		c.t.Errorf("got %v for a second removal, want ErrNotFound", err)
	}
	if err := c.SaveConnection(c.t.Context(), is); !errors.Is(err, port.ErrConflict) {
		c.t.Errorf("got %v for a removed connection, want ErrConflict", err)
	}
	if ok, err := c.Connected(c.t.Context(), "tenant-a"); ok || err != nil {
		c.t.Errorf("got %t, %v, want no connection", ok, err)
	}
	c.add("tenant-b", "a")
}

func (c connectionsTest) listed() {
	const many = 130
	var want []string
	for i := range many {
		want = append(want, fmt.Sprintf("c%03d", (i*7)%many))
		c.add("tenant-a", want[i])
	}
	slices.Sort(want)
	c.add("tenant-b", "b")
	if got := append(c.ids("tenant-a", "", 100), c.ids("tenant-a", want[99], 100)...); !slices.Equal(got, want) {
		c.t.Errorf("got %v, want all of the tenant in order", got)
	}
	for tenant, want := range map[string]bool{"tenant-a": true, "tenant-b": true, "tenant": false} {
		if ok, err := c.Connected(c.t.Context(), tenant); ok != want || err != nil {
			c.t.Errorf("%s: got %t, %v, want %t", tenant, ok, err, want)
		}
	}
}

func (c connectionsTest) tenants() {
	for i, tenant := range []string{"b", "a", "a", "ab", "a/b", "c"} {
		c.add(tenant, fmt.Sprint(i))
	}
	if _, err := c.RemoveConnection(c.t.Context(), "5"); err != nil {
		c.t.Fatal(err)
	}
	var got []string
	for after := ""; ; after = got[len(got)-1] {
		page, err := c.ConnectedTenants(c.t.Context(), after, 2)
		if err != nil || len(page) > 2 {
			c.t.Fatalf("got %v, %v, want at most 2 tenants", page, err)
		}
		if got = append(got, page...); len(page) == 0 {
			break
		}
	}
	if want := []string{"a", "a/b", "ab", "b"}; !slices.Equal(got, want) {
		c.t.Errorf("got the tenants %v, want %v", got, want)
	}
}

func (c connectionsTest) race() {
	is := c.add("tenant-a", "a")
	var all sync.WaitGroup
	var saved atomic.Int64
	for range 8 {
		all.Go(func() {
			if err := c.SaveConnection(c.t.Context(), is); err == nil {
				saved.Add(1)
			} else if !errors.Is(err, port.ErrConflict) {
				c.t.Error(err)
			}
		})
	}
	all.Wait()
	if n := saved.Load(); n != 1 {
		c.t.Errorf("got %d saves of one version, want 1", n)
	}
}
