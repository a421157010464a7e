package dynamo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
)

func TestBatchIsDecodedOnce(t *testing.T) {
	t.Parallel()
	s, err := New(nil, Config{Table: "sortie", Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	f, doc := &Feed{store: s}, text(`{"records":[{"id":"a","at":1,"data":"x"},{"id":"b","at":2,"data":"y"}]}`)
	first, err := f.recordsIn(item{attrFirst: number(7), attrDoc: doc})
	if err != nil || len(first) != 2 || first[1].Position != 8 {
		t.Fatalf("got %+v, %v, want the records at 7 and 8", first, err)
	}
	first[0].ID = "changed"
	again, err := f.recordsIn(item{attrFirst: number(9), attrDoc: doc})
	if err != nil || len(again) != 2 || again[0].ID != "a" || again[0].Position != 9 {
		t.Fatalf("got %+v, %v, want the records at 9 and 10", again, err)
	}
	if &first[0].Data[0] != &again[0].Data[0] {
		t.Error("the batch was decoded twice")
	}
	if _, err := f.recordsIn(item{attrFirst: number(9), attrDoc: text("{")}); err == nil {
		t.Error("got records of a damaged batch, want an error")
	}
}

func TestDeliveryIsDecodedOnce(t *testing.T) {
	t.Parallel()
	s, err := New(nil, Config{Table: "sortie", Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	stored := webhook.Delivery{Position: 3, State: webhook.Pending, Tries: 1, Log: []webhook.Attempt{{Status: 500}}}
	doc, err := s.pack(stored)
	if err != nil {
		t.Fatal(err)
	}
	is := item{attrDoc: document(doc)}
	for range 3 {
		d, err := s.deliveryOf(is)
		if diff := cmp.Diff(stored, d); err != nil || diff != "" {
			t.Fatalf("%v, (-want +got)\n%s", err, diff)
		}
		if ended := d.GiveUp("too large", time.Time{}, time.Hour); len(ended.Log) != 2 {
			t.Errorf("got %+v, want two attempts", ended)
		}
	}
	if _, ok := s.decoded.deliveries.Get(doc); !ok {
		t.Error("the delivery is not remembered")
	}
}
