package encoded

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
)

// document has a field of each kind, and the options of tags.
type document struct {
	Text      string `json:"text"`
	Tag       string `json:"tag,omitempty"`
	No        string `json:"-"`
	Bare      string
	Flag      bool    `json:"flag,omitempty"`
	Small     int8    `json:"small,omitempty"`
	Short     int16   `json:"short"`
	Word      int32   `json:"word,omitzero"`
	Long      int64   `json:"long,omitempty"`
	Number    int     `json:"number"`
	Natural   uint    `json:"natural,omitempty"`
	Ratio     float64 `json:"ratio,omitempty"`
	Delay     time.Duration
	Kind      kind              `json:"kind,omitempty"`
	At        time.Time         `json:"at"`
	Until     time.Time         `json:"until,omitzero"`
	Since     *time.Time        `json:"since,omitempty"`
	Raw       json.RawMessage   `json:"raw,omitempty"`
	Bytes     []byte            `json:"bytes,omitempty"`
	Array     [2]int            `json:"array"`
	Names     []string          `json:"names,omitempty"`
	All       []string          `json:"all"`
	Set       []int             `json:"set,omitzero"`
	Labels    map[string]string `json:"labels,omitempty"`
	Any       any               `json:"any,omitempty"`
	Part      part              `json:"part,omitzero"`
	Always    part              `json:"always,omitempty"` //nolint:modernize // omitempty has no effect, and that is tested
	Parts     []part            `json:"parts,omitempty"`
	Next      *document         `json:"next,omitempty"`
	Own       own               `json:"own"`
	Owned     *own              `json:"owned,omitempty"`
	Owns      []own             `json:"owns,omitempty"`
	Odd       odd               `json:"odd"`
	Even      even              `json:"even,omitzero"`
	Quoted    quoted            `json:"quoted"`
	Zeroed    zeroed            `json:"zeroed"`
	unexposed string            //nolint:unused // encoding/json ignores it
}

type kind string

// part is comparable, with unexported fields.
type part struct {
	Name  string    `json:"name,omitempty"`
	Count int       `json:"count,omitempty"`
	At    time.Time `json:"at,omitzero"`
	inner int       //nolint:unused // encoding/json ignores it
}

// own has a method MarshalJSON of its pointer.
type own struct{ Value string }

// MarshalJSON returns the value with HTML characters.
func (o *own) MarshalJSON() ([]byte, error) { return json.Marshal("<" + o.Value + ">") }

// odd embeds a struct.
type odd struct {
	part
	Other int
}

// even is zero for even numbers.
type even struct{ N int }

// IsZero is for omitzero.
func (e even) IsZero() bool { return e.N%2 == 0 }

// quoted has an option that is left to encoding/json.
type quoted struct {
	N int `json:"n,string"`
}

// zeroed has a pointer to a type with IsZero, which encoding/json calls.
type zeroed struct {
	Even *even `json:"even,omitzero"`
}

var texts = []string{"", "plain text", "a <b> & 'c'", "quote \" and \\", "line\nbreak\t\x00\x1f\x7f", "é – 世界 🙂", "broken \xff\xfe", "\u2028\u2029"}

// fill sets the fields of a value to random ones, and leaves about a third of them zero.
func fill(v reflect.Value, random *rand.Rand, depth int) {
	if !v.CanSet() || random.IntN(3) == 0 {
		return
	}
	if v.Type() == reflect.TypeFor[platform.Settings]() {
		v.Set(reflect.ValueOf(&platform.FlySettings{Apps: []string{texts[random.IntN(len(texts))]}}))
		return
	}
	switch v.Interface().(type) {
	case time.Time:
		zone := time.FixedZone("", random.IntN(3)*3600)
		v.Set(reflect.ValueOf(time.Unix(random.Int64N(4e9), random.Int64N(1e9)*random.Int64N(2)).In(zone)))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`{"a": [1, "<&>", null ] }`))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[random.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(random.Int64N(200) - 100)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(random.Uint64N(200))
	case reflect.Float64:
		v.SetFloat(math.Ldexp(random.NormFloat64(), random.IntN(200)-100))
	case reflect.Float32:
		v.SetFloat(0.5)
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{"x": texts[random.IntN(len(texts))]}))
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), random, depth-1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), random.IntN(3), 3))
		for i := range v.Len() {
			fill(v.Index(i), random, depth-1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), random, depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range random.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, random, depth-1)
			fill(value, random, depth-1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, random, depth-1)
		}
	}
}

// TestOutputIsThatOfJSON compares the encoding of random documents with that of encoding/json.
func TestOutputIsThatOfJSON(t *testing.T) {
	t.Parallel()
	same[document](t, 3000)
}

// TestRecordsAreThoseOfJSON compares the stored documents.
func TestRecordsAreThoseOfJSON(t *testing.T) {
	t.Parallel()
	same[run.Run](t, 1000)
	same[run.Event](t, 300)
	same[fleet.StartLimiter](t, 100)
	same[platform.WarmMachine](t, 100)
	same[platform.Pool](t, 300)
	same[run.Result](t, 100)
	same[job.Job](t, 300)
	same[budget.Account](t, 100)
	same[webhook.Webhook](t, 100)
	same[webhook.Progress](t, 100)
	same[webhook.Delivery](t, 100)
}

// same compares the encoding of n random values with that of encoding/json.
func same[T any](t *testing.T, n uint64) {
	t.Helper()
	for seed := range n {
		v := new(T)
		fill(reflect.ValueOf(v).Elem(), rand.New(rand.NewPCG(seed, 1)), 6) //nolint:gosec // reproducible
		want, wrong := appendAny(nil, v)
		got, err := Append(nil, v)
		if (err == nil) != (wrong == nil) { // some random values have no JSON
			t.Fatalf("seed %d of %T: got error %v, want %v", seed, v, err, wrong)
		}
		if err == nil && !bytes.Equal(got, want) {
			t.Fatalf("seed %d of %T: got\n%s\nwant\n%s", seed, v, got, want)
		}
		if got, err := Any(nil, *v); err == nil && !bytes.Equal(got, want) {
			t.Fatalf("seed %d of %T as a value: got\n%s\nwant\n%s", seed, v, got, want)
		}
	}
}

// TestFastFieldsNeedNoAllocation encodes fields that are not left to encoding/json.
func TestFastFieldsNeedNoAllocation(t *testing.T) { //nolint:paralleltest // testing.AllocsPerRun
	type fast struct {
		Text  string    `json:"text"`
		At    time.Time `json:"at,omitzero"`
		Next  *part     `json:"next,omitempty"`
		Parts []part    `json:"parts"`
	}
	f := fast{Text: "plain", At: time.Unix(1, 0), Next: &part{Name: "a"}, Parts: []part{{Count: 1}, {At: time.Unix(2, 0)}}}
	to := make([]byte, 0, 1024)
	if allocated := testing.AllocsPerRun(100, func() {
		if _, err := Append(to, &f); err != nil {
			t.Fatal(err)
		}
	}); allocated != 0 {
		t.Errorf("got %v allocations, want 0", allocated)
	}
}

// TestErrors encodes what has no JSON.
func TestErrors(t *testing.T) {
	t.Parallel()
	late := struct{ At time.Time }{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}
	if got, err := Append(nil, &late); err == nil {
		t.Errorf("got %s for the year 10000, want an error", got)
	}
	raw := struct{ Parts []json.RawMessage }{[]json.RawMessage{[]byte("{")}}
	if got, err := Append(nil, &raw); err == nil {
		t.Errorf("got %s for incomplete JSON, want an error", got)
	}
	channel := struct{ C *chan int }{new(chan int)}
	if got, err := Append(nil, &channel); err == nil {
		t.Errorf("got %s for a channel, want an error", got)
	}
}
