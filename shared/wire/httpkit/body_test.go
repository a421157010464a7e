package httpkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestStrictBody(t *testing.T) {
	t.Parallel()
	var request contract.ExportRequest
	err := ParseJSON([]byte(` {"pi":"X","options":{"maxDepth":3,"includeOcr":false},"batch_id":"b"} `), &request)
	if err != nil || request.PI != "X" || *request.Options.MaxDepth != 3 || *request.Options.IncludeOCR || *request.BatchID != "b" {
		t.Errorf("got %+v, %v, want all fields", request, err)
	}
	for _, row := range []struct{ name, body, field, want string }{
		{"unknown", `{"options":{"max":1}}`, "options.max", "maxDepth"},
		{"wrong type", `{"options":{"maxDepth":"3"}}`, "options.maxDepth", "is string, want an integer"},
		{"number for a string", `{"pi":1}`, "pi", "is number, want a string"},
		{"object for a string", `{"pi":{"a":1}}`, "pi", "is object, want a string"},
		{"string for a switch", `{"options":{"recursive":"true"}}`, "options.recursive", "true or false"},
		{"twice", `{"pi":"a","pi":"b"}`, "pi", "duplicate"},
		{"twice, escaped", `{"pi":"a","p\u0069":"b"}`, "pi", "duplicate"},
		{"null", `{"options":{"maxDepth":null}}`, "options.maxDepth", "null"},
		{"long name", `{"` + strings.Repeat("n", 500) + `":1}`, "", "cut"},
		{"truncated", `{"pi":"a"`, "", "JSON"},
		{"a comma too many", `{"pi":"a",}`, "", "JSON"},
		{"a comment", `{/**/"pi":"a"}`, "", "JSON"},
		{"single quotes", `{'pi':'a'}`, "", "JSON"},
		{"text after it", `{"pi":"a"} x`, "", ""},
		{"a second value", `{"pi":"a"} {"pi":"b"}`, "", "after"},
		{"a byte order mark", "\ufeff{}", "", "JSON"},
		{"a raw newline", "{\"pi\":\"a\nb\"}", "", "JSON"},
		{"nested too deep", `{"options":` + strings.Repeat("[", 100_000), "options" + strings.Repeat(".0", 63), "nested"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var request contract.ExportRequest
			err := ParseJSON([]byte(row.body), &request)
			f := fault.Of(err)
			if !fault.Is(err, fault.InvalidRequest) || !strings.Contains(f.Message, row.want) || len(f.Message) > 400 {
				t.Fatalf("got error %v, want %q in it", err, row.want)
			}
			if row.name != "long name" && f.Field != row.field {
				t.Errorf("got field %q, want %q", f.Field, row.field)
			}
		})
	}
}

func TestNullInAListOfValues(t *testing.T) {
	t.Parallel()
	var request struct {
		Items []json.RawMessage `json:"items"`
	}
	err := ParseJSON([]byte(`{"items": [null]}`), &request)
	if f := fault.Of(err); f == nil || f.Field != "items.0" || !strings.Contains(f.Message, "want a value") {
		t.Errorf("got %v, want items.0 and a value", err)
	}
}

func TestValuesOfAMapAreStrings(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"1": "is number, want a string", "true": "is bool, want a string", "[]": "is array, want a string",
		"{}": "is object, want a string", "null": "is null, want a string",
	} {
		var request struct {
			Parameters map[string]string `json:"parameters"`
		}
		err := ParseJSON([]byte(`{"parameters": {"A": "a", "B": `+value+`}}`), &request)
		if f := fault.Of(err); !fault.Is(err, fault.InvalidRequest) || f.Field != "parameters.B" || !strings.Contains(f.Message, want) {
			t.Errorf("value %s: got %v, want parameters.B %s", value, err, want)
		}
	}
}

// TestWrongTypeInAnEmbeddedStruct: the error contains the names that clients use, and no Go
// type names.
func TestWrongTypeInAnEmbeddedStruct(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"engines":"mock"}`: "engines", `{"price":5}`: "price", `{"signed":"yes"}`: "signed", `{"tags":[1]}`: "tags.0",
		`{"price":{"input_nanodollars":"1"}}`: "price.input_nanodollars", `{"id":[]}`: "id",
	} {
		var request contract.ModelRequest
		err := ParseJSON([]byte(body), &request)
		if f := fault.Of(err); !fault.Is(err, fault.InvalidRequest) || f.Field != want || !strings.HasPrefix(f.Message, want+" is ") {
			t.Errorf("%s: got %v of field %q, want %s", body, err, f.Field, want)
		}
	}
	var empty struct{}
	if err := ParseJSON([]byte(`{"a":1}`), &empty); !strings.Contains(fault.Of(err).Message, "want an empty object") {
		t.Errorf("got %v for a field of an empty object, want it to say so", err)
	}
}

func TestIntegerWithFractionOrExponent(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		literal string
		want    int
		refused bool
	}{
		{literal: "36.0", want: 36},
		{literal: "-0.0", want: 0},
		{literal: "3.60e1", want: 36},
		{literal: "360E-1", want: 36},
		{literal: "36.5", refused: true},
		{literal: "9223372036854775301", want: 9223372036854775301},
		{literal: "9223372036854775808", want: math.MaxInt64},
		{literal: "-1e19", want: math.MinInt64},
		{literal: "1e300", want: math.MaxInt64},
		{literal: "-1e400", want: math.MinInt64},
		{literal: "1e-999999999", refused: true},
		{literal: "9007199254740993.0", want: 9007199254740993},
		{literal: "-9.223372036854775807e18", want: -9223372036854775807},
		{literal: "9223372036854775807.0", want: math.MaxInt64},
		{literal: "0e999999999", want: 0},
	} {
		t.Run(row.literal, func(t *testing.T) {
			t.Parallel()
			var request contract.ExportRequest
			err := ParseJSON([]byte(`{"options":{"parallelBatchSize":2.0,"maxDepth": `+row.literal+` },"pi":"X"}`), &request)
			if row.refused {
				if f := fault.Of(err); !fault.Is(err, fault.InvalidRequest) || f.Field != "options.maxDepth" {
					t.Errorf("got %v, want an invalid options.maxDepth", err)
				}
				return
			}
			if err != nil || *request.Options.MaxDepth != row.want || *request.Options.ParallelBatchSize != 2 || request.PI != "X" {
				t.Errorf("got %+v, %v, want maxDepth %d", request.Options, err, row.want)
			}
		})
	}
	for literal, want := range map[string]string{
		"7": "7", "9223372036854775807": "9223372036854775807", "-9223372036854775808": "-9223372036854775808", "9223372036854775807.0": "9223372036854775807",
		"9223372036854775808": "", "-9223372036854775809": "", "18446744073709551615": "", "1e19": "", "1e400": "", "9223372036854775808.0": "", "0.5": "",
	} {
		var task contract.TaskRequest
		err := ParseJSON([]byte(`{"seed": `+literal+`}`), &task)
		switch f := fault.Of(err); {
		case want == "" && (!fault.Is(err, fault.InvalidRequest) || f.Field != "seed"):
			t.Errorf("seed %s: got %v, want it refused with the field", literal, err)
		case want != "" && (err != nil || fmt.Sprint(*task.Seed) != want):
			t.Errorf("seed %s: got %+v (%v), want %s", literal, task.Seed, err, want)
		}
	}
	var completed contract.TaskCompleted
	body := `{"attempt":1.0,"output":{"byteSize":2e3},"metrics":{"load":1.0}}`
	if _, err := parseReport([]byte(body), &completed); err != nil || completed.Attempt != 1 || string(completed.Metrics) != `{"load":1.0}` {
		t.Errorf("got %+v, %v, want attempt 1 and unchanged metrics", completed, err)
	}
}

func TestMalformedTimeNamesTheField(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "yesterday", "2026-01-02", "2026-13-02T03:04:05Z", "2026-01-02 03:04:05"} {
		var body struct {
			At time.Time `json:"at"`
		}
		err := ParseJSON([]byte(`{"at":"`+value+`"}`), &body)
		if f := fault.Of(err); !fault.Is(err, fault.InvalidRequest) || f.Field != "at" {
			t.Errorf("%q: got %v, want an invalid field at", value, err)
		}
	}
}

func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"pi":"X"}`, `{"options":{"maxDepth":1}}`, `{}`, `null`, `{"pi":"a","pi":"b"}`, `{"metrics":{"a":[1,{"b":null}]}}`,
		`{"status":"success","output_file_size":1e3}`,
		`{"attempt":1,"workerId":"w","startedAt":"yesterday"}`, `{"attempt":1,"heartbeatAt":"2026-01-02T03:04:05Z","progressPct":4.5}`,
		`{"outcome":"FAILED","error":{"category":null,"retryable":"no"},"partialProgress":[{}]}`, "{\"pi\":\"\xff\"}", `{"pi":"\ud800"}`, `[[[[`, `{"a":{"a":{"a":`, `{} {}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var strict contract.ExportRequest
		if err := ParseJSON(body, &strict); err == nil {
			// An accepted body must mean the same to another decoder.
			var other contract.ExportRequest
			decoder := json.NewDecoder(bytes.NewReader(body))
			decoder.DisallowUnknownFields()
			err := decoder.Decode(&other)
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && strings.HasPrefix(wrong.Value, "number ") {
				return // 36.0 and 1e30 are integers in JSON Schema, but not for encoding/json
			}
			if err != nil || !reflect.DeepEqual(strict, other) {
				t.Errorf("got %+v, want %+v as encoding/json reads it (%v)", strict, other, err)
			}
		} else if !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("got error %v, want %s", err, fault.InvalidRequest)
		}
		var lenient contract.Callback
		for _, into := range []any{
			&lenient, new(contract.TaskStarted), new(contract.TaskHeartbeat), new(contract.TaskCompleted),
		} {
			if _, err := parseReport(body, into); err != nil && !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("%T: got error %v, want %s", into, err, fault.InvalidRequest)
			}
		}
		if len(lenient.Metrics) > 0 && !json.Valid(lenient.Metrics) {
			t.Errorf("got metrics %q, want valid JSON", lenient.Metrics)
		}
	})
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		list, etag   string
		weak, strong bool
	}{
		{`"a"`, `"a"`, true, true},
		{`"b", "a"`, `"a"`, true, true},
		{`"b","a"`, `"a"`, true, true},
		{`W/"a"`, `"a"`, true, false},
		{`"a"`, `W/"a"`, true, false},
		{`*`, `"a"`, true, true},
		{` * `, `"a"`, true, true},
		{`"b"`, `"a"`, false, false},
		{`"x,"a""`, `"a"`, false, false},
		{`a`, `"a"`, false, false},
		{`"a`, `"a"`, false, false},
		{``, `"a"`, false, false},
	} {
		if weak, strong := Matches(row.list, row.etag, true), Matches(row.list, row.etag, false); weak != row.weak || strong != row.strong {
			t.Errorf("%s for %s: got weakly %v, strongly %v, want %v, %v", row.list, row.etag, weak, strong, row.weak, row.strong)
		}
	}
}
