package scripted_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/twin/asl/scripted"
)

const (
	task = `"Type":"Task","Resource":"arn:aws:states:::lambda:invoke"`
	call = `"Type":"Task","Resource":"arn:aws:states:::lambda:invoke.waitForTaskToken"`
)

type story struct {
	name, states, input, results, want string
}

func TestDataFlow(t *testing.T) {
	t.Parallel()
	run(t, []story{
		{
			"result stored in the raw input", `"A":{` + task + `,"InputPath":"$.in","Parameters":{"p.$":"$.x"},"ResultSelector":{"r.$":"$.y"},
			"ResultPath":"$.out.deep","OutputPath":"$.out","End":true}`, `{"in":{"x":1},"keep":2}`, `[{"state":"A","output":{"y":3,"z":4}}]`,
			`{"status":"SUCCEEDED","output":{"deep":{"r":3}},"states":["A"],"task_inputs":[{"state":"A","input":{"p":1}}]}`,
		},
		{"null paths", `"A":{"Type":"Pass","InputPath":null,"Parameters":{"in.$":"$"},"Next":"B"},"B":{"Type":"Pass","Result":9,"ResultPath":null,"Next":"C"},
			"C":{"Type":"Succeed","OutputPath":null}`, `{"a":1}`, ``, `{"status":"SUCCEEDED","output":{},"states":["A","B","C"],"task_inputs":[]}`},
		{
			"literal is not a template", `"A":{"Type":"Pass","Result":{"x.$":"$.a","y":"States.UUID()"},"End":true}`, `{}`, ``,
			`{"status":"SUCCEEDED","output":{"x.$":"$.a","y":"States.UUID()"},"states":["A"],"task_inputs":[]}`,
		},
		{
			"templates in arrays", `"A":{"Type":"Pass","Parameters":{"l":[{"x.$":"$.a"},"$.a",[{"y.$":"States.Array($.a, 2)"}]]},"End":true}`, `{"a":1}`, ``,
			`{"status":"SUCCEEDED","output":{"l":[{"x":1},"$.a",[{"y":[1,2]}]]},"states":["A"],"task_inputs":[]}`,
		},
		{
			"numbers keep their digits", `"A":{"Type":"Pass","Parameters":{"a.$":"$.a","b":1.0},"End":true}`, `{"a":12345678901234567890123}`, ``,
			`{"status":"SUCCEEDED","output":{"a":12345678901234567890123,"b":1.0},"states":["A"],"task_inputs":[]}`,
		},
		{
			"missing path in a template", `"A":{"Type":"Pass","Parameters":{"o":{"v.$":"$.x"}},"End":true}`, `{"a":1}`, ``,
			`{"status":"FAILED","error":"States.Runtime","cause":"An error occurred while executing the state 'A' (entered at the event id #2). The JSONPath '$.x' specified for the field 'v.$' could not be found in the input '{\"a\":1}'","states":["A"],"task_inputs":[]}`,
		},
		{
			"missing InputPath", `"A":{"Type":"Pass","Next":"B"},"B":{"Type":"Pass","InputPath":"$.x","End":true}`, `{}`, ``,
			`{"status":"FAILED","error":"States.Runtime","cause":"An error occurred while executing the state 'B' (entered at the event id #4). Invalid path '$.x' : No results for path: $['x']","states":["A","B"],"task_inputs":[]}`,
		},
		{
			"ResultPath into a string", `"A":{` + task + `,"ResultPath":"$.x","Catch":[{"ErrorEquals":["States.ResultPathMatchFailure"],"Next":"B"}],"End":true},
			"B":{"Type":"Pass","Parameters":{"e.$":"$.Error"},"End":true}`, `"text"`, `[{"state":"A","output":1}]`,
			`{"status":"SUCCEEDED","output":{"e":"States.ResultPathMatchFailure"},"states":["A","B"],"task_inputs":[{"state":"A","input":"text"}]}`,
		},
		{
			"output too large", `"A":{"Type":"Pass","Parameters":{"a.$":"States.ArrayPartition(States.ArrayRange(0, 900, 1), 1)"},"Next":"B"},
			"B":{"Type":"Pass","Parameters":{"a.$":"States.Array($,$,$,$,$,$)"},"Next":"C"},"C":{"Type":"Pass","Parameters":{"a.$":"States.Array($,$,$,$,$,$,$,$,$,$)"},"End":true}`,
			`{}`, ``, `{"status":"FAILED","error":"States.DataLimitExceeded","cause":"The state/task 'C' returned a result with a size exceeding the maximum number of bytes service limit.","states":["A","B","C"],"task_inputs":[]}`,
		},
		{
			"failing function", `"A":{` + task + `,"Parameters":{"a.$":"States.ArrayGetItem($.l, 3)"},"Catch":[{"ErrorEquals":["States.IntrinsicFailure"],"ResultPath":null,"Next":"B"}],"End":true},"B":{"Type":"Succeed"}`,
			`{"l":[]}`, ``, `{"status":"SUCCEEDED","output":{"l":[]},"states":["A","B"],"task_inputs":[]}`,
		},
	})
}

func TestChoice(t *testing.T) {
	t.Parallel()
	rule := func(rule string) string {
		return `"A":{"Type":"Choice","Choices":[{` + rule + `,"Next":"Y"}],"Default":"N"},"Y":{"Type":"Succeed"},"N":{"Type":"Succeed"}`
	}
	var stories []story
	for condition, yes := range map[string]bool{
		`"Variable":"$.s","StringMatches":"a*c*e"`:                                               true,
		`"Variable":"$.s","StringMatches":"a*x*e"`:                                               false,
		`"Variable":"$.s","StringMatches":"abcd"`:                                                false,
		`"Variable":"$.star","StringMatches":"a\\*b"`:                                            true,
		`"Variable":"$.s","StringMatches":"a\\*"`:                                                false,
		`"Variable":"$.s","StringGreaterThanEquals":"abcde"`:                                     true,
		`"Variable":"$.n","NumericLessThanPath":"$.m"`:                                           true,
		`"Variable":"$.n","NumericEquals":5.0`:                                                   true,
		`"Variable":"$.n","StringEquals":"5"`:                                                    false,
		`"Variable":"$.b","BooleanEqualsPath":"$.b"`:                                             true,
		`"Variable":"$.t","TimestampLessThan":"2026-01-01T00:00:01Z"`:                            true,
		`"Variable":"$.t","TimestampEquals":"2026-01-01T01:00:00.000+01:00"`:                     true,
		`"Variable":"$.t","IsTimestamp":true`:                                                    true,
		`"Variable":"$.s","IsTimestamp":false`:                                                   true,
		`"Variable":"$.none","IsPresent":false`:                                                  true,
		`"Variable":"$.none.deeper","IsPresent":true`:                                            false,
		`"Variable":"$.null","IsNull":true`:                                                      true,
		`"Not":{"Variable":"$.b","BooleanEquals":true}`:                                          false,
		`"And":[{"Variable":"$.none","IsPresent":true},{"Variable":"$.none","NumericEquals":1}]`: false,
		`"Or":[{"Variable":"$.n","NumericEquals":4},{"Variable":"$.n","NumericEquals":5}]`:       true,
		`"Variable":"$$.State.Name","StringEquals":"A"`:                                          true,
	} {
		end := "N"
		if yes {
			end = "Y"
		}
		const input = `{"s":"abcde","star":"a*b","n":5,"m":6.5,"b":true,"t":"2026-01-01T00:00:00Z","null":null}`
		stories = append(stories, story{
			condition, rule(condition), input, ``,
			`{"status":"SUCCEEDED","output":` + input + `,"states":["A","` + end + `"],"task_inputs":[]}`,
		})
	}
	run(t, append(stories,
		story{
			"no match", `"A":{"Type":"Choice","Choices":[{"Variable":"$.a","IsNull":true,"Next":"B"}]},"B":{"Type":"Succeed"}`, `{"a":1}`, ``,
			`{"status":"FAILED","error":"States.NoChoiceMatched","cause":"An error occurred while executing the state 'A' (entered at the event id #2). No choice rule matched and there is no Default.","states":["A"],"task_inputs":[]}`,
		},
		story{
			"missing variable", rule(`"Variable":"$.x","IsNull":true`), `{}`, ``,
			`{"status":"FAILED","error":"States.Runtime","cause":"An error occurred while executing the state 'A' (entered at the event id #2). Invalid path '$.x': The choice state's condition path references an invalid value.","states":["A"],"task_inputs":[]}`,
		},
	))
}

func TestWaitAndTime(t *testing.T) {
	t.Parallel()
	waits := func(field, value string) (states, input string) {
		return `"A":{"Type":"Wait",` + field + `,"Next":"B"},"B":{"Type":"Pass","Parameters":{"at.$":"$$.State.EnteredTime"},"End":true}`, `{"v":` + value + `}`
	}
	var stories []story
	for _, row := range []struct{ field, value, at string }{
		{`"Seconds":90`, `0`, "2026-01-01T00:01:30.000Z"},
		{`"SecondsPath":"$.v"`, `31536000`, "2027-01-01T00:00:00.000Z"},
		{`"Timestamp":"2026-02-03T04:05:06Z"`, `0`, "2026-02-03T04:05:06.000Z"},
		{`"TimestampPath":"$.v"`, `"2026-01-01T00:00:00.1234567890123Z"`, "2026-01-01T00:00:00.124Z"},
		{`"TimestampPath":"$.v"`, `"1999-01-01T00:00:00Z"`, "2026-01-01T00:00:00.000Z"},
	} {
		states, input := waits(row.field, row.value)
		stories = append(stories, story{
			row.field + row.value, states, input, ``,
			`{"status":"SUCCEEDED","output":{"at":"` + row.at + `"},"states":["A","B"],"task_inputs":[]}`,
		})
	}
	const prefix = "An error occurred while executing the state 'A' (entered at the event id #2). "
	for _, row := range []struct{ field, value, cause string }{
		{`"SecondsPath":"$.v"`, `-1`, "The SecondsPath parameter references a negative value: $.v == -1"},
		{`"SecondsPath":"$.v"`, `1.5`, "The SecondsPath parameter cannot be parsed as a long value: $.v == 1.5"},
		{`"TimestampPath":"$.v"`, `"2026-01-01T00:00:00+01:00"`, "The TimestampPath parameter does not reference a valid ISO-8601 extended offset date-time format string: $.v == 2026-01-01T00:00:00+01:00"},
		{`"TimestampPath":"$.v"`, `"2126-01-01T00:00:00Z"`, "Wait state delay is too long."},
	} {
		states, input := waits(row.field, row.value)
		stories = append(stories, story{
			row.field + row.value, states, input, ``,
			`{"status":"FAILED","error":"States.Runtime","cause":"` + prefix + row.cause + `","states":["A"],"task_inputs":[]}`,
		})
	}
	run(t, stories)
}

func TestTaskFailures(t *testing.T) {
	t.Parallel()
	const after = `"B":{"Type":"Pass","Parameters":{"in.$":"$","at.$":"$$.State.EnteredTime"},"End":true}`
	run(t, []story{
		{
			"retried with growing delays", `"A":{` + task + `,"Retry":[{"ErrorEquals":["E"],"IntervalSeconds":3,"MaxAttempts":4,"BackoffRate":2,"MaxDelaySeconds":10}],
			"ResultSelector":{"n.$":"$$.State.RetryCount"},"Next":"B"},` + after, `{}`,
			`[{"state":"A","error":"E"},{"state":"A","error":"E"},{"state":"A","error":"E"},{"state":"A","output":1}]`,
			`{"status":"SUCCEEDED","output":{"in":{"n":3},"at":"2026-01-01T00:00:19.000Z"},"states":["A","B"],"task_inputs":[{"state":"A","input":{}},{"state":"A","input":{}},{"state":"A","input":{}},{"state":"A","input":{}}]}`,
		},
		{
			"first matching retrier counts", `"A":{` + task + `,"Retry":[{"ErrorEquals":["E"],"MaxAttempts":0},{"ErrorEquals":["States.ALL"]}],
			"Catch":[{"ErrorEquals":["States.TaskFailed"],"ResultPath":"$.e","Next":"B"}],"Next":"B"},` + after, `{"k":1}`, `[{"state":"A","error":"E","cause":"c"}]`,
			`{"status":"SUCCEEDED","output":{"in":{"k":1,"e":{"Error":"E","Cause":"c"}},"at":"2026-01-01T00:00:00.000Z"},"states":["A","B"],"task_inputs":[{"state":"A","input":{"k":1}}]}`,
		},
		{
			"failure without a name", `"A":{` + call + `,"Catch":[{"ErrorEquals":["States.ALL"],"Next":"B"}],"Next":"B"},` + after, `{}`, `[{"state":"A","event":"TaskFailed"}]`,
			`{"status":"SUCCEEDED","output":{"in":{"Error":null,"Cause":null},"at":"2026-01-01T00:00:00.000Z"},"states":["A","B"],"task_inputs":[{"state":"A","input":{}}]}`,
		},
		{
			"no answer", `"A":{` + task + `,"TimeoutSeconds":7,"Catch":[{"ErrorEquals":["States.TaskFailed"],"Next":"A"},{"ErrorEquals":["States.Timeout"],"Next":"B"}],"Next":"B"},` + after, `{}`,
			`[{"state":"A","event":"TaskTimedOut"}]`,
			`{"status":"SUCCEEDED","output":{"in":{"Error":"States.Timeout","Cause":""},"at":"2026-01-01T00:00:07.000Z"},"states":["A","B"],"task_inputs":[{"state":"A","input":{}}]}`,
		},
		{
			"no heartbeat", `"A":{` + call + `,"TimeoutSeconds":60,"HeartbeatSecondsPath":"$.h","Catch":[{"ErrorEquals":["States.HeartbeatTimeout"],"ResultPath":"$.e","Next":"B"}],"Next":"B"},` + after, `{"h":5}`, ``,
			`{"status":"SUCCEEDED","output":{"in":{"h":5,"e":{"Error":"States.Timeout","Cause":""}},"at":"2026-01-01T00:00:05.000Z"},"states":["A","B"],"task_inputs":[{"state":"A","input":{"h":5}}]}`,
		},
		{
			"OutputPath is not caught", `"A":{` + task + `,"OutputPath":"$.no.such","Catch":[{"ErrorEquals":["States.Runtime"],"Next":"B"}],"Next":"B"},"B":{"Type":"Succeed"}`, `{}`, `[{"state":"A","output":{}}]`,
			`{"status":"FAILED","error":"States.Runtime","cause":"An error occurred while executing the state 'A' (entered at the event id #2). Invalid path '$.no.such' : Missing property in path $['no']","states":["A"],"task_inputs":[{"state":"A","input":{}}]}`,
		},
		{
			"Fail with paths", `"A":{"Type":"Fail","ErrorPath":"$.e","CausePath":"States.Format('because {}', $.c)"}`, `{"e":"E","c":1}`, ``,
			`{"status":"FAILED","error":"E","cause":"because 1","states":["A"],"task_inputs":[]}`,
		},
	})
}

func TestParallelAndMap(t *testing.T) {
	t.Parallel()
	run(t, []story{
		{
			"branches in order", `"A":{"Type":"Parallel","ResultPath":"$.r","Branches":[{"StartAt":"W","States":{"W":{"Type":"Wait","Seconds":5,"Next":"P"},"P":{"Type":"Pass","Result":1,"End":true}}},
			{"StartAt":"Q","States":{"Q":{"Type":"Pass","Result":2,"End":true}}}],"End":true}`, `{"k":0}`, ``,
			`{"status":"SUCCEEDED","output":{"k":0,"r":[1,2]},"states":["A","W","Q","P"],"task_inputs":[]}`,
		},
		{
			"failing branch stops the others", `"A":{"Type":"Parallel","Branches":[{"StartAt":"F","States":{"F":{"Type":"Fail","Error":"E","Cause":"c"}}},
			{"StartAt":"W","States":{"W":{"Type":"Wait","Seconds":5,"Next":"X"},"X":{"Type":"Succeed"}}}],"Catch":[{"ErrorEquals":["E"],"Next":"B"}],"End":true},"B":{"Type":"Succeed"}`, `{}`, ``,
			`{"status":"SUCCEEDED","output":{"Error":"E","Cause":"c"},"states":["A","F","W","B"],"task_inputs":[]}`,
		},
		{
			"retried branch", `"A":{"Type":"Parallel","Branches":[{"StartAt":"T","States":{"T":{` + task + `,"End":true}}}],"Retry":[{"ErrorEquals":["States.ALL"],"MaxAttempts":1}],"End":true}`, `{}`,
			`[{"state":"T","error":"E"},{"state":"T","output":5}]`,
			`{"status":"SUCCEEDED","output":[5],"states":["A","T","T"],"task_inputs":[{"state":"T","input":{}},{"state":"T","input":{}}]}`,
		},
		{
			"sequential items", `"A":{"Type":"Map","ItemsPath":"$.l","MaxConcurrency":1,"ItemSelector":{"i.$":"$$.Map.Item.Index","v.$":"$$.Map.Item.Value","k.$":"$.k"},
			"ItemProcessor":{"StartAt":"W","States":{"W":{"Type":"Wait","Seconds":1,"Next":"P"},"P":{"Type":"Pass","Parameters":{"all.$":"$","again.$":"$$.Map.Item.Index"},"End":true}}},"ResultPath":"$.l","End":true}`,
			`{"l":["a","b"],"k":7}`, ``,
			`{"status":"SUCCEEDED","output":{"l":[{"all":{"i":0,"v":"a","k":7},"again":0},{"all":{"i":1,"v":"b","k":7},"again":1}],"k":7},"states":["A","W","P","W","P"],"task_inputs":[]}`,
		},
		{
			"no items", `"A":{"Type":"Map","Iterator":{"StartAt":"P","States":{"P":{"Type":"Succeed"}}},"End":true}`, `[]`, ``,
			`{"status":"SUCCEEDED","output":[],"states":["A"],"task_inputs":[]}`,
		},
		{
			"no array", `"A":{"Type":"Map","ItemsPath":"$.x","ItemProcessor":{"StartAt":"P","States":{"P":{"Type":"Succeed"}}},"End":true}`, `{"x":{}}`, ``,
			`{"status":"FAILED","error":"States.Runtime","cause":"An error occurred while executing the state 'A' (entered at the event id #2). Reference path \"$.x\" must point to array.","states":["A"],"task_inputs":[]}`,
		},
		{
			"missing path in a selector, caught", `"A":{"Type":"Map","ItemSelector":{"x.$":"$.none"},"ItemProcessor":{"StartAt":"P","States":{"P":{"Type":"Succeed"}}},
			"Catch":[{"ErrorEquals":["States.Runtime"],"ResultPath":null,"Next":"B"}],"End":true},"B":{"Type":"Succeed"}`, `[1,2]`, ``,
			`{"status":"SUCCEEDED","output":[1,2],"states":["A","B"],"task_inputs":[]}`,
		},
		{
			"results without a state", `"A":{"Type":"Map","ItemProcessor":{"StartAt":"T","States":{"T":{` + task + `,"End":true}}},"End":true}`, `[1,2]`,
			`[{"state":null,"output":"x"},{"state":null,"output":"y"}]`,
			`{"status":"SUCCEEDED","output":["x","y"],"states":["A","T","T"],"task_inputs":[{"state":"T","input":1},{"state":"T","input":2}]}`,
		},
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	got := answer(t, `{"name":"n","definition":{"TimeoutSeconds":30,"StartAt":"A","States":{"A":{"Type":"Wait","Seconds":31,"End":true}}},"input":{}}`)
	if got["status"] != "TIMED_OUT" || got["error"] != "States.Timeout" {
		t.Errorf("got %v", got)
	}
	got = answer(t, `{"name":"n","definition":{"StartAt":"A","States":{"A":{"Type":"Choice","Choices":[{"Variable":"$.end","IsPresent":true,"Next":"B"}],"Default":"A"},"B":{"Type":"Succeed"}}},"input":{}}`)
	if states, _ := got["states"].([]any); got["status"] != "FAILED" || len(states) != 12_500 {
		t.Errorf("endless loop: got %d states and %v", len(states), got["status"])
	}
}

func TestRunRefusesInvalidLines(t *testing.T) {
	t.Parallel()
	got := answer(t, `{"name":"n","definition":"{\"StartAt\":\"A\",\"QueryLanguage\":\"JSONata\",\"States\":{\"A\":{\"Type\":\"Succeed\"}}}"}`)
	if diff := cmp.Diff(map[string]any{"name": "n", "unsupported": "JSONata"}, got); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{`[]`, `{`, `{"name":"n"}`, `{"definition":{"StartAt":"A","States":{"A":{"Type":"Succeed"}}},"task_results":{}}`} {
		if err := scripted.Run(t.Context(), strings.NewReader(line), &bytes.Buffer{}, options()); err == nil {
			t.Errorf("%s: got no error", line)
		}
	}
}

func options() scripted.Options {
	return scripted.Options{Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Random: func() uint64 { return 42 }}
}

func run(t *testing.T, stories []story) {
	t.Helper()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if s.results == "" {
				s.results = "[]"
			}
			line := `{"name":"n","definition":{"StartAt":"A","States":{` + s.states + `}},"input":` + s.input + `,"task_results":` + s.results + `}`
			got := answer(t, strings.ReplaceAll(strings.ReplaceAll(line, "\n", ""), "\t", ""))
			var want map[string]any
			decode(t, []byte(s.want), &want)
			want["name"] = "n"
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func answer(t *testing.T, line string) map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := scripted.Run(context.Background(), strings.NewReader(line+"\n\n"), &out, options()); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	decode(t, out.Bytes(), &got)
	return got
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}
