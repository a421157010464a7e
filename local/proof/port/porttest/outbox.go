package porttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/port"
)

// Outbox is the conformance suite of port.Outbox. open returns a new, empty outbox for each
// test, and a function that waits until Stored is up to date, or nil if it always is.
func Outbox(t *testing.T, open func(t *testing.T) (o port.Outbox, settle func())) {
	t.Helper()
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	change := func(id string, after time.Duration) port.StoredChange {
		return port.StoredChange{ID: id, At: at.Add(after), Record: fmt.Appendf(nil, `{"of": %q}`, id)}
	}
	for name, test := range map[string]func(o outboxTest){
		"empty": func(o outboxTest) {
			o.wants()
			o.published("unknown", "#1", "#")
			o.published()
		},
		"changes are stored in order until published": func(o outboxTest) {
			var all []port.StoredChange
			for i, id := range []string{"9", "#x", "10", "a b", "#", "#01", strings.Repeat("i", 200)} {
				all = append(all, change(id, time.Duration(i)*time.Second))
				o.setAside(all[i])
			}
			o.wants(all...)
			o.published("10", "unknown", "9")
			o.published("10")
			o.wants(slices.Concat(all[1:2], all[3:])...)
			o.setAside(change("10", time.Minute))
			o.wants(slices.Concat(all[1:2], all[3:], []port.StoredChange{change("10", time.Minute)})...)
			for _, c := range all {
				o.published(c.ID)
			}
			o.wants()
		},
		"a known id is replaced": func(o outboxTest) {
			o.setAside(change("a", 0))
			again := change("a", time.Second)
			again.Record = []byte(`{"again": true}`)
			o.setAside(again)
			o.wants(again)
		},
		"large changes": func(o outboxTest) {
			var all []port.StoredChange
			for i := range 5 {
				c := change(fmt.Sprint(i), time.Duration(i)*time.Second)
				c.Record = []byte(`"` + strings.Repeat("x", 299_000) + `"`)
				all = append(all, c)
				o.setAside(c)
			}
			o.wants(all...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, settle := open(t)
			test(outboxTest{t, o, settle})
		})
	}
}

type outboxTest struct {
	*testing.T
	port.Outbox
	settle func()
}

func (o outboxTest) setAside(c port.StoredChange) {
	o.Helper()
	if err := o.SetAside(context.Background(), c); err != nil {
		o.Fatal(err)
	}
}

func (o outboxTest) published(ids ...string) {
	o.Helper()
	if err := o.Published(context.Background(), ids...); err != nil {
		o.Fatal(err)
	}
}

// wants reads the outbox with several page sizes and checks its changes.
func (o outboxTest) wants(want ...port.StoredChange) {
	o.Helper()
	if o.settle != nil {
		o.settle()
	}
	for _, limit := range []int{1, 2, 100} {
		var got []port.StoredChange
		for after := ""; ; {
			page, next, err := o.Stored(context.Background(), after, limit)
			if err != nil || len(page) > limit {
				o.Fatalf("got a page of %d changes, %v, want at most %d", len(page), err, limit)
			}
			got = append(got, page...)
			if after = next; after == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got, wholeBytes); diff != "" {
			o.Fatalf("changes in pages of %d: want -, got +\n%s", limit, diff)
		}
	}
}
