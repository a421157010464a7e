package job_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

const withInputs = `id: report
image: worker
command: ["{{inputs.day}}", "{{ scheduledAt }}", "{{{{literal}}"]
env: {LEVEL: "{{inputs.level}} {{runId}}"}
inputs:
  day: {type: date, required: true, description: The day}
  level: {choices: [info, debug], default: info}
  count: {type: integer}
  rate: {type: number, default: 0.5}
  dry: {type: boolean, default: false}
  since: {type: time}
  text: {}
`

func TestInputValues(t *testing.T) {
	t.Parallel()
	d := parseJob(t, withInputs)
	for name, row := range map[string]struct {
		given, want map[string]spec.Value
		problem     string
	}{
		"defaults": {map[string]spec.Value{"day": `"2027-03-01"`}, map[string]spec.Value{"day": `"2027-03-01"`, "level": `"info"`, "rate": "0.5", "dry": "false"}, ""},
		"texts": {
			map[string]spec.Value{"day": `"2027-03-01"`, "count": `"007"`, "rate": `"1e3"`, "dry": `"true"`, "level": `"debug"`, "since": `"2027-03-01T08:00:00+01:00"`, "text": `"a\nb\"{{x}}"`},
			map[string]spec.Value{"day": `"2027-03-01"`, "count": "7", "rate": "1000", "dry": "true", "level": `"debug"`, "since": `"2027-03-01T08:00:00+01:00"`, "text": `"a\nb\"{{x}}"`},
			"",
		},
		"missing":          {nil, nil, "inputs.day: missing value, want a date such as 2027-03-01"},
		"no date":          {map[string]spec.Value{"day": `"2027-02-30"`}, nil, `inputs.day: "2027-02-30", want a date`},
		"a date as number": {map[string]spec.Value{"day": `20270301`}, nil, `inputs.day: 20270301, want a date`},
		"no choice":        {map[string]spec.Value{"day": `"2027-03-01"`, "level": `"Debug"`}, nil, `inputs.level: "Debug", want one of "info", "debug"`},
		"a fraction":       {map[string]spec.Value{"day": `"2027-03-01"`, "count": `1.5`}, nil, `inputs.count: 1.5, want an integer`},
		"too large":        {map[string]spec.Value{"day": `"2027-03-01"`, "count": `9007199254740992`}, nil, `inputs.count: 9007199254740992, want an integer`},
		"hexadecimal":      {map[string]spec.Value{"day": `"2027-03-01"`, "count": `"0x1p4"`}, nil, `inputs.count: "0x1p4", want an integer`},
		"infinite":         {map[string]spec.Value{"day": `"2027-03-01"`, "rate": `"inf"`}, nil, `inputs.rate: "inf", want a number`},
		"huge":             {map[string]spec.Value{"day": `"2027-03-01"`, "rate": `1e400`}, nil, `inputs.rate: 1e400, want a number`},
		"no boolean":       {map[string]spec.Value{"day": `"2027-03-01"`, "dry": `"yes"`}, nil, `inputs.dry: "yes", want true or false`},
		"null":             {map[string]spec.Value{"day": `null`}, nil, `inputs.day: null, want a date`},
		"an object":        {map[string]spec.Value{"day": `"2027-03-01"`, "text": `{"a":1}`}, nil, `inputs.text: {"a":1}, want a string`},
		"a number as text": {map[string]spec.Value{"day": `"2027-03-01"`, "text": `1`}, nil, `inputs.text: 1, want a string`},
		"a NUL":            {map[string]spec.Value{"day": `"2027-03-01"`, "text": `"a\u0000b"`}, nil, `inputs.text: value with a NUL`},
		"unknown":          {map[string]spec.Value{"day": `"2027-03-01"`, "Day": `"x"`}, nil, `inputs.Day: unknown input, did you mean day?`},
		"quite unknown":    {map[string]spec.Value{"day": `"2027-03-01"`, "zzzzzz": `"x"`}, nil, `inputs.zzzzzz: unknown input, want one of count, day,`},
		"more than 16 KiB": {map[string]spec.Value{"day": `"2027-03-01"`, "text": spec.TextValue(strings.Repeat("x", 16<<10))}, nil, `inputs: 164`},
		"a hostile name":   {map[string]spec.Value{"day": `"2027-03-01"`, "a.b\n{{": `"x"`}, nil, "unknown input"},
	} {
		got, problems := d.InputValues(row.given)
		texts := fmt.Sprint(problems)
		if (row.problem == "") != (len(problems) == 0) || !strings.Contains(texts, row.problem) {
			t.Errorf("%s: got %s, want %q", name, texts, row.problem)
		}
		if row.problem == "" && !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

func TestInputDeclarations(t *testing.T) {
	t.Parallel()
	const head = "id: a\nimage: b\n"
	for name, row := range map[string]struct{ document, want string }{
		"unknown name":            {head + "command: ['{{inputs.dya}}']\ninputs: {day: {}}\n", `command.0: unknown name in {{inputs.dya}}, want one of scheduledAt, runId, inputs.day, or {{{{ for a literal {{`},
		"code":                    {head + "env: {A: '{{ env \"HOME\" | upper }}'}\n", `env.A: unknown name in {{env "HOME" | upper}}`},
		"not closed":              {head + "command: ['{{runId']\n", `command.0: unknown name in {{runId}}`},
		"required and scheduled":  {head + "schedule: '@daily'\ninputs: {day: {required: true}}\n", "inputs.day.required: the schedule has no value for it; add a default"},
		"required and default":    {head + "inputs: {day: {required: true, default: x}}\n", "inputs.day.required: an input with a default"},
		"unknown type":            {head + "inputs: {day: {type: list}}\n", `inputs.day.type: unknown type "list", want one of string, integer`},
		"default of another type": {head + "inputs: {n: {type: integer, default: many}}\n", `inputs.n.default: "many", want an integer`},
		"default is no choice":    {head + "inputs: {n: {type: integer, default: 4, choices: [1, 2]}}\n", `inputs.n.default: 4, want one of 1, 2`},
		"choice of another type":  {head + "inputs: {n: {type: integer, choices: [1, x]}}\n", `inputs.n.choices.1: "x", want an integer`},
		"default is a list":       {head + "inputs: {n: {default: [1]}}\n", `inputs.n.default: a list, want a string, a number or a boolean`},
		"malformed name":          {head + "inputs: {a-b: {}}\n", "inputs.a-b: malformed name of an input"},
		"an export":               {"id: a\nexport: {format: mods, pi: 01K9XVBAQZF9EHDRXGBEADTZYY}\ninputs: {day: {}}\n", "inputs: no meaning with export"},
		"a large expansion": {
			head + "command: ['" + strings.Repeat("{{inputs.x}}", 100) + "']\ninputs: {x: {default: " + strings.Repeat("x", 4000) + "}}\n", "inputs: an argument of",
		},
	} {
		_, problems := job.Parse([]byte(row.document), nil)
		if texts := fmt.Sprint(problems); !strings.Contains(texts, row.want) {
			t.Errorf("%s: got %s, want %q", name, texts, row.want)
		}
	}
	adHoc := &job.Deployment{AdHoc: true, Policy: deployment().Policy}
	if _, problems := job.Parse([]byte("image: b\ncommand: ['{{.Names}}']\n"), adHoc); len(problems) > 0 {
		t.Errorf("got %v for a run without a stored job, want its command as it is", problems)
	}
	if _, problems := job.Parse([]byte("image: b\ninputs: {a: {}}\n"), adHoc); !strings.Contains(fmt.Sprint(problems), "inputs: a run without a stored job has no inputs") {
		t.Errorf("got %v, want inputs refused without a stored job", problems)
	}
}

func TestInputsOfAnotherDefinition(t *testing.T) {
	t.Parallel()
	d := parseJob(t, withInputs)
	values, ok := d.FitInputs(map[string]spec.Value{"day": `"2027-03-01"`, "gone": `"x"`})
	if !ok || values["day"] != `"2027-03-01"` || values["level"] != `"info"` || len(values) != 4 {
		t.Errorf("got %v, %t; want the day and the defaults", values, ok)
	}
	if values, ok := d.FitInputs(map[string]spec.Value{"day": `5`}); ok {
		t.Errorf("got %v, want values that do not fit", values)
	}
}

// TestLongItem repeats the item of a child in a command.
func TestLongItem(t *testing.T) {
	t.Parallel()
	for repeats, wrong := range map[int]bool{2: false, 32: true} {
		r := run.Run{
			JobID: "j", Work: spec.Work{Program: &spec.Program{Command: []string{strings.Repeat("{{item}}", repeats)}}},
			Child: &fan.Child{Item: fan.Item{Text: strings.Repeat("x", fan.MaxItem)}},
		}
		if problems := job.CheckExpanded(r); (len(problems) > 0) != wrong {
			t.Errorf("got %v for %d items of %d bytes in an argument", problems, repeats, fan.MaxItem)
		}
	}
}
