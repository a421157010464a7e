package asl_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/twin/asl"
)

func TestValidateReportsEveryMistake(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, definition string
		want             []string
	}{
		{"not JSON", `{`, []string{"invalid JSON at byte 1: expected a key"}},
		{"nothing", `{}`, []string{"StartAt: is missing", "States: is missing"}},
		{"no states", `{"StartAt":"A","States":{}}`, []string{"States: is empty"}},
		{"several mistakes", `{"StartAt":"X","Extra":1,"Version":"2","States":{"A":{"Type":"Pass"},"B":{"Type":"Nap","End":true}}}`, []string{
			`Version: must be "1.0"`, "States.A: has neither Next nor End", `States.B.Type: unknown type "Nap"`,
			`StartAt: no state "X"`, "Extra: unknown field",
		}},
		{"targets", `{"StartAt":"A","States":{"A":{"Type":"Choice","Choices":[{"Variable":"$.a","IsNull":true,"Next":"X"}],"Default":"Y"},
			"B":{"Type":"Pass","Next":"Z"}}}`, []string{
			`States.A.Default: no state "Y"`, `States.A.Choices[0].Next: no state "X"`, "States.B: unreachable state", `States.B.Next: no state "Z"`,
		}},
		{"next and end", one(`"Type":"Pass","Next":"A","End":true`), []string{"States.A.End: cannot be combined with Next"}},
		{"unknown field", one(`"Type":"Pass","End":true,"Retry":[]`), []string{"States.A.Retry: unknown field"}},
		{"paths", one(`"Type":"Pass","End":true,"InputPath":"a","OutputPath":3,"ResultPath":"$.a[*]"`), []string{
			`States.A.InputPath: "a" is not a path: missing $ at byte 0`, "States.A.OutputPath: must be a string",
			"States.A.ResultPath: must be a reference path such as $.result",
		}},
		{"context as target", one(`"Type":"Pass","End":true,"ResultPath":"$$.a"`), []string{"States.A.ResultPath: must be a reference path such as $.result"}},
		{"templates", one(`"Type":"Pass","End":true,"Parameters":{"a.$":"x","b":{"c.$":1},"d":[{"e.$":"States.Nope()"}],"f":1,"f.$":"$"}`), []string{
			`States.A.Parameters.a.$: "x" is not a path: missing $ at byte 0`,
			"States.A.Parameters.b.c.$: must be a path or an intrinsic function call",
			`States.A.Parameters.d[0].e.$: "States.Nope()" is not an intrinsic function call: unknown function States.Nope at byte 0`,
			`States.A.Parameters.f.$: duplicate key "f"`,
		}},
		{"task", one(`"Type":"Task","End":true,"TimeoutSeconds":5,"HeartbeatSeconds":5,"TimeoutSecondsPath":"$.t","HeartbeatSecondsPath":"$[*]"`), []string{
			"States.A.Resource: is missing", "States.A.TimeoutSeconds: cannot be combined with TimeoutSecondsPath",
			"States.A.HeartbeatSeconds: cannot be combined with HeartbeatSecondsPath",
			"States.A.HeartbeatSecondsPath: must be a path to one value",
		}},
		{"heartbeat", one(`"Type":"Task","Resource":"r","End":true,"TimeoutSeconds":5,"HeartbeatSeconds":5`), []string{
			"States.A.HeartbeatSeconds: must be less than TimeoutSeconds",
		}},
		{"numbers", `{"StartAt":"A","TimeoutSeconds":0,"States":{"A":{"Type":"Task","Resource":"r","End":true,"TimeoutSeconds":1.5}}}`, []string{
			"TimeoutSeconds: must be an integer from 1 to 99999999", "States.A.TimeoutSeconds: must be an integer from 1 to 99999999",
		}},
		{"retry", one(`"Type":"Task","Resource":"r","End":true,"Retry":[{"ErrorEquals":["States.ALL","E"],"MaxAttempts":-1,"BackoffRate":0.5},
			{"ErrorEquals":[],"IntervalSeconds":0,"JitterStrategy":"SOME","MaxDelaySeconds":31622400},{"ErrorEquals":["States.Odd"],"Next":"A"}]`), []string{
			"States.A.Retry[0].ErrorEquals: States.ALL must be the only name", "States.A.Retry[0].ErrorEquals: States.ALL must be in the last one",
			"States.A.Retry[0].MaxAttempts: must be an integer from 0 to 99999999", "States.A.Retry[0].BackoffRate: must be a number of at least 1",
			"States.A.Retry[1].ErrorEquals: want at least one name", "States.A.Retry[1].IntervalSeconds: must be an integer from 1 to 99999999",
			"States.A.Retry[1].MaxDelaySeconds: must be an integer from 1 to 31622399", "States.A.Retry[1].JitterStrategy: must be NONE or FULL",
			`States.A.Retry[2].ErrorEquals[0]: unknown error "States.Odd" with the reserved prefix "States."`,
			"States.A.Retry[2].Next: unknown field",
		}},
		{"catch", one(`"Type":"Task","Resource":"r","End":true,"Catch":[{"ErrorEquals":["E"]},{"ErrorEquals":["F"],"Next":"X"}]`), []string{
			"States.A.Catch[0].Next: is missing", `States.A.Catch[1].Next: no state "X"`,
		}},
		{"choice", one(`"Type":"Choice","Next":"A","Choices":[{"Variable":"$.a","Next":"A"},{"Variable":"$.a","StringEquals":1,"Next":"A"},
			{"StringEquals":"a","Next":"A"},{"And":[{"Variable":"$.a","IsNull":true,"Next":"A"}],"Next":"A"},{"Variable":"$","IsNull":true,"IsString":true,"Next":"A"},{"Or":[],"Next":"A"}]`), []string{
			"States.A.Choices[0]: got 0 operators, want one", "States.A.Choices[1].StringEquals: value of the wrong type",
			"States.A.Choices[2].Variable: is missing", "States.A.Choices[3].And[0].Next: unknown field",
			"States.A.Choices[4]: got 2 operators, want one", "States.A.Choices[5].Or: want at least one", "States.A.Next: unknown field",
			"States: no terminal state, want one of type Succeed or Fail, or with End",
		}},
		{"no end", `{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"B"},"B":{"Type":"Wait","Seconds":1,"Next":"A"}}}`, []string{
			"States: no terminal state, want one of type Succeed or Fail, or with End",
		}},
		{"choice without an end", `{"StartAt":"A","States":{"A":{"Type":"Choice","Choices":[{"Variable":"$.a","IsNull":true,"Next":"B"}]},"B":{"Type":"Pass","Next":"A"}}}`, []string{
			"States: no terminal state, want one of type Succeed or Fail, or with End",
		}},
		{"branch without an end", one(`"Type":"Parallel","End":true,"Branches":[{"StartAt":"B","States":{"B":{"Type":"Pass","End":true}}},{"StartAt":"C","States":{"C":{"Type":"Pass","Next":"C"}}}]`), []string{
			"States.A.Branches[1].States: no terminal state, want one of type Succeed or Fail, or with End",
		}},
		{"iteration without an end", one(`"Type":"Map","End":true,"ItemProcessor":{"StartAt":"B","States":{"B":{"Type":"Pass","Next":"B"}}}`), []string{
			"States.A.ItemProcessor.States: no terminal state, want one of type Succeed or Fail, or with End",
		}},
		{"end by a catcher", `{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"r","Next":"A","Catch":[{"ErrorEquals":["States.ALL"],"Next":"B"}]},"B":{"Type":"Fail"}}}`, nil},
		{"wait", one(`"Type":"Wait","End":true,"Seconds":1,"SecondsPath":"$.s"`), []string{
			"States.A: got 2 of Seconds, SecondsPath, Timestamp and TimestampPath, want one",
		}},
		{"wait for a time", one(`"Type":"Wait","End":true,"Timestamp":"2026-01-01 00:00:00Z"`), []string{"States.A.Timestamp: must be a time such as 2026-01-31T12:00:00Z"}},
		{"fail", one(`"Type":"Fail","Error":"E","ErrorPath":"$.e","End":true`), []string{
			"States.A.Error: cannot be combined with ErrorPath", "States.A.End: unknown field",
		}},
		{"parallel", one(`"Type":"Parallel","End":true,"Branches":[{"StartAt":"B","States":{"B":{"Type":"Pass","Next":"A"}}},{"StartAt":"B","States":{"B":{"Type":"Succeed"}}}]`), []string{
			`States.A.Branches[0].States.B.Next: no state "A"`, "States.A.Branches[1].States.B: duplicate of States.A.Branches[0].States.B",
		}},
		{"map", one(`"Type":"Map","End":true,"Parameters":{},"ItemSelector":{}`), []string{
			"States.A.Parameters: cannot be combined with ItemSelector", "States.A.ItemProcessor: is missing",
		}},
		{"long name", `{"StartAt":"` + strings.Repeat("n", 81) + `","States":{"` + strings.Repeat("n", 81) + `":{"Type":"Succeed"}}}`, []string{
			"States." + strings.Repeat("n", 81) + ": a state's name has 1 to 80 characters",
		}},
		{"correct definition", one(`"Type":"Succeed","Comment":"fine"`), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range asl.Validate([]byte(row.definition)) {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
			_, err := asl.Parse([]byte(row.definition))
			var invalid *asl.InvalidError
			if errors.As(err, &invalid) != (len(row.want) > 0) {
				t.Errorf("Parse: got %v", err)
			}
		})
	}
}

func TestStatesWithoutAnEndAreWarnings(t *testing.T) {
	t.Parallel()
	loop := `"B":{"Type":"Pass","Next":"C"},"C":{"Type":"Wait","Seconds":1,"Next":"B"}`
	start := `{"StartAt":"A","States":{"A":{"Type":"Choice","Choices":[{"Variable":"$.a","IsNull":true,"Next":"B"}],"Default":"D"},"D":{"Type":"Succeed"},`
	for _, row := range []struct {
		name, definition string
		want             []string
	}{
		{"a loop", start + loop + `}}`, []string{"States.B: no terminal state is reachable from it", "States.C: no terminal state is reachable from it"}},
		{"a loop in a branch", `{"StartAt":"P","States":{"P":{"Type":"Parallel","End":true,"Branches":[` + start + loop + `}}]}}}`, []string{
			"States.P.Branches[0].States.B: no terminal state is reachable from it", "States.P.Branches[0].States.C: no terminal state is reachable from it",
		}},
		{"a loop in an iteration", `{"StartAt":"M","States":{"M":{"Type":"Map","End":true,"ItemProcessor":` + start + loop + `}}}}}`, []string{
			"States.M.ItemProcessor.States.B: no terminal state is reachable from it", "States.M.ItemProcessor.States.C: no terminal state is reachable from it",
		}},
		{"a loop with an exit", start + `"B":{"Type":"Task","Resource":"r","Next":"A","Catch":[{"ErrorEquals":["States.ALL"],"Next":"D"}]}}}`, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, err := asl.Parse([]byte(row.definition)); err != nil {
				t.Error(err)
			}
			var got []string
			for _, p := range asl.Warnings([]byte(row.definition)) {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStateMachineOfRunsIsValid checks the definition that Step Functions runs.
func TestStateMachineOfRunsIsValid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../statemachines/run.asl.json")
	if err != nil {
		t.Fatal(err)
	}
	if found := append(asl.Validate(text), asl.Warnings(text)...); len(found) > 0 {
		t.Errorf("got %v, want no mistake and no warning", found)
	}
}

func TestUnsupportedFeaturesAreNamed(t *testing.T) {
	t.Parallel()
	for definition, want := range map[string]string{
		`{"QueryLanguage":"JSONata","StartAt":"A","States":{"A":{"Type":"Succeed"}}}`:                                                             "JSONata",
		one(`"Type":"Pass","QueryLanguage":"JSONata","End":true`):                                                                                 "JSONata",
		one(`"Type":"Pass","Output":"{% 1 %}","End":true`):                                                                                        "JSONata (Output)",
		one(`"Type":"Task","Resource":"r","Arguments":{},"End":true`):                                                                             "JSONata (Arguments)",
		one(`"Type":"Choice","Choices":[{"Condition":"{% true %}","Next":"A"}]`):                                                                  "JSONata (Condition)",
		one(`"Type":"Pass","Assign":{"a":1},"End":true`):                                                                                          "variables (Assign)",
		one(`"Type":"Pass","Parameters":{"a.$":"$name"},"End":true`):                                                                              "variables ($name)",
		one(`"Type":"Map","ItemReader":{},"ItemProcessor":{"StartAt":"B","States":{"B":{"Type":"Succeed"}}},"End":true`):                          "distributed Map (ItemReader)",
		one(`"Type":"Map","ItemProcessor":{"ProcessorConfig":{"Mode":"DISTRIBUTED"},"StartAt":"B","States":{"B":{"Type":"Succeed"}}},"End":true`): "distributed Map",
	} {
		_, err := asl.Parse([]byte(definition))
		var unsupported *asl.UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.Feature != want {
			t.Errorf("%s: got %v, want %q", definition, err, want)
		}
	}
}

// one returns a definition with one state A that has the fields.
func one(fields string) string {
	return `{"StartAt":"A","States":{"A":{` + fields + `}}}`
}
