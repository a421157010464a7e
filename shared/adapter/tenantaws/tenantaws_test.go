package tenantaws_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/items"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/tenantaws"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/port"
)

var owner = sensor.Credentials{AccessKeyID: items.Owner.ID, SecretAccessKey: items.Owner.Secret}

// wantObjects lists a bucket page by page, and compares the keys of its objects with the sorted ones.
func wantObjects(t *testing.T, of sensor.Bucket, by sensor.Credentials, want []string) {
	t.Helper()
	var got []string
	for after, more := "", true; more; {
		page, err := loopback(t).Objects(t.Context(), of, by, after)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Objects {
			if after = o.Key; o.ETag == "" || strings.Contains(o.ETag, `"`) || o.Size != 1 || o.ModifiedAt.IsZero() || page.At.IsZero() {
				t.Errorf("got %+v at %v, want an ETag without quotes, the size and both times", o, page.At)
			}
			got = append(got, o.Key)
		}
		more = page.More
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %d objects, want %d: %.300q", len(got), len(want), got)
	}
}

// loopback returns a client that may call loopback over http.
func loopback(t *testing.T) *tenantaws.Client {
	t.Helper()
	policy, err := guard.Policy{}.WithPlainLoopback().WithRules("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return tenantaws.New(policy, nil)
}

func TestObjectsAreListedInPages(t *testing.T) {
	t.Parallel()
	b := items.NewBucket(t, nil)
	of := sensor.Bucket{Name: items.BucketName, Prefix: "in/", Endpoint: b.URL, Region: items.Region}
	want := []string{"in/%2e", "in/a b+c", "in/a/../b", "in/ünï", "in/" + strings.Repeat("k", 1000)}
	for _, key := range want {
		b.Put(key, "1")
	}
	for i := range 1001 {
		want = append(want, fmt.Sprintf("in/n%04d", i))
		b.Put(want[len(want)-1], "1")
	}
	b.Put("out", "1")
	slices.Sort(want)
	wantObjects(t, of, owner, want)
}

func TestQueueIsRead(t *testing.T) {
	t.Parallel()
	q := items.NewQueue(t, nil)
	of, c := sensor.Queue{URL: q.URL}, loopback(t)
	first := q.Send(`{"a": 1}`)
	for range 11 {
		q.Send("x")
	}
	got, err := c.Messages(t.Context(), of, owner)
	if err != nil || len(got) != port.MaxMessages || got[0].ID != first || got[0].Body != `{"a": 1}` || got[0].SentAt.IsZero() {
		t.Fatalf("got %+v, %v, want ten messages", got, err)
	}
	for range 2 {
		if err := c.DeleteMessages(t.Context(), of, owner, got); err != nil {
			t.Fatal(err)
		}
	}
	if left := q.Left(); len(left) != 2 || slices.Contains(left, first) {
		t.Errorf("got %q, want the two others", left)
	}
	if got, err = c.Messages(t.Context(), of, owner); err != nil || len(got) != 2 {
		t.Errorf("got %d messages, %v, want 2", len(got), err)
	}
	if got, err = c.Messages(t.Context(), of, owner); err != nil || len(got) != 0 {
		t.Errorf("got %d messages, %v, want none while they are hidden", len(got), err)
	}
}

// TestForeignCredentials has the credentials of another tenant.
func TestForeignCredentials(t *testing.T) {
	t.Parallel()
	b, q, c := items.NewBucket(t, nil), items.NewQueue(t, nil), loopback(t)
	for name, by := range map[string]sensor.Credentials{
		"unknown": {AccessKeyID: "AKIAOTHER", SecretAccessKey: "s3cret"}, "wrong": {AccessKeyID: items.Owner.ID, SecretAccessKey: "s3cret"},
	} {
		_, err := c.Objects(t.Context(), sensor.Bucket{Name: items.BucketName, Endpoint: b.URL, Region: items.Region}, by, "")
		check(t, name, err, "answered")
	}
	_, err := c.Objects(t.Context(), sensor.Bucket{Name: "nothing", Endpoint: b.URL, Region: items.Region}, owner, "")
	check(t, "no bucket", err, "127.0.0.1")
	_, err = c.Messages(t.Context(), sensor.Queue{URL: q.URL}, sensor.Credentials{AccessKeyID: "AKIAOTHER", SecretAccessKey: "s3cret"})
	check(t, "queue", err, "InvalidClientTokenId")
	_, err = c.Messages(t.Context(), sensor.Queue{URL: q.URL + "-of-another"}, owner)
	check(t, "no queue", err, "QueueDoesNotExist")
}

// check checks that an error says what happened, without a secret.
func check(t *testing.T, name string, err error, want string) {
	t.Helper()
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Of(err).Message, want) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), items.Owner.Secret) {
		t.Errorf("%s: got %v, want %q", name, err, want)
	}
}

// TestAddressAttacks polls the addresses of attackers, who want the metadata of clouds and the host's
// own services.
func TestAddressAttacks(t *testing.T) {
	t.Parallel()
	c := tenantaws.New(guard.Policy{}, nil)
	for _, row := range porttest.AddressAttacks() {
		if row.Address != "" || row.URL == "" { // a name is resolved when it is dialed
			continue
		}
		_, err := c.Objects(t.Context(), sensor.Bucket{Name: "items", Endpoint: row.URL}, owner, "")
		_, failed := c.Messages(t.Context(), sensor.Queue{URL: row.URL}, owner)
		if !fault.Is(err, fault.Unavailable) || !fault.Is(failed, fault.Unavailable) || strings.Contains(err.Error(), "answered") {
			t.Errorf("%s: got %v and %v, want refusals", row.Name, err, failed)
		}
	}
}

// TestHostileStores has stores that redirect, answer out of order, or answer without end.
func TestHostileStores(t *testing.T) {
	t.Parallel()
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("got %s, want no redirect to be followed", r.URL)
	}))
	t.Cleanup(inside.Close)
	list := func(keys ...string) string {
		text := `<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated>`
		for _, key := range keys {
			text += `<Contents><Key>` + key + `</Key><ETag>"1"</ETag><LastModified>2026-03-01T08:00:00Z</LastModified></Contents>`
		}
		return text + `</ListBucketResult>`
	}
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, inside.URL, http.StatusTemporaryRedirect)
		}, "cannot list"},
		"status":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "answered"},
		"same keys":      {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, list("in/a", "in/a")) }, "not after the last one"},
		"wrong order":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, list("in/b", "in/a")) }, "not after the last one"},
		"another prefix": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, list("out/a")) }, "below the prefix"},
		"long key":       {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, list("in/"+strings.Repeat("k", 1025))) }, "too long"},
		"no end": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, list())
			for range 20 << 4 {
				fmt.Fprint(w, "<!--"+strings.Repeat("x", 64<<10)+"-->")
			}
		}, ""},
		"a code": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `<Error><Code>`+strings.Repeat("C", 5000)+"</Code><Message>s3cret</Message></Error>")
		}, "CCC"},
	} {
		server := httptest.NewServer(row.answer)
		t.Cleanup(server.Close)
		page, err := loopback(t).Objects(t.Context(), sensor.Bucket{Name: "items", Prefix: "in/", Endpoint: server.URL}, owner, "")
		if row.want == "" {
			if len(page.Objects) != 0 || page.More {
				t.Errorf("%s: got %+v, want no objects", name, page)
			}
			continue
		}
		if err == nil || !strings.Contains(fault.Of(err).Message, row.want) || len(fault.Of(err).Message) > 300 {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
}
