package encoded

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestValuesAreThoseOfJSON compares decoded documents with those of encoding/json, as they were
// encoded and with random changes.
func TestValuesAreThoseOfJSON(t *testing.T) {
	t.Parallel()
	sameValues[document](t, 1000)
	sameValues[run.Run](t, 500)
	sameValues[run.Event](t, 200)
	sameValues[platform.Pool](t, 100)
	sameValues[job.Job](t, 200)
	sameValues[map[string]part](t, 100)
}

func sameValues[T any](t *testing.T, n uint64) {
	t.Helper()
	for seed := range n {
		random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // reproducible
		v := new(T)
		fill(reflect.ValueOf(v).Elem(), random, 6)
		doc, err := Append(nil, v)
		if err != nil {
			continue // some random values have no JSON
		}
		sameValue[T](t, doc)
		for range 5 {
			changed := append([]byte{}, doc...)
			const bytes = `{}[]",:\0123456789-.eEtfnu aZT` + "\n\xff"
			switch at, c := random.IntN(len(doc)), bytes[random.IntN(len(bytes))]; random.IntN(3) {
			case 0:
				changed[at] = c
			case 1:
				changed = append(changed[:at], changed[at+1:]...)
			case 2:
				changed = append(changed[:at], append([]byte{c}, doc[at:]...)...)
			}
			sameValue[T](t, changed)
		}
	}
}

// sameValue compares the value of a document with that of encoding/json.
func sameValue[T any](t *testing.T, doc []byte) {
	t.Helper()
	var got, want T
	err, wrong := Decode(doc, &got), json.Unmarshal(doc, &want)
	if (err == nil) != (wrong == nil) {
		t.Fatalf("%s as %T: got error %v, want %v", doc, got, err, wrong)
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got\n%+v\nwant\n%+v", doc, got, want)
	}
}

// TestDecodedTimes compares times of many forms with those of encoding/json.
func TestDecodedTimes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"2027-03-01T08:00:00Z", "2027-03-01T08:00:00.123456789Z", "2027-03-01T08:00:00+02:00", "2027-03-01T8:00:00Z", "2027-03-01T8:00:00.12Z",
		"2027-03-01T08:00:00,5Z", "2027-03-01T08:00:00.Z", "2027-02-30T08:00:00Z", "2027-03-01 08:00:00Z", "2027-03-01T24:00:00Z", "2027-03-01T08:00:60Z",
		"2027-03-01T08:00:00", "Z", "", "2027-03-01T08:00:00ZZ", "2027-03-01T08:00:00\\u005a", "0001-01-01T00:00:00Z", "12027-03-01T08:00:00Z",
	} {
		sameValue[time.Time](t, []byte(`"`+text+`"`))
		sameValue[struct{ At time.Time }](t, []byte(`{"At":"`+text+`"}`))
	}
}

// TestEarlierRecords decodes a record with fields that the struct does not have: the method of
// the type reads it.
func TestEarlierRecords(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`{"tenant":"acme","attempt":{"number":1,"silent":true}}`, `{"attempt":{"number":1,"machineId":"app/id"},"tenant":"acme"}`, `{"unknown":1}`, `{"Tenant":"acme"}`, ` {}`, `{}`, `null`, ``,
	} {
		sameValue[run.Run](t, []byte(doc))
	}
}

// TestRecordsNeedFewAllocations decodes a document without encoding/json.
func TestRecordsNeedFewAllocations(t *testing.T) { //nolint:paralleltest // testing.AllocsPerRun
	v := document{Text: "plain", At: time.Unix(1, 0).UTC(), Names: []string{"a", "b"}, Part: part{Name: "c", Count: 1}, Next: &document{Number: 5}}
	type fast struct {
		Text  string    `json:"text"`
		At    time.Time `json:"at"`
		Names []string  `json:"names"`
		Part  *part     `json:"part"`
	}
	f := fast{v.Text, v.At, v.Names, &v.Part}
	doc, err := Append(nil, &f)
	if err != nil {
		t.Fatal(err)
	}
	if allocated := testing.AllocsPerRun(100, func() {
		var got fast
		if err := Decode(doc, &got); err != nil {
			t.Fatal(err)
		}
	}); allocated > 6 { // the value, the text, the part, the names twice
		t.Errorf("got %v allocations, want at most 6", allocated)
	}
}
